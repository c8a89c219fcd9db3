"""Gangs with inter-pod constraints, towards existing pods and among their own."""

from collections.abc import Iterable

import numpy as np
import pytest

from scheduling.cycle import Settings, run_cycle
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.inter_pod_affinity import gang_constraints
from scheduling.model.constraints import PodTerm
from scheduling.model.gang import Group, Member, PendingGang
from scheduling.model.node import Node
from scheduling.model.pod import PodShape
from scheduling.model.verdict import Admitted, Reason, Refusal, Verdict
from scheduling.placement.interdependent.partial_placement import PartialPlacement
from scheduling.placement.interdependent.upper_bounds import is_impossible
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.pod_index import ExistingPods, PodIndex
from tests.builders import columns, gang, group, node, require, shape

ZONE, HOST = "zone", "host"


def term(app: str, key: str = ZONE) -> PodTerm:
    return PodTerm(key, (require("app", "In", app),), ("team",))


def constrained(
    affinity: Iterable[PodTerm] = (), anti_affinity: Iterable[PodTerm] = (), cpu: int = 1
) -> PodShape:
    return shape(cpu=cpu, affinity=affinity, anti_affinity=anti_affinity)


def zoned(name: str, zone: str = "", cpu: int = 4) -> Node:
    return node(name, cpu=cpu, labels={HOST: name, **({ZONE: zone} if zone else {})})


ZONES = columns(zoned("a1", "a"), zoned("a2", "a"), zoned("b1", "b"), zoned("b2", "b"), zoned("c"))


def standing(**apps: str) -> PodIndex:
    """Return existing pods without constraints: node -> app."""
    table = PodIndex()
    for name, app in apps.items():
        table.use(("team", (("app", app),)), (), name, +1)
    return table


def asking(
    *groups: Group, name: str = "g", surplus: tuple[tuple[Group, ...], ...] = ()
) -> PendingGang:
    """Return a gang whose pods carry the name of their pod set as app."""
    made = gang(name, *groups, surplus=surplus)
    members = tuple(
        Member(each.pod_set, each.shape, (("app", each.pod_set),)) for each in made.groups()
    )
    return PendingGang(made.key, 0, 0.0, made.minimum, made.surplus, members)


def decide(
    *groups: Group, table: PodIndex | None = None, on: NodeSnapshot = ZONES, steps: int = 4_000_000
) -> Verdict:
    existing = ExistingPods(table or PodIndex())
    [decision] = run_cycle([asking(*groups)], on, Settings(search_steps=steps), existing)
    return decision.verdict


def nodes_of(verdict: Verdict, pod_set: str) -> dict[str, int]:
    assert isinstance(verdict, Admitted), verdict
    [found] = [a for a in verdict.placement.assignments if a.pod_set == pod_set]
    return dict(found.nodes)


def zones_of(verdict: Verdict, pod_set: str) -> set[str]:
    return {name[0] for name in nodes_of(verdict, pod_set)}


def test_surplus_alone_is_placed_beside_members_that_it_is_drawn_to() -> None:
    """The minimum runs and asks for nothing: there is nothing of it to plan waves for."""
    worker = constrained(affinity=[term("w")])
    wanted = asking(surplus=((group("w", 1, worker),), (group("w", 1, worker),)))
    [decision] = run_cycle([wanted], ZONES, existing=ExistingPods(PodIndex()))
    assert isinstance(decision.verdict, Admitted)
    assert decision.verdict.units == (0, 1)


# ---- existing pods


def test_a_pod_that_keeps_ours_away_closes_its_domain() -> None:
    """A node without the label belongs to no domain."""
    table = PodIndex()
    table.use(("others", ()), (term("w"),), "a1", +1)
    verdict = decide(group("w", 12, constrained()), table=table)
    assert zones_of(verdict, "w") == {"b", "c"}
    refused = decide(group("w", 13, constrained()), table=table)
    assert isinstance(refused, Refusal)
    assert "left out: 2 are ruled out by affinity or anti-affinity between pods" in refused.message


def test_ours_keep_away_from_pods_that_stand() -> None:
    """Only within the domain of the key."""
    worker = constrained(anti_affinity=[term("web", HOST)])
    assert set(nodes_of(decide(group("w", 16, worker), table=standing(a1="web")), "w")) == {
        "a2", "b1", "b2", "c",
    }  # fmt: skip


def test_ours_go_where_the_pods_are_that_they_want() -> None:
    """A node without the label is in no such place."""
    worker = constrained(affinity=[term("web")])
    assert zones_of(decide(group("w", 8, worker), table=standing(b1="web")), "w") == {"b"}
    refused = decide(group("w", 1, worker), table=standing(c="web"))
    assert isinstance(refused, Refusal)
    assert refused.reason is Reason.NO_FEASIBLE_NODE
    assert "5 are ruled out by affinity or anti-affinity between pods" in refused.message


def test_all_affinity_terms_must_pick_the_same_pod() -> None:
    """One pod for each term is not enough."""
    worker = constrained(affinity=[term("web"), term("db", HOST)])
    assert isinstance(decide(group("w", 1, worker), table=standing(a1="web", a2="db")), Refusal)


def test_a_key_in_the_placement_does_not_depend_on_existing_pods() -> None:
    """The coordinator finds the slot of a pod by the key of its shape."""
    worker = constrained(anti_affinity=[term("web", HOST)])
    verdict = decide(group("w", 1, worker), table=standing(a1="web"))
    assert isinstance(verdict, Admitted)
    assert verdict.placement.assignments[0].shape == worker.key


# ---- pods of the gang


TWO_ZONES = columns(*(zoned(name, name[0]) for name in ("a1", "a2", "b1", "b2")))
"""A zone holds eight pods of one core."""

LEADERS, FOLLOWERS, SERIES = (
    constrained(anti_affinity=[term("l")]),
    constrained([term("l")]),
    constrained([term("w")]),
)


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ([group("l", 2, LEADERS), group("w", 14, FOLLOWERS)], "Admitted"),
        ([group("l", 3, LEADERS)], Reason.NO_FEASIBLE_NODE),
        ([group("l", 1, constrained()), group("w", 9, FOLLOWERS)], Reason.NO_FEASIBLE_NODE),
        ([group("w", 8, SERIES)], "Admitted"),
        ([group("w", 9, SERIES)], Reason.NO_FEASIBLE_NODE),
    ],
)
def test_pods_are_where_their_first_is_and_near_each_of_those_they_follow(
    groups: list[Group], expected: str
) -> None:
    """What fits is not refused by sums, and what does not is refused for certain."""
    verdict = decide(*groups, on=TWO_ZONES)
    said = "Admitted" if isinstance(verdict, Admitted) else verdict.reason
    assert said == expected
    found = gang_constraints(asking(*groups), ExistingPods(PodIndex()), TWO_ZONES)
    earlier = np.zeros((len(groups), len(TWO_ZONES.names)), dtype=np.int64)
    counts = [each.count for each in groups]
    partial = PartialPlacement(
        found.shapes, counts, found.internal_constraints, FreeCapacity.of(TWO_ZONES), earlier
    )
    assert is_impossible(partial) is (said != "Admitted")


def test_workers_that_keep_apart_get_a_domain_each() -> None:
    """One per host; per zone two, and any number where there is no zone."""
    apart = constrained(anti_affinity=[term("w", HOST)])
    assert nodes_of(decide(group("w", 5, apart)), "w") == dict.fromkeys(ZONES.names, 1)
    refused = decide(group("w", 6, apart))
    assert isinstance(refused, Refusal)
    assert refused.message.startswith("5 of 6 w fit: required affinity or anti-affinity between")
    by_zone = decide(group("w", 6, constrained(anti_affinity=[term("w")])))
    assert nodes_of(by_zone, "w")["c"] == 4


def test_workers_that_keep_together_share_one_domain() -> None:
    """The first may begin anywhere; a zone that holds them all is found."""
    together = constrained(affinity=[term("w")])
    assert len(zones_of(decide(group("w", 8, together)), "w")) == 1
    assert isinstance(decide(group("w", 9, together)), Refusal)


def test_a_series_goes_on_where_it_stands() -> None:
    """Pods of an earlier gang count, in any zone."""
    together = constrained(affinity=[term("w")])
    verdict = decide(group("w", 16, together), table=standing(a1="w", b2="w"))
    assert zones_of(verdict, "w") == {"a", "b"}


def test_workers_near_their_head() -> None:
    """The head is placed where they all have room."""
    head, worker = constrained(cpu=1), constrained(affinity=[term("head")])
    verdict = decide(group("head", 1, head), group("w", 7, worker))
    assert zones_of(verdict, "w") == zones_of(verdict, "head")
    assert isinstance(decide(group("head", 1, head), group("w", 8, worker)), Refusal)


def test_head_and_workers_that_all_want_each_other() -> None:
    """Whoever comes first, they end up in one place."""
    whole = PodTerm(ZONE, (require("app", "Exists"),), ("team",))
    verdict = decide(
        group("head", 1, constrained(affinity=[whole])),
        group("w", 7, constrained(affinity=[whole], cpu=1)),
    )
    assert zones_of(verdict, "w") == zones_of(verdict, "head")


def test_a_head_that_keeps_workers_away() -> None:
    """Workers know nothing of it, it counts both ways."""
    head = constrained(anti_affinity=[term("w")])
    verdict = decide(group("head", 1, head), group("w", 12, constrained()))
    assert not zones_of(verdict, "head") & zones_of(verdict, "w") - {"c"}


def test_constraints_between_surplus_and_minimum_hold() -> None:
    """A unit of the surplus is placed beside what stands, as long as there is a place."""
    apart = constrained(anti_affinity=[term("w", HOST)])
    unit = (group("w", 1, apart),)
    asked = asking(group("w", 3, apart), surplus=(unit,) * 4)
    [decision] = run_cycle([asked], ZONES)
    assert isinstance(decision.verdict, Admitted)
    assert decision.verdict.units == (0, 1)
    assert nodes_of(decision.verdict, "w") == dict.fromkeys(ZONES.names, 1)


def test_constraints_between_gangs_of_one_cycle_hold() -> None:
    """What the first is promised, the second sees."""
    loner = constrained(anti_affinity=[term("w", HOST)])
    gangs = [asking(group("w", 3, loner), name="x"), asking(group("w", 3, loner), name="y")]
    one, other = run_cycle(gangs, ZONES)
    assert isinstance(one.verdict, Admitted)
    assert isinstance(other.verdict, Refusal)


def test_anti_affinity_holds_against_pods_without_constraints() -> None:
    """A gang without terms must heed those of the gang before it."""
    gangs = [
        asking(group("w", 5, constrained(anti_affinity=[term("z")])), name="x"),
        asking(group("z", 1, constrained()), name="y"),
    ]
    on = columns(zoned("a1", "a"), zoned("a2", "a"))
    one, other = run_cycle(gangs, on)
    assert isinstance(one.verdict, Admitted)
    assert isinstance(other.verdict, Refusal)


def test_equal_pods_that_a_term_tells_apart_are_unsupported() -> None:
    """Which of them goes where would matter, and a placement does not say."""
    worker = constrained(anti_affinity=[term("w-0", HOST)])
    asked = asking(group("w", 2, worker))
    members = tuple(Member("w", worker, (("app", f"w-{at}"),)) for at in range(2))
    torn = PendingGang(asked.key, 0, 0.0, asked.minimum, (), members)
    [decision] = run_cycle([torn], ZONES)
    assert isinstance(decision.verdict, Refusal)
    assert decision.verdict.reason is Reason.UNSUPPORTED
    assert (
        "w: a pod affinity or spread selector matches some of its equal pods"
        in decision.verdict.message
    )


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        (0, Reason.UNDECIDED),
        (5000, Reason.UNDECIDED),
        (50_000, Reason.UNDECIDED),
        (4_000_000, Reason.NO_FEASIBLE_NODE),
    ],
)
def test_running_out_of_steps_is_never_taken_for_a_no(steps: int, reason: Reason) -> None:
    groups = [group(name, 4, constrained(anti_affinity=[term("b", HOST)], cpu=2)) for name in "ab"]
    verdict = decide(*groups, on=ZONES, steps=steps)
    assert isinstance(verdict, Refusal)
    assert verdict.reason is reason


def test_a_thousand_workers_apart_on_a_thousand_nodes() -> None:
    """One sweep, no search."""
    on = columns(*(zoned(f"n{at:04}", "a") for at in range(1000)))
    verdict = decide(
        group("w", 1000, constrained(anti_affinity=[term("w", HOST)])), on=on, steps=100_000
    )
    assert len(nodes_of(verdict, "w")) == 1000
