"""Affinity and anti-affinity: of existing pods, and by both fronts between the pods of a gang."""

import numpy as np
import pytest

from scheduling.filters.domain_counts import GangCounts
from scheduling.filters.gang_affinity import AntiAffinity, RequiredAffinity
from scheduling.filters.inter_pod_affinity import (
    PartlySelectedError,
    WaitForBindingError,
    gang_constraints,
)
from scheduling.model.amounts import Amounts
from scheduling.model.constraints import NODE_NAME, PodTerm, Requirement
from scheduling.model.gang import Member, PendingGang
from scheduling.model.pod import PodShape
from scheduling.state.pod_index import AssumedPods, ExistingPods, NominatedPod, PodIndex
from tests.builders import columns, gang, group, node, require, shape

NODES = columns(
    node("a1", labels={"zone": "a", "host": "a1"}),
    node("a2", labels={"zone": "a", "host": "a2"}),
    node("b1", labels={"zone": "b", "host": "b1"}),
    node("none", labels={"host": "none"}),
)
WEB = ("team", (("app", "web"),))
NONE = np.zeros((2, 4), dtype=np.int64)


def pods(*on: tuple[int, str]) -> Amounts:
    """Return pods of two groups (group, node)."""
    found = NONE.copy()
    for at, name in on:
        found[at, NODES.index[name]] += 1
    return found


def names(suits: np.ndarray) -> set[str]:
    return {name for name, fits in zip(NODES.names, suits, strict=True) if fits}


# ---- between the pods of a gang


def by_both_fronts(rule: RequiredAffinity, there: Amounts) -> set[str]:
    found = names(rule.nodes(there, NODES.traits))
    check = rule.check(GangCounts(there, NODES.traits), NODES.traits)
    assert found == {name for at, name in enumerate(NODES.names) if check(at)}
    return found


def test_affinity_lets_pods_go_where_a_partner_is_for_every_key() -> None:
    one_key = RequiredAffinity(0, ("zone",), (frozenset(),), frozenset({1}))
    assert by_both_fronts(one_key, pods((1, "a1"))) == {"a1", "a2"}
    assert by_both_fronts(one_key, pods((1, "none"))) == set()
    assert by_both_fronts(one_key, NONE) == set()
    keys = RequiredAffinity(0, ("zone", "host"), (frozenset(), frozenset()), frozenset({1}))
    assert by_both_fronts(keys, pods((1, "a1"))) == {"a1"}


def test_values_of_existing_pods_count_beside_partners() -> None:
    """And where there are any, the first-pod rule does not apply."""
    rule = RequiredAffinity(0, ("zone",), (frozenset({"b"}),), frozenset({0}))
    assert not rule.allows_first_pod
    assert by_both_fronts(rule, NONE) == {"b1"}
    assert by_both_fronts(rule, pods((0, "a1"))) == {"a1", "a2", "b1"}


def test_the_first_pod_of_a_group_that_selects_itself_goes_wherever_the_keys_are() -> None:
    """While no pod matches in any domain; one on a node without the key does not count."""
    rule = RequiredAffinity(0, ("zone",), (frozenset(),), frozenset({0}))
    assert rule.allows_first_pod
    assert by_both_fronts(rule, NONE) == {"a1", "a2", "b1"}
    assert by_both_fronts(rule, pods((0, "none"))) == {"a1", "a2", "b1"}
    assert by_both_fronts(rule, pods((0, "b1"))) == {"b1"}


def test_affinity_bounds_the_pods_near_the_first_and_near_each_partner() -> None:
    """One domain for the first pod, and one for each pod of another group that is a partner."""
    itself = RequiredAffinity(0, ("zone",), (frozenset(),), frozenset({0}))
    assert itself.most((9, 2), [np.array([3, 5, 4])]) == 5
    both = RequiredAffinity(0, ("zone",), (frozenset(),), frozenset({0, 1}))
    assert both.most((9, 1), [np.array([3, 5, 4])]) == 9
    assert both.most((9, 1), [np.array([3, 5, 4]), np.array([1, 1, 1])]) == 2


def test_anti_affinity_closes_the_domain_of_the_other_group() -> None:
    """A node without the key is in no domain."""
    pair, there = AntiAffinity(0, 1, "zone"), pods((1, "a1"), (1, "none"))
    caps = np.full(4, 7)
    pair.restrict(caps, there, NODES.traits)
    assert caps.tolist() == [0, 0, 7, 7]
    check = pair.check(GangCounts(there, NODES.traits))
    assert [check(at) for at in range(4)] == [False, False, True, True]


def test_anti_affinity_of_a_group_with_itself_leaves_one_pod_a_domain() -> None:
    pair, caps = AntiAffinity(0, 0, "zone"), np.full(4, 7)
    pair.restrict(caps, NONE, NODES.traits)
    assert caps.tolist() == [1, 1, 1, 7]
    limit = pair.limit(7, NODES.traits)
    assert limit.cut(np.arange(4), np.full(4, 7)).tolist() == [1, 0, 1, 7]
    assert pair.most(np.array([6, 0, 2]), 3) == 2 + 3


# ---- beside existing pods


def term(key: str = "zone", app: str = "web") -> PodTerm:
    return PodTerm(key, (require("app", "In", app),), ("team",))


def asking(asked: PodShape, app: str = "w", priority: int = 0) -> PendingGang:
    whole = gang("g", group("w", 2, asked))
    members = (Member("w", asked, (("app", app),)),) * 2
    return PendingGang(whole.key, 0, 0.0, whole.minimum, (), members, priority)


def existing(*on: str, anti_affinity: tuple[PodTerm, ...] = ()) -> ExistingPods:
    index = PodIndex()
    for name in on:
        index.use(WEB, anti_affinity, name, +1)
    return ExistingPods(index)


def allowed(asked: PodShape, there: ExistingPods, priority: int = 0) -> tuple[Requirement, ...]:
    found = gang_constraints(asking(asked, priority=priority), there, NODES)
    return found.shapes[0].restrictions.existing_pods


def test_anti_affinity_to_existing_pods_counts_both_ways() -> None:
    out = (Requirement("zone", "NotIn", ("a",)),)
    assert allowed(shape(anti_affinity=[term()]), existing("a1")) == out
    assert allowed(shape(), existing("a1", anti_affinity=(term(app="w"),))) == out
    assert allowed(shape(), existing("a1", anti_affinity=(term(app="other"),))) == ()


def test_affinity_to_existing_pods_leaves_their_values() -> None:
    assert allowed(shape(affinity=[term()]), existing("b1")) == (Requirement("zone", "In", ("b",)),)
    assert allowed(shape(affinity=[term()]), existing()) == (Requirement("zone", "In", ()),)


@pytest.mark.parametrize(("priority", "nodes"), [(5, ("b1",)), (6, ())])
def test_a_nominated_pod_is_in_the_way_of_its_priority_and_lower(
    priority: int, nodes: tuple[str, ...]
) -> None:
    """On its node alone."""
    index = PodIndex()
    index.nominate(NominatedPod(WEB, (), "b1", 5), +1)
    found = allowed(shape(anti_affinity=[term()]), ExistingPods(index), priority)
    assert found == ((Requirement(NODE_NAME, "NotIn", nodes),) if nodes else ())


def test_pods_that_a_term_selects_in_part_have_no_answer() -> None:
    asked = shape(anti_affinity=[term(app="w-0")])
    whole = gang("g", group("w", 2, asked))
    members = tuple(Member("w", asked, (("app", f"w-{at}"),)) for at in range(2))
    torn = PendingGang(whole.key, 0, 0.0, whole.minimum, (), members)
    with pytest.raises(PartlySelectedError, match="w: a pod affinity or spread selector"):
        gang_constraints(torn, existing(), NODES)


def test_a_group_waits_for_assumed_pods_whose_coming_would_not_requeue_it() -> None:
    """kube-scheduler asks a namespace selector without the labels of the namespace."""
    labels = (require("of", "In", "us"),)
    index = PodIndex()
    index.put_namespace("team", {"of": "us"})
    assumed = ExistingPods(index, [AssumedPods(frozenset((WEB,)), "a1")])
    by_label = PodTerm("zone", (require("app", "In", "web"),), (), labels)
    with pytest.raises(WaitForBindingError):
        allowed(shape(affinity=[by_label]), assumed)
    assert allowed(shape(affinity=[term()]), assumed) == (Requirement("zone", "In", ("a",)),)
