"""Topology spread constraints of gangs: how many pods each domain takes."""

import numpy as np
import pytest

from scheduling.cycle import Settings, run_cycle
from scheduling.filters.domain_counts import CountedDomains
from scheduling.filters.pod_topology_spread import SpreadRule
from scheduling.model.constraints import PodTerm, SpreadConstraint
from scheduling.model.gang import Group, Member, PendingGang
from scheduling.model.node import Node
from scheduling.model.pod import PodShape
from scheduling.model.verdict import Admitted, Reason, Refusal, Verdict
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.pod_index import AssumedPods, ExistingPods, PodIndex, Presence
from tests.builders import columns, group, node, require, shape, taint
from tests.scheduling.admission.test_interdependent import HOST, ZONE, asking, nodes_of, zoned

ZONES = columns(zoned("a1", "a"), zoned("a2", "a"), zoned("b1", "b"), zoned("b2", "b"), zoned("c"))


def spread(
    *apps: str, key: str = ZONE, skew: int = 1, least: int = 1, ignore: bool = False
) -> SpreadConstraint:
    counted = PodTerm(key, (require("app", "In", *(apps or ("w",))),), ("team",))
    return SpreadConstraint(counted, skew, least, honors_affinity=not ignore)


def spreading(*constraints: SpreadConstraint, cpu: int = 1) -> PodShape:
    return shape(cpu=cpu, spread=constraints)


def decide(
    *groups: Group,
    existing: ExistingPods | None = None,
    on: NodeSnapshot = ZONES,
    surplus: tuple[tuple[Group, ...], ...] = (),
) -> Verdict:
    [decision] = run_cycle([asking(*groups, surplus=surplus)], on, existing=existing)
    return decision.verdict


def by_zone(verdict: Verdict, pod_set: str = "w") -> dict[str, int]:
    found: dict[str, int] = {}
    for name, count in nodes_of(verdict, pod_set).items():
        found[name[0]] = found.get(name[0], 0) + count
    return found


def refused(verdict: Verdict) -> Refusal:
    assert isinstance(verdict, Refusal), verdict
    return verdict


def crowd(**counts: int) -> ExistingPods:
    """Return existing workers of others on nodes."""
    table = PodIndex()
    for name, count in counts.items():
        for _ in range(count):
            table.use(("team", (("app", "w"),)), (), name, +1)
    return ExistingPods(table)


# ---- one constraint


def test_workers_are_spread_over_the_zones_and_go_nowhere_else() -> None:
    """A node without the key is in no domain."""
    worker = spreading(spread())
    assert by_zone(decide(group("w", 7, worker))) in ({"a": 4, "b": 3}, {"a": 3, "b": 4})
    assert by_zone(decide(group("w", 16, worker))) == {"a": 8, "b": 8}


def test_the_full_domain_stops_all_others_and_the_refusal_says_so() -> None:
    """Room for three more is left in zone b."""
    on = columns(zoned("a1", "a", cpu=2), zoned("b1", "b", cpu=6), zoned("c", cpu=9))
    assert by_zone(decide(group("w", 5, spreading(spread())), on=on)) == {"a": 2, "b": 3}
    verdict = refused(decide(group("w", 6, spreading(spread())), on=on))
    assert verdict.reason is Reason.NO_FEASIBLE_NODE
    assert verdict.message == (
        "5 of 6 w fit: topology spread over zone (maxSkew 1) rules out 1 node for more: a holds "
        "2, so no zone may hold more than 3"
    )
    [numbers] = verdict.pod_sets
    assert numbers.fit == 5
    assert dict(numbers.rejections)["PodTopologySpread"] == 2, "the closed one and the keyless one"


def test_a_larger_skew_lets_more_pods_pile_up() -> None:
    on = columns(zoned("a1", "a", cpu=2), zoned("b1", "b", cpu=6))
    assert by_zone(decide(group("w", 7, spreading(spread(skew=3))), on=on)) == {"a": 2, "b": 5}
    assert refused(decide(group("w", 8, spreading(spread(skew=3))), on=on))


def test_existing_pods_are_counted_unless_they_are_being_deleted() -> None:
    on = columns(zoned("a1", "a"), zoned("b1", "b"))
    worker = spreading(spread())
    assert by_zone(decide(group("w", 2, worker), existing=crowd(a1=2), on=on)) == {"b": 2}
    leaving = PodIndex()
    for _ in range(2):
        leaving.use(("team", (("app", "w"),)), (), "a1", +1, Presence.LEAVING)
    verdict = decide(group("w", 2, worker), existing=ExistingPods(leaving), on=on)
    assert by_zone(verdict) == {"a": 1, "b": 1}


def test_pods_of_another_namespace_are_not_counted() -> None:
    table = PodIndex()
    for _ in range(2):
        table.use(("others", (("app", "w"),)), (), "a1", +1)
    on = columns(zoned("a1", "a"), zoned("b1", "b"))
    verdict = decide(group("w", 2, spreading(spread())), existing=ExistingPods(table), on=on)
    assert by_zone(verdict) == {"a": 1, "b": 1}


def test_a_cordoned_domain_counts_and_an_unsuitable_one_does_not() -> None:
    """As in kube-scheduler: what the node selector leaves out is no domain, a cordon is nothing."""
    full = Node("b1", {ZONE: "b"}, (), True, {"cpu": 4000, "memory": 2**40, "pods": 9})
    on = columns(zoned("a1", "a"), full)
    assert refused(decide(group("w", 2, spreading(spread())), on=on))
    chosen = shape(cpu=1, selector={ZONE: "a"}, spread=[spread()])
    assert by_zone(decide(group("w", 2, chosen), on=on)) == {"a": 2}


@pytest.mark.parametrize(("honors", "fit"), [(True, 4), (False, 1)])
def test_a_tainted_domain_counts_unless_taints_are_honored(honors: bool, fit: int) -> None:
    tainted = node("b1", cpu=4, labels={ZONE: "b"}, taints=(taint("busy"),))
    on = columns(zoned("a1", "a"), tainted)
    worker = spreading(SpreadConstraint(spread().counted, 1, honors_taints=honors))
    assert by_zone(decide(group("w", fit, worker), on=on)) == {"a": fit}
    if fit < 4:
        assert refused(decide(group("w", fit + 1, worker), on=on))


def test_a_cordon_without_its_taint_leaves_a_domain() -> None:
    cordoned = node("b1", cpu=4, labels={ZONE: "b"}, unschedulable=True)
    worker = spreading(SpreadConstraint(spread().counted, 1, honors_taints=True))
    assert refused(decide(group("w", 2, worker), on=columns(zoned("a1", "a"), cordoned)))


@pytest.mark.parametrize(("skew", "fit"), [(1, 0), (2, 3)])
def test_a_nominated_pod_is_in_the_way_and_lifts_nothing(skew: int, fit: int) -> None:
    """With it zone a may hold one more, or none; only what is bound lifts zone b."""
    table = PodIndex()
    table.use(("team", (("app", "w"),)), (), "a1", +1, Presence.NOMINATED)
    on = columns(zoned("a1", "a"), zoned("b1", "b", cpu=1 if skew > 1 else 0))
    worker = spreading(spread(skew=skew))
    if fit:
        found = by_zone(decide(group("w", fit, worker), existing=ExistingPods(table), on=on))
        assert found == {"a": 2, "b": 1}
    assert refused(decide(group("w", fit + 1, worker), existing=ExistingPods(table), on=on))


def test_a_pod_that_its_own_constraint_does_not_count_goes_where_others_are_even() -> None:
    """It changes nothing for the next."""
    on = columns(zoned("a1", "a"), zoned("b1", "b"))
    worker = spreading(spread("web"))
    table = PodIndex()
    for _ in range(2):
        table.use(("team", (("app", "web"),)), (), "a1", +1)
    assert by_zone(decide(group("w", 4, worker), existing=ExistingPods(table), on=on)) == {"b": 4}


# ---- several constraints, several pod sets


def test_zones_and_hosts_at_once() -> None:
    """One per host, so that two fit in each zone."""
    worker = spreading(spread(), spread(key=HOST))
    verdict = decide(group("w", 4, worker), on=ZONES)
    assert nodes_of(verdict, "w") == {"a1": 1, "a2": 1, "b1": 1, "b2": 1}
    assert by_zone(decide(group("w", 16, worker))) == {"a": 8, "b": 8}


def test_the_head_counts_where_the_selector_picks_it() -> None:
    """It may come first or last: only together are all of them even."""
    on = columns(zoned("a1", "a", cpu=1), zoned("b1", "b", cpu=3))
    groups = group("head", 1, shape(cpu=1)), group("w", 3, spreading(spread("w", "head")))
    verdict = decide(*groups, on=on)
    assert isinstance(verdict, Admitted)
    assert set(nodes_of(verdict, "w") | nodes_of(verdict, "head")) == {"a1", "b1"}


def test_surplus_is_spread_with_the_minimum() -> None:
    on = columns(zoned("a1", "a", cpu=3), zoned("b1", "b", cpu=9))
    worker = spreading(spread())
    verdict = decide(group("w", 2, worker), on=on, surplus=((group("w", 1, worker),),) * 8)
    assert isinstance(verdict, Admitted)
    assert verdict.units == tuple(range(5))
    assert by_zone(verdict) == {"a": 3, "b": 4}


def test_gangs_of_one_cycle_count_each_other() -> None:
    on = columns(zoned("a1", "a", cpu=1), zoned("b1", "b", cpu=9))
    gangs = [asking(group("w", 2, spreading(spread())), name=name) for name in "xy"]
    one, other = run_cycle(gangs, on)
    assert by_zone(one.verdict) == {"a": 1, "b": 1}
    assert by_zone_or_none(other.verdict) is None


def by_zone_or_none(verdict: Verdict) -> dict[str, int] | None:
    return by_zone(verdict) if isinstance(verdict, Admitted) else None


def test_equal_pods_that_a_constraint_tells_apart_are_unsupported() -> None:
    worker = spreading(spread("w-0"))
    asked = asking(group("w", 2, worker))
    members = tuple(Member("w", worker, (("app", f"w-{at}"),)) for at in range(2))
    torn = PendingGang(asked.key, 0, 0.0, asked.minimum, (), members)
    [decision] = run_cycle([torn], ZONES)
    assert refused(decision.verdict).reason is Reason.UNSUPPORTED


# ---- what the pin changes


def test_too_few_domains_are_said() -> None:
    """Then the least is 0, whatever they hold."""
    on = columns(zoned("a1", "a"), zoned("b1", "b"))
    worker = spreading(spread(skew=2, least=3))
    assert by_zone(decide(group("w", 4, worker), on=on)) == {"a": 2, "b": 2}
    verdict = refused(decide(group("w", 5, worker), on=on))
    assert "2 of 3 domains (minDomains) exist, so no zone may hold more than 2" in verdict.message


def test_min_domains_hold_on_each_node_once_pods_are_pinned() -> None:
    """A pinned pod sees one domain of at least two: the least is 0, and its node may hold one."""
    worker = spreading(spread(least=2))
    verdict = decide(group("w", 4, worker), on=ZONES)
    assert nodes_of(verdict, "w") == {"a1": 1, "a2": 1, "b1": 1, "b2": 1}
    verdict = refused(decide(group("w", 5, worker), on=ZONES))
    assert verdict.reason is Reason.UNSUPPORTED
    named = "w: topologySpreadConstraints over zone with minDomains 2 (leave minDomains out)"
    assert verdict.message.endswith(named)


def test_others_may_pile_up_where_no_pinned_pod_is_constrained() -> None:
    on = columns(zoned("a1", "a", cpu=1), zoned("b1", "b", cpu=1), zoned("c", cpu=4))
    groups = group("w", 2, spreading(spread("w", "x", least=2))), group("x", 4, shape(cpu=1))
    assert nodes_of(decide(*groups, on=on), "x") == {"c": 4}


def test_a_constraint_that_ignores_the_pin_is_kept_in_any_order() -> None:
    """One per host is right whichever comes first; two per host only after all have one."""
    worker = spreading(spread(key=HOST, ignore=True))
    on = columns(zoned("a1", "a"), zoned("b1", "b"))
    assert nodes_of(decide(group("w", 2, worker), on=on), "w") == {"a1": 1, "b1": 1}
    verdict = refused(decide(group("w", 3, worker), on=on))
    assert verdict.reason is Reason.UNSUPPORTED
    assert verdict.message.endswith("over host with nodeAffinityPolicy Ignore (use Honor)")


def test_assumed_pods_lift_nothing_where_the_pin_is_ignored() -> None:
    """They may be bound last; each counts in its own zone all the same."""
    kind = frozenset([("team", (("app", "w"),))])
    on = columns(zoned("a1", "a"), zoned("b1", "b"))
    assumed = ExistingPods(PodIndex(), [AssumedPods(kind, "a1"), AssumedPods(kind, "b1")])
    verdict = refused(
        decide(group("w", 2, spreading(spread(ignore=True))), existing=assumed, on=on)
    )
    assert verdict.reason is Reason.UNSUPPORTED
    assert by_zone(decide(group("w", 2, spreading(spread())), existing=assumed, on=on)) == {
        "a": 1,
        "b": 1,
    }


def test_a_constraint_that_no_order_satisfies_is_a_plain_no() -> None:
    on = columns(zoned("a1", "a", cpu=1), zoned("b1", "b"))
    verdict = refused(decide(group("w", 4, spreading(spread(ignore=True))), on=on))
    assert verdict.reason is Reason.NO_FEASIBLE_NODE


def test_gangs_wait_for_pods_whose_count_they_would_change() -> None:
    """Until they are bound; a gang that they do not count is none of their business."""
    kind = frozenset([("team", (("app", "w"),))])
    counted = spread(ignore=True).counted
    existing_pods = ExistingPods(PodIndex(), [AssumedPods(kind, "a1", pinned_spread=(counted,))])
    verdict = refused(decide(group("w", 1, shape(cpu=1)), existing=existing_pods))
    assert verdict.reason is Reason.UNDECIDED
    assert "waits until released pods are bound" in verdict.message
    assert isinstance(decide(group("x", 1, shape(cpu=1)), existing=existing_pods), Admitted)


# ---- size


@pytest.mark.parametrize("key", [ZONE, HOST])
def test_a_thousand_workers_on_a_thousand_nodes_take_a_few_looks(key: str) -> None:
    """The least is lifted at once, not pod by pod."""
    on = columns(*(zoned(f"{'abc'[at % 3]}{at:04}", "abc"[at % 3]) for at in range(1000)))
    asked = asking(group("w", 1000, spreading(spread(key=key))))
    [decision] = run_cycle([asked], on, Settings(search_steps=50_000))
    assert sorted(by_zone(decision.verdict).values()) == [333, 333, 334]


def test_a_gang_without_constraints_is_not_looked_at_for_those_with_some() -> None:
    """Its pods count all the same."""
    plain = asking(group("w", 2, shape(cpu=4)), name="x")
    picky = asking(group("w", 2, spreading(spread())), name="y")
    on = columns(zoned("a1", "a", cpu=8), zoned("b1", "b", cpu=1))
    one, other = run_cycle([plain, picky], on)
    assert nodes_of(one.verdict, "w") == {"a1": 2}
    assert refused(other.verdict).reason in (
        Reason.NO_FEASIBLE_NODE,
        Reason.INSUFFICIENT_RESOURCES,
    )


def test_a_rule_bounds_its_pods_by_the_highest_minimum_there_can_be() -> None:
    """Not by the minimum of now: other pods that it counts can lift it."""
    rule = SpreadRule(
        owner=0,
        constraint=spread(),
        counted=frozenset({0, 1}),
        domains=CountedDomains(("a", "b"), np.array([0, 1])),
        existing=np.array([0, 0]),
        possible=np.array([0, 0]),
        nominated=np.array([0, 0]),
        floor=None,
        any_order=False,
    )
    none = np.zeros((2, 2), dtype=np.int64)
    assert rule.most(none, {0: np.array([5, 0]), 1: np.array([0, 2])}) == 3
    assert rule.most(none, {0: np.array([5, 0]), 1: np.array([0, 0])}) == 1
