"""Existing and assumed pods, by the terms that select them."""

import pytest

from scheduling.model.constraints import PodTerm, Requirement
from scheduling.state.pod_index import AssumedPods, ExistingPods, PodIndex, Presence
from tests.builders import require

RAY = ("team", (("app", "ray"),))
WEB = ("others", (("app", "web"),))


def term(
    *selector: Requirement,
    namespaces: tuple[str, ...] = ("team",),
    elsewhere: tuple[Requirement, ...] | None = None,
) -> PodTerm:
    return PodTerm("zone", selector, namespaces, elsewhere)


@pytest.mark.parametrize(
    ("selector", "picked"),
    [
        ((), True),
        ((require("app", "In", "ray", "web"),), True),
        ((require("app", "In", "web"),), False),
        ((require("app", "NotIn", "web"),), True),
        ((require("tier", "NotIn", "web"),), True),
        ((require("app", "Exists"),), True),
        ((require("app", "DoesNotExist"),), False),
        ((require("app", "Exists"), require("tier", "Exists")), False),
        ((require("", "In"),), False),
    ],
)
def test_selectors_pick_as_in_kubernetes(selector: tuple[Requirement, ...], picked: bool) -> None:
    """All requirements must hold; none at all picks everything."""
    assert PodIndex().picks([term(*selector)], RAY) is picked


def test_which_namespaces_a_term_reaches() -> None:
    """By name, or by the labels of the namespace; one that is not known has none."""
    table = PodIndex()
    by_label = term(namespaces=(), elsewhere=(require("team", "In", "b"),))
    everywhere = term(namespaces=(), elsewhere=())
    assert not table.picks([term()], WEB)
    assert table.picks([term(namespaces=("others",))], WEB)
    assert table.picks([everywhere], WEB)
    assert not table.picks([by_label], WEB)
    table.put_namespace("others", {"team": "b"})
    assert table.picks([by_label], WEB)
    table.put_namespace("others", None)
    table.put_namespace("unknown", None)
    assert not table.picks([by_label], WEB)


def test_an_answer_follows_pods_and_namespaces_that_come_and_go() -> None:
    """It is kept once it was asked for."""
    table = PodIndex()
    asked = (term(namespaces=(), elsewhere=(require("team", "In", "b"),)),)
    table.use(WEB, (), "n1", +1)
    assert table.nodes_of(asked) == set()
    table.put_namespace("others", {"team": "b"})
    assert table.nodes_of(asked) == {"n1"}
    table.use(WEB, (), "n2", +1)
    table.use(WEB, (), "n1", -1)
    assert table.nodes_of(asked) == {"n2"}


def test_existing_anti_affinity_ends_with_the_last_pod_that_has_it() -> None:
    """Only then do they constrain no other pod."""
    table, avoiding = PodIndex(), term()
    table.use(WEB, (avoiding,), "n1", +1)
    table.use(WEB, (avoiding,), "n1", +1)
    table.use(WEB, (avoiding,), "n1", -1)
    assert ExistingPods(table).existing_anti_affinity() == {avoiding: {"n1"}}
    table.use(WEB, (avoiding,), "n1", -1)
    assert not ExistingPods(table).constrain_others()


def test_assumed_pods_count_as_existing() -> None:
    """What is not bound yet will be; one that may be of two kinds is certain to be of neither."""
    existing_pods = ExistingPods(PodIndex(), [AssumedPods(frozenset((RAY,)), "n1", (term(),))])
    either = AssumedPods(frozenset((RAY, ("team", ()))), "n2")
    existing_pods.assume([either])
    asked = (term(require("app", "Exists")),)
    assert existing_pods.nodes_of(asked) == {"n1", "n2"}
    assert existing_pods.certain_nodes_of(asked) == {"n1"}
    assert existing_pods.existing_anti_affinity() == {term(): {"n1"}}


def test_a_nominated_pod_counts_for_anti_affinity_and_not_for_affinity() -> None:
    table, avoiding = PodIndex(), term()
    table.use(WEB, (avoiding,), "n1", +1, Presence.NOMINATED)
    existing_pods, asked = ExistingPods(table), (term(namespaces=("others",)),)
    assert existing_pods.nodes_of(asked) == {"n1"}
    assert existing_pods.certain_nodes_of(asked) == set()
    assert existing_pods.existing_anti_affinity() == {avoiding: {"n1"}}
    table.use(WEB, (avoiding,), "n1", -1, Presence.NOMINATED)
    assert existing_pods.nodes_of(asked) == set()
    assert not existing_pods.constrain_others()


def test_spread_counts_bound_assumed_possible_and_nominated_pods() -> None:
    """Pods by number; those being deleted count for affinity alone."""
    table, whole = PodIndex(), term(require("app", "In", "ray"))
    for node, presence in (
        ("n1", Presence.BOUND),
        ("n2", Presence.LEAVING),
        ("n3", Presence.NOMINATED),
    ):
        table.use(RAY, (), node, +1, presence)
        table.use(RAY, (), node, +1, presence)
    either = frozenset((RAY, ("team", ())))
    existing_pods = ExistingPods(
        table,
        [
            AssumedPods(frozenset((RAY,)), "n4", count=3),
            AssumedPods(either, "n5"),
            AssumedPods(either, "n3"),
        ],
    )
    found = existing_pods.spread_counts(whole, 0)
    assert (+found.bound, found.assumed) == ({"n1": 2}, {"n4": 3})
    assert (found.possible, found.nominated) == ({"n3": 1, "n5": 1}, {"n3": 2})
    assert existing_pods.nodes_of((whole,)) == {"n1", "n2", "n3", "n4", "n5"}
    table.use(RAY, (), "n1", -1, Presence.BOUND)
    assert existing_pods.spread_counts(whole, 0).bound["n1"] == 1


def test_pods_that_would_change_the_count_of_a_pinned_spread_must_wait() -> None:
    assumed = AssumedPods(frozenset((RAY,)), "n1", pinned_spread=(term(require("app", "Exists")),))
    existing_pods = ExistingPods(PodIndex(), [assumed])
    assert existing_pods.constrain_others()
    assert existing_pods.must_wait([WEB, RAY])
    assert not existing_pods.must_wait([WEB])
    assert not ExistingPods(PodIndex(), [AssumedPods(frozenset((RAY,)), "n1")]).constrain_others()
