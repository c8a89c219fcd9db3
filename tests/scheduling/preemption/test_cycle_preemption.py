"""A cycle that stops running gangs for a waiting one: what is taken, held, and said."""

from collections.abc import Iterable
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest

from scheduling.cycle import SOON, Settings, next_cycle
from scheduling.model.constraints import PodTerm, SpreadConstraint
from scheduling.model.gang import Member, PendingGang
from scheduling.model.queue import (
    Ordering,
    Queue,
    Reclaim,
    WhenBlocked,
    WhileBorrowing,
    WithinQueue,
)
from scheduling.model.shape.host_ports import HostPort
from scheduling.model.verdict import Refusal, Verdict
from scheduling.preemption.candidates import candidates
from scheduling.preemption.existing import AFFINITY, PORTS
from scheduling.preemption.preempting import LISTING
from scheduling.preemption.search import QUESTION, Search
from scheduling.queueing.queues import Queues
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.queueing.waiting import WaitingGangs
from scheduling.state.pod_index import ExistingPods, PodIndex
from tests.builders import GPU, columns, gang, group, node, require, shape
from tests.scheduling.preemption.cluster import Cluster, Spec, part

LOWER = WithinQueue.LOWER_PRIORITY


def taken(cluster: Cluster) -> dict[str, list[str]]:
    """What the next cycle would stop: gangs by name, replicas of surplus as name/replica."""
    return {
        each.preemptor.name: sorted(
            f"{p.gang.name}/{p.replica}" if p.replica else p.gang.name for p in each.parts
        )
        for each in cluster.cycle()
    }


def test_a_higher_priority_stops_a_lower_one_of_its_queue_and_is_told_what_it_waits_for() -> None:
    low = part("low", {"n1": 8})
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)], {"n1": 8}, [Spec("high", "a", 8, priority=1)], [low]
    )
    assert taken(cluster) == {"high": ["low"]}
    assert cluster.says("high") == (
        "Preempting: waits until 1 gang (team/low) has ended: 8 pods left; the room is held for it"
    )


def test_nothing_is_stopped_where_the_queue_does_not_say_so() -> None:
    cluster = Cluster(
        [Queue("a")], {"n1": 8}, [Spec("high", "a", 8, priority=1)], [part("low", {"n1": 8})]
    )
    assert taken(cluster) == {}
    assert cluster.says("high").startswith("InsufficientResources")


def test_an_equal_priority_is_not_stopped() -> None:
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)], {"n1": 8}, [Spec("new", "a", 8)], [part("old", {"n1": 8})]
    )
    assert taken(cluster) == {}


def test_surplus_goes_before_gangs_and_only_as_much_as_is_needed() -> None:
    parts = [
        part("old", {"n1": 4}, admitted=1),
        part("old", {"n1": 1}, replica="r1", admitted=1),
        part("old", {"n1": 1}, replica="r2", admitted=1),
        part("new", {"n1": 2}, admitted=2),
    ]
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)], {"n1": 8}, [Spec("high", "a", 1, priority=1)], parts
    )
    assert taken(cluster) == {"high": ["old/r2"]}


def test_a_gang_that_outlived_its_duration_goes_first_then_the_newest() -> None:
    parts = [
        part("first", {"n1": 2}, admitted=1),
        part("late", {"n1": 2}, admitted=9),
        part("outlived", {"n1": 2}, admitted=2, outlived=True),
    ]
    queue = Queue("a", within_queue=LOWER)
    one = Cluster([queue], {"n1": 6}, [Spec("high", "a", 2, priority=1)], parts)
    assert taken(one) == {"high": ["outlived"]}
    two = Cluster([queue], {"n1": 6}, [Spec("high", "a", 4, priority=1)], parts)
    assert taken(two) == {"high": ["late", "outlived"]}


def test_a_gang_that_outlived_its_duration_stays_where_one_of_a_lower_priority_is_enough() -> None:
    parts = [
        part("outlived", {"n1": 2}, priority=5, admitted=2, outlived=True),
        part("lower", {"n1": 2}, admitted=1),
    ]
    queue, gangs = Queue("a", within_queue=LOWER), [Spec("high", "a", 2, priority=10)]
    assert taken(Cluster([queue], {"n1": 4}, gangs, parts)) == {"high": ["lower"]}


def test_with_its_minimum_a_gang_loses_its_surplus() -> None:
    parts = [part("low", {"n1": 6}), part("low", {"n1": 2}, replica="r1")]
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)], {"n1": 8}, [Spec("high", "a", 6, priority=1)], parts
    )
    assert taken(cluster) == {"high": ["low", "low/r1"]}
    assert "1 gang (team/low) has ended: 8 pods left" in cluster.says("high")


def test_it_is_decided_on_nodes_not_on_sums() -> None:
    """`x` and `y` have four GPUs together, but only `whole` leaves three on one node."""
    parts = [
        part("x", {"n1": 2, "n2": 1}, admitted=3),
        part("y", {"n2": 1}, admitted=2),
        part("rest", {"n1": 2, "n2": 2}, admitted=0, priority=1),
        part("whole", {"n3": 4}, admitted=1),
    ]
    gangs = [Spec("high", "a", 1, priority=1, each=3)]
    cluster = Cluster([Queue("a", within_queue=LOWER)], {"n1": 4, "n2": 4, "n3": 4}, gangs, parts)
    assert taken(cluster) == {"high": ["whole"]}


def test_what_is_ending_already_is_waited_for_and_nothing_more_is_taken() -> None:
    parts = [part("low", {"n1": 4}), part("gone", {"n1": 4}, ending=True)]
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)], {"n1": 8}, [Spec("high", "a", 4, priority=1)], parts
    )
    assert taken(cluster) == {"high": ["gone"]}
    assert not cluster.stop(cluster.cycle())
    cluster.end()
    cluster.cycle()
    assert cluster.runs("high") == 4
    assert cluster.runs("low") == 4


@pytest.mark.parametrize("stray_first", [True, False])
def test_pods_of_an_earlier_cluster_of_the_same_name_are_another_part(stray_first: bool) -> None:
    """The earlier ones end: the gang of today runs on, or is stopped for itself."""
    parts = [part("low", {"n1": 2}, ending=True), part("low", {"n2": 8})]
    parts = parts if stray_first else parts[::-1]
    queue, nodes = Queue("a", within_queue=LOWER), {"n1": 2, "n2": 8}
    small = Cluster([queue], nodes, [Spec("high", "a", 2, priority=1)], parts)
    [found] = small.cycle()
    assert [each.is_ending for each in found.parts] == [True]
    wide = Cluster([queue], nodes, [Spec("high", "a", 10, priority=1)], parts)
    [found] = wide.cycle()
    assert [each.is_ending for each in found.parts] == [False]


def test_the_room_is_held_while_the_victims_end_and_others_are_told() -> None:
    """`other` would fit on what is free, and comes first by name: it waits with the reason."""
    gangs = [Spec("high", "a", 8, priority=1), Spec("other", "b", 2)]
    cluster = Cluster(
        [Queue("a", within_queue=LOWER), Queue("b")], {"n1": 8}, gangs, [part("low", {"n1": 6})]
    )
    cluster.stop(cluster.cycle())
    for _ in range(3):
        cluster.cycle()
        assert cluster.runs("other") == 0
    assert "room is held for team/high" in cluster.says("other")
    cluster.end()
    cluster.cycle()
    assert cluster.runs("high") == 8


def test_the_room_is_held_against_gangs_that_come_first_in_the_order() -> None:
    gangs = [Spec("high", "a", 8, priority=1), Spec("small", "b", 2, priority=9)]
    queues = [Queue("a", within_queue=LOWER), Queue("b", quota={GPU: 8})]
    cluster = Cluster(queues, {"n1": 8}, gangs[:1], [part("low", {"n1": 8})])
    cluster.stop(cluster.cycle())
    cluster.end()
    cluster.gangs = gangs
    cluster.cycle()
    assert cluster.runs("high") == 8


def test_the_room_is_free_again_when_the_preemptor_is_gone() -> None:
    gangs = [Spec("high", "a", 8, priority=1), Spec("other", "b", 2)]
    cluster = Cluster(
        [Queue("a", within_queue=LOWER), Queue("b")], {"n1": 8}, gangs, [part("low", {"n1": 6})]
    )
    cluster.stop(cluster.cycle())
    cluster.gangs = gangs[1:]
    cluster.cycle()
    assert cluster.runs("other") == 2


def test_a_gang_that_could_make_no_use_of_its_room_of_late_stops_nothing() -> None:
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)],
        {"n1": 8},
        [Spec("high", "a", 8, priority=1, setbacks=1)],
        [part("low", {"n1": 8})],
    )
    assert taken(cluster) == {}


def test_another_leader_finds_the_same_without_memory() -> None:
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)],
        {"n1": 8, "n2": 8},
        [Spec("high", "a", 8, priority=1)],
        [part("x", {"n1": 8}, admitted=1), part("y", {"n2": 8}, admitted=2)],
    )
    assert cluster.stop(cluster.cycle())
    assert not cluster.stop(cluster.cycle(forget=True))
    cluster.end()
    cluster.cycle(forget=True)
    assert cluster.runs("high") == 8
    assert cluster.runs("x") == 8


def test_a_victim_that_cannot_be_taken_is_replaced() -> None:
    parts = [
        part("new", {"n1": 8}, admitted=2, kept="a PodDisruptionBudget forbids it"),
        part("old", {"n2": 8}, admitted=1),
    ]
    queue = Queue("a", within_queue=LOWER)
    cluster = Cluster([queue], {"n1": 8, "n2": 8}, [Spec("high", "a", 8, priority=1)], parts)
    assert taken(cluster) == {"high": ["old"]}


def test_where_nothing_can_be_taken_the_refusal_says_why() -> None:
    parts = [part(n, {"n1": 2}, kept=f"{n} is precious") for n in ("x", "y", "z")]
    queue = Queue("a", within_queue=LOWER)
    cluster = Cluster([queue], {"n1": 6}, [Spec("high", "a", 2, priority=1)], parts)
    assert taken(cluster) == {}
    assert cluster.says("high").endswith(
        "; team/x cannot be stopped for it: x is precious; team/y cannot be stopped for it: "
        "y is precious; nor can 1 more"
    )


ONES = [part(f"one-{at}", {"n1": 1}, admitted=10.0 + at) for at in range(8)]


def test_one_large_gang_is_stopped_where_many_small_ones_would_be() -> None:
    """Though it was admitted before all of them."""
    parts = [*ONES, part("large", {"n2": 8})]
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)], {"n1": 8, "n2": 8}, [Spec("p", "a", 8, priority=1)], parts
    )
    assert taken(cluster) == {"p": ["large"]}


def test_many_small_gangs_are_stopped_where_the_large_one_has_a_higher_priority() -> None:
    parts = [*ONES, part("large", {"n2": 8}, priority=1)]
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)], {"n1": 8, "n2": 8}, [Spec("p", "a", 8, priority=2)], parts
    )
    assert taken(cluster) == {"p": sorted(f"one-{at}" for at in range(8))}


def test_of_as_many_gangs_those_with_fewer_pods_are_stopped() -> None:
    """Each node alone is enough; the gang with many pods is the newest."""
    few = replace(part("few", {"n2": 8}), room=(("n2", ((GPU, 8), ("pods", 1))),))
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)],
        {"n1": 8, "n2": 8},
        [Spec("p", "a", 8, priority=1)],
        [part("many", {"n1": 8}, admitted=10.0), few],
    )
    assert taken(cluster) == {"p": ["few"]}


def test_a_surplus_stops_nothing() -> None:
    parts = [part("high", {"n1": 4}, priority=1), part("low", {"n1": 4})]
    gangs = [Spec("high", "a", 4, priority=1, surplus=2)]
    cluster = Cluster([Queue("a", within_queue=LOWER)], {"n1": 8}, gangs, parts)
    assert taken(cluster) == {}


def test_a_gang_that_may_stop_one_which_was_admitted_before_it_is_asked_again() -> None:
    """In a FIFO queue the older one comes first, and the higher priority stops it then."""
    queue = Queue("a", ordering=Ordering.FIFO, within_queue=LOWER)
    gangs = [Spec("low", "a", 8), Spec("high", "a", 8, priority=1, created=1)]
    cluster = Cluster([queue], {"n1": 8}, gangs)
    assert cluster.rest(9)
    assert (cluster.runs("high"), cluster.runs("low")) == (8, 0)


def test_a_gang_that_may_stop_nothing_of_what_was_admitted_asks_for_no_cycle() -> None:
    gangs = [Spec("low", "a", 8), Spec("other", "a", 8, created=1)]
    cluster = Cluster([Queue("a", within_queue=LOWER)], {"n1": 8}, gangs)
    cluster.cycle()
    assert cluster.memory is not None
    assert (cluster.runs("low"), cluster.memory.asks_again_in) == (8, inf)


def test_nothing_is_begun_that_is_stopped_at_once_for_a_gang_of_a_queue_above_which_covers_it() -> (
    None
):
    queues = [
        Queue("root"),
        Queue("team", "root", {GPU: 4}),
        Queue("member", "team", reclaim=Reclaim.ANY),
        Queue("guest", "root"),
    ]
    gangs = [Spec("g", "guest", 4), Spec("m", "member", 4, created=1)]
    cluster = Cluster(queues, {"n1": 4}, gangs)
    assert cluster.settle(9)
    assert (cluster.runs("m"), cluster.stopped) == (4, [])


def test_nothing_is_begun_that_is_stopped_at_once_for_one_of_higher_priority_than_what_runs() -> (
    None
):
    """Preemption lets the team cover `high` before `low`; within the root are both."""
    queues = [
        Queue("root", quota={GPU: 4}),
        Queue("team", "root", {GPU: 4}),
        *(Queue(name, "team", reclaim=Reclaim.ANY) for name in ("a", "b")),
        Queue("guest", "root"),
    ]
    gangs = [Spec("g", "guest", 4, priority=5), Spec("high", "b", 4, priority=1)]
    low = Spec("low", "a", 4)
    cluster = Cluster(queues, {"n1": 8}, [low, *gangs], [part("low", {"n1": 4})])
    assert cluster.settle(9)
    assert cluster.runs("high") == 4
    assert cluster.stopped == []


ROOT = Queue("root")
OF_TEAM = [
    ROOT,
    Queue("c", "root", {GPU: 2}),
    Queue("a", "c", within_queue=LOWER, reclaim=Reclaim.ANY),
    Queue("b", "root"),
]
OF_ITS_OWN = [
    ROOT,
    Queue("a", "root", {GPU: 2}, within_queue=LOWER, reclaim=Reclaim.ANY),
    Queue("b", "root"),
]


@pytest.mark.parametrize("queues", [OF_ITS_OWN, OF_TEAM])
def test_what_borrows_goes_before_what_is_covered_whatever_the_priorities(
    queues: list[Queue],
) -> None:
    """Else the covered one, stopped for another, would stop in turn what borrows."""
    parts = [part("mine", {"n1": 1}), part("theirs", {"n1": 1}, "b", priority=5)]
    gangs = [Spec("mine", "a", 1), Spec("theirs", "b", 1, priority=5)]
    high = Spec("high", "a", 1, priority=1, created=1)
    cluster = Cluster(queues, {"n1": 2}, [*gangs, high], parts)
    assert cluster.settle(9)
    assert cluster.stopped == [("high", "theirs")]


@pytest.mark.parametrize("queues", [OF_ITS_OWN, OF_TEAM])
def test_surplus_goes_before_what_borrows(queues: list[Queue]) -> None:
    parts = [part("mine", {"n1": 1}), part("mine", {"n1": 1}, replica="r1")]
    parts += [part("theirs", {"n1": 1}, "b")]
    cluster = Cluster(queues, {"n1": 3}, [Spec("high", "a", 1, priority=1)], parts)
    assert taken(cluster) == {"high": ["mine/r1"]}


def test_what_can_never_fit_stops_nothing() -> None:
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)],
        {"n1": 8},
        [Spec("high", "a", 9, priority=1)],
        [part("low", {"n1": 8})],
    )
    assert taken(cluster) == {}
    assert cluster.says("high").startswith("NeverFits")


def test_two_preemptors_of_a_cycle_see_each_others_plans() -> None:
    gangs = [Spec("one", "a", 4, priority=1), Spec("two", "a", 4, priority=1, created=1)]
    parts = [part("x", {"n1": 4}, admitted=2), part("y", {"n1": 4}, admitted=1)]
    cluster = Cluster([Queue("a", within_queue=LOWER)], {"n1": 8}, gangs, parts)
    assert taken(cluster) == {"one": ["x"], "two": ["y"]}


def test_a_second_preemptor_waits_for_what_the_victims_of_the_first_leave() -> None:
    """Those end for the first alone."""
    gangs = [Spec("one", "a", 4, priority=1), Spec("two", "a", 4, priority=1, created=1)]
    parts = [part("x", {"n1": 8}, admitted=2), part("y", {"n2": 8}, admitted=1)]
    cluster = Cluster([Queue("a", within_queue=LOWER)], {"n1": 8, "n2": 8}, gangs, parts)
    assert taken(cluster) == {"one": ["x"], "two": []}
    assert cluster.says("two").startswith("Preempting: waits until 1 gang (team/x) has ended")
    cluster.stop(cluster.cycle())
    cluster.end()
    cluster.cycle()
    assert [cluster.runs(name) for name in ("one", "two", "y")] == [4, 4, 8]


def test_in_a_strict_queue_nothing_passes_a_gang_that_waits_for_its_victims() -> None:
    gangs = [Spec("high", "a", 8, priority=1), Spec("small", "a", 1)]
    queue = Queue("a", within_queue=LOWER, when_blocked=WhenBlocked.STRICT)
    cluster = Cluster([queue], {"n1": 8, "n2": 1}, gangs, [part("low", {"n1": 8})])
    cluster.cycle()
    assert cluster.says("small").startswith("QueueBlocked: waits behind team/high")


# ---- reclaim


def company(a: Reclaim = Reclaim.ANY, quota: int = 8) -> list[Queue]:
    return [
        Queue("company"),
        Queue("a", "company", quota={GPU: quota}, reclaim=a, within_queue=LOWER),
        Queue("b", "company", quota={GPU: quota}),
    ]


def test_what_was_borrowed_is_taken_back_and_the_quota_is_held_for_it() -> None:
    """16 GPUs of quota and nodes: `b` borrowed what `a` now asks for."""
    gangs = [Spec("mine", "a", 8), Spec("third", "b", 4, priority=9)]
    parts = [part("own", {"n1": 8}, "b", admitted=1), part("lent", {"n2": 8}, "b", admitted=2)]
    cluster = Cluster(company(), {"n1": 8, "n2": 8}, gangs, parts)
    assert taken(cluster) == {"mine": ["lent"]}
    cluster.stop(cluster.cycle())
    cluster.end()
    cluster.cycle()
    assert cluster.runs("mine") == 8
    assert cluster.runs("third") == 0
    assert cluster.runs("own") == 8


def test_what_its_own_quota_covers_is_never_reclaimed() -> None:
    gangs = [Spec("mine", "a", 8, priority=9)]
    parts = [part("own", {"n1": 8}, "b")]
    cluster = Cluster(company(), {"n1": 8}, gangs, parts)
    assert taken(cluster) == {}


def test_a_gang_that_would_borrow_reclaims_nothing() -> None:
    gangs = [Spec("greedy", "a", 9)]
    parts = [part("lent", {"n1": 4, "n2": 8}, "b")]
    cluster = Cluster(company(), {"n1": 8, "n2": 8}, gangs, parts)
    assert taken(cluster) == {}


def test_with_lower_priority_a_higher_one_keeps_what_it_borrowed() -> None:
    parts = [part("own", {"n1": 8}, "b", priority=6), part("lent", {"n2": 8}, "b", priority=5)]
    nodes = {"n1": 8, "n2": 8}
    for priority, found in ((5, {}), (6, {"mine": ["lent"]})):
        gangs = [Spec("mine", "a", 8, priority=priority)]
        cluster = Cluster(company(Reclaim.LOWER_PRIORITY), nodes, gangs, list(parts))
        assert taken(cluster) == found


def test_default_is_always_reclaimable() -> None:
    queues = [*company(), Queue("default")]
    gangs = [Spec("mine", "a", 8)]
    cluster = Cluster(queues, {"n1": 8}, gangs, [part("guest", {"n1": 8}, "default", priority=99)])
    assert taken(cluster) == {"mine": ["guest"]}


def test_gangs_of_an_inner_queue_are_covered_by_the_quota_that_it_names_itself() -> None:
    queues = [
        Queue("company", quota={GPU: 4}, reclaim=Reclaim.ANY),
        Queue("a", "company", quota={GPU: 4}, reclaim=Reclaim.ANY),
    ]
    own = part("own", {"n1": 4}, "company", admitted=1)
    lent = part("lent", {"n1": 4}, "company", admitted=2)
    cluster = Cluster(queues, {"n1": 8}, [Spec("mine", "a", 4)], [own, lent])
    assert taken(cluster) == {"mine": ["lent"]}
    cluster = Cluster(queues, {"n1": 4}, [Spec("mine", "a", 4)], [own])
    assert taken(cluster) == {}


def test_a_gang_that_borrows_stops_only_what_borrows_as_well() -> None:
    """With 4 GPUs `low` is covered by the quota of its queue, which `high` exceeds."""
    queues = [Queue("top", quota={GPU: 4}), Queue("a", "top", quota={GPU: 4}, within_queue=LOWER)]
    gangs = [Spec("high", "a", 5, priority=3)]
    covered = Cluster(queues, {"n1": 5}, gangs, [part("low", {"n1": 4})])
    assert taken(covered) == {}
    borrows = Cluster(queues, {"n1": 5}, gangs, [part("low", {"n1": 5})])
    assert taken(borrows) == {"high": ["low"]}


@pytest.mark.parametrize(
    ("victim", "rules", "is_taken"),
    [
        ({"priority": 1}, {}, True),
        ({"priority": 3}, {}, False),  # not lower
        ({"priority": 1}, {"borrowers_priority": 0}, False),  # above the threshold
        ({"priority": 1}, {"while_borrowing": WhileBorrowing.NEVER}, False),
        ({"priority": 1, "queue": "b"}, {}, False),  # quota covers it
        ({"priority": 1, "queue": "default"}, {}, False),  # it borrows from another tree
    ],
)
def test_a_gang_that_borrows_stops_borrowers_of_a_lower_priority_where_its_queue_says_so(
    victim: dict[str, Any], rules: dict[str, Any], *, is_taken: bool
) -> None:
    own = Queue("a", "all", {GPU: 2}, while_borrowing=WhileBorrowing.LOWER_PRIORITY)
    queues = [
        Queue("all"),
        replace(own, **rules),
        Queue("b", "all", {GPU: 4}),
        Queue("c", "all"),
        Queue("default"),
    ]
    held = part("low", {"n1": 4}, **{"queue": "c", **victim})
    cluster = Cluster(queues, {"n1": 6}, [Spec("high", "a", 5, priority=3)], [held])
    assert taken(cluster) == ({"high": ["low"]} if is_taken else {})


# ---- order, bounds, memory


def test_a_gang_that_waits_for_quota_is_looked_at_at_its_place_in_the_order() -> None:
    """`mine` is within its quota, which is lent: it comes before the borrower `next`."""
    gangs = [Spec("mine", "a", 8), Spec("next", "b", 4)]
    parts = [part("own", {"n1": 4}, "b", admitted=1), part("lent", {"n2": 4}, "b", admitted=2)]
    queues = [
        Queue("company", quota={GPU: 4}),
        Queue("a", "company", quota={GPU: 8}, reclaim=Reclaim.ANY),
        Queue("b", "company", quota={GPU: 0}),
    ]
    cluster = Cluster(queues, {"n1": 4, "n2": 4, "n3": 4}, gangs, parts)
    assert taken(cluster) == {"mine": ["lent"]}
    assert cluster.runs("next") == 0


def test_of_a_strict_queue_only_the_first_that_waits_for_quota_takes_anything() -> None:
    gangs = [Spec("first", "a", 9, priority=2), Spec("then", "a", 2, priority=1)]
    queue = Queue("a", quota={GPU: 8}, within_queue=LOWER, when_blocked=WhenBlocked.STRICT)
    strict = Cluster([queue], {"n1": 16}, gangs[1:], [part("low", {"n1": 8})])
    assert taken(strict) == {"then": ["low"]}
    gangs = [
        Spec("first", "a", 7, priority=1, created=1),
        Spec("then", "a", 1, priority=1, created=2),
    ]
    parts = [part("low", {"n1": 2}, kept="it must stay"), part("more", {"n1": 6})]
    blocked = Cluster([queue], {"n1": 16}, gangs, parts)
    assert taken(blocked) == {}
    assert blocked.says("then").startswith("QueueBlocked: waits behind team/first")


def test_a_gang_that_waits_for_quota_says_why_nothing_is_taken_for_it() -> None:
    queue = Queue("a", quota={GPU: 8}, within_queue=LOWER)
    parts = [part("low", {"n1": 8}, kept="it must stay")]
    cluster = Cluster([queue], {"n1": 16}, [Spec("high", "a", 4, priority=1)], parts)
    cluster.cycle()
    assert cluster.says("high").startswith("QuotaExceeded: queue a uses 8 of its quota of 8")
    assert cluster.says("high").endswith("; team/low cannot be stopped for it: it must stay")


def test_the_quota_of_what_was_promised_is_held_too() -> None:
    """Only quota is short, and `late` may not take what `high` waits for."""
    queue = Queue("a", quota={GPU: 8}, within_queue=LOWER)
    gangs = [Spec("high", "a", 8, priority=1), Spec("late", "a", 2, priority=1, created=9)]
    cluster = Cluster([queue], {"n1": 32}, gangs[:1], [part("low", {"n1": 4})])
    assert cluster.stop(cluster.cycle())
    assert cluster.says("high").startswith("Preempting")
    cluster.gangs = gangs
    cluster.cycle()
    assert cluster.runs("late") == 0
    cluster.end()
    cluster.cycle()
    assert cluster.runs("high") == 8


def test_a_gang_of_which_a_part_was_lost_is_judged_with_what_it_still_holds() -> None:
    """With the two that it lost it needs more than its quota, so it reclaims nothing."""
    parts = [part("mine", {"n1": 7}, "a"), part("lent", {"n2": 10}, "b")]
    for quota, found in ((8, {}), (9, {"mine": ["lent"]})):
        cluster = Cluster(company(quota=quota), {"n1": 7, "n2": 10}, [], parts)
        cluster.repairs = [Spec("mine", "a", 2)]
        assert taken(cluster) == found


def count_questions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list that grows with each question whether a gang might fit."""
    asked: list[str] = []
    fits = Search.might_fit

    def counted(search: Search, gone: set[int]) -> bool:
        asked.append("again")
        return fits(search, gone)

    monkeypatch.setattr(Search, "might_fit", counted)
    return asked


def test_it_is_not_asked_again_while_nothing_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = count_questions(monkeypatch)
    parts = [part("low", {"n1": 4}), part("equal", {"n1": 4}, priority=1)]
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)], {"n1": 8}, [Spec("high", "a", 8, priority=1)], parts
    )
    cluster.cycle()
    before = len(asked)
    assert before
    cluster.cycle()
    assert len(asked) == before
    cluster.parts = [parts[0], replace(parts[1], priority=0)]
    assert [each.preemptor.name for each in cluster.cycle()] == ["high"]


@pytest.mark.parametrize("free", [0, 8])
def test_what_a_cycle_gives_to_one_gang_covers_no_other(free: int) -> None:
    """`one` uses up the quota of `a`, by preemption or on free nodes: `two` reclaims nothing."""
    queues = [
        Queue("company", quota={GPU: 16}),
        Queue("a", "company", quota={GPU: 8}, reclaim=Reclaim.ANY),
        Queue("b", "company"),
    ]
    gangs = [Spec("one", "a", 8), Spec("two", "a", 4, created=1)]
    parts = [part("lent", {"n2": 8}, "b", admitted=2), part("more", {"n3": 8}, "b", admitted=1)]
    cluster = Cluster(queues, {"n1": free, "n2": 8, "n3": 8}, gangs, parts)
    assert taken(cluster) == ({} if free else {"one": ["lent"]})


def test_a_hold_ends_where_its_gang_fits_no_more_and_others_are_decided_anew() -> None:
    gangs = [Spec("high", "a", 8, priority=1), Spec("other", "b", 2)]
    low = part("low", {"n1": 6})
    cluster = Cluster([Queue("a", within_queue=LOWER), Queue("b")], {"n1": 8}, gangs, [low])
    assert cluster.cycle()
    assert cluster.runs("other") == 0
    cluster.parts = [replace(low, kept_because="it must stay")]
    assert not cluster.cycle()
    assert cluster.runs("other") == 2
    assert cluster.memory is not None
    assert cluster.memory.asks_again_in == SOON


def test_room_that_other_pods_leave_is_news_to_a_gang_for_which_nothing_was_found() -> None:
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)],
        {"n1": 8},
        [Spec("high", "a", 8, priority=1)],
        [part("low", {"n1": 4})],
        foreign={"n1": 4},
    )
    assert taken(cluster) == {}
    cluster.foreign = {}
    assert taken(cluster) == {"high": ["low"]}


def test_a_gang_that_waits_for_quota_is_told_when_the_reason_against_it_changes() -> None:
    queue = Queue("a", quota={GPU: 8}, within_queue=LOWER)
    low = part("low", {"n1": 8})
    cluster = Cluster([queue], {"n1": 16}, [Spec("high", "a", 4, priority=1)])
    for why in ("it must stay", "it is precious"):
        cluster.parts = [replace(low, kept_because=why)]
        cluster.cycle()
        assert cluster.says("high").endswith(why)


def test_the_start_that_is_kept_for_a_gang_does_not_keep_it_from_preempting() -> None:
    queue = Queue("a", quota={GPU: 8}, within_queue=LOWER, when_blocked=WhenBlocked.BACKFILL)
    gangs = [Spec("high", "a", 8, priority=1)]
    cluster = Cluster([queue], {"n1": 16}, gangs, [part("low", {"n1": 8})], ends={"low": 10.0})
    assert taken(cluster) == {"high": ["low"]}


def test_refusals_are_kept_while_room_is_held() -> None:
    gangs = [Spec("high", "a", 8, priority=1), Spec("other", "b", 2), Spec("more", "b", 3)]
    cluster = Cluster(
        [Queue("a", within_queue=LOWER), Queue("b")], {"n1": 8}, gangs, [part("low", {"n1": 7})]
    )
    cluster.stop(cluster.cycle())
    for _ in range(2):
        cluster.cycle()
        assert cluster.memory is not None
        assert cluster.memory.kept == 3


def test_equal_gangs_are_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = count_questions(monkeypatch)
    parts = [part("low", {"n1": 4}), part("equal", {"n1": 4}, priority=1)]
    gangs = [Spec(f"g{at}", "a", 8, priority=1) for at in range(50)]
    cluster = Cluster([Queue("a", within_queue=LOWER)], {"n1": 8}, gangs, parts)
    cluster.cycle()
    assert len(asked) == 1


def test_without_steps_nothing_is_taken_and_the_next_cycle_comes_soon() -> None:
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)],
        {"n1": 8},
        [Spec("high", "a", 8, priority=1)],
        [part("low", {"n1": 8})],
        settings=Settings(cycle_search_steps=100),
    )
    assert taken(cluster) == {}
    assert cluster.memory is not None
    assert cluster.memory.asks_again_in == SOON


def test_a_start_that_is_kept_for_a_blocked_gang_is_not_taken_by_a_preemption() -> None:
    """`head` starts on n1 when `ends` does, in 10 s; `high` would run on there for ever."""
    queues = [
        Queue("b", quota={GPU: 99}, when_blocked=WhenBlocked.BACKFILL),
        Queue("a", within_queue=LOWER),
    ]
    gangs = [Spec("head", "b", 8), Spec("high", "a", 8, priority=1)]
    parts = [part("ends", {"n1": 4}, "b"), part("low", {"n1": 4}), part("stays", {"n2": 8}, "b")]
    ends = {"ends": 10.0, "low": 10.0}
    cluster = Cluster(queues, {"n1": 8, "n2": 8}, gangs, parts, ends=ends)
    cluster.parts[0] = replace(cluster.parts[0], is_ending=True)
    assert taken(cluster) == {}
    alone = Cluster(queues, {"n1": 8, "n2": 8}, gangs[1:], list(cluster.parts), ends=ends)
    assert taken(alone) == {"high": ["ends", "low"]} or taken(alone) == {"high": ["low"]}


def test_a_gang_that_has_waited_too_long_does_not_take_what_was_promised() -> None:
    """Otherwise `low` would have been stopped in vain."""
    queues = [
        Queue("company"),
        Queue("a", "company", quota={GPU: 8}, within_queue=LOWER),
        Queue("b", "company", quota={GPU: 8}),
    ]
    gangs = [Spec("high", "a", 16, priority=1), Spec("old", "b", 8)]
    cluster = Cluster(queues, {"n1": 16}, gangs[:1], [part("low", {"n1": 16})])
    assert cluster.stop(cluster.cycle())
    cluster.gangs, cluster.aged = gangs, gangs[1:]
    cluster.end()
    cluster.cycle()
    assert cluster.runs("high") == 16


# ---- pods that need others


def wanting(**terms: Iterable[PodTerm | SpreadConstraint | HostPort]) -> PendingGang:
    one = shape(gpu=1, **terms)  # type: ignore[arg-type]
    asked = gang("high", group("workers", 8, one), priority=1)
    labels = (("app", "ray"),)
    return replace(asked, queue="a", members=(Member("workers", one, labels),) * 8)


def decided(asked: PendingGang, *, app: str) -> tuple[Verdict, list[str]]:
    """The verdict for a gang, and what it stops, where a pod of this app is on the node."""
    waiting = WaitingGangs(QuotaTree([Queue("a", within_queue=LOWER)]))
    waiting.put(asked)
    low = part("low", {"n1": 8})
    index = PodIndex()
    index.use(("team", (("app", app),)), (), "n1", 1)
    nodes = columns(node("n1", gpu=8, labels={"host": "n1"}), used={"n1": {GPU: 8, "pods": 8}})
    queues = Queues(waiting, np.zeros((1, 0), dtype=np.int64), parts=lambda: (low,))
    found, memory = next_cycle(queues, nodes, None, existing=ExistingPods(index))
    return found[0].verdict, [p.gang.name for each in memory.preemptions for p in each.parts]


RAY = (require("app", "In", "ray"),)
NEAR_RAY = PodTerm("host", RAY, ("team",))


@pytest.mark.parametrize("app", ["ray", "other"])
@pytest.mark.parametrize(
    "asked",
    [wanting(affinity=[NEAR_RAY]), wanting(spread=[SpreadConstraint(NEAR_RAY, 8)])],
    ids=["affinity", "spread"],
)
def test_pods_that_might_end_are_not_counted_as_those_that_it_needs(
    asked: PendingGang, app: str
) -> None:
    verdict, stopped = decided(asked, app=app)
    assert isinstance(verdict, Refusal)
    assert stopped == ([] if app == "ray" else ["low"])
    assert (AFFINITY in verdict.message) == (app == "ray")


def test_for_host_ports_nothing_is_stopped_and_it_is_said() -> None:
    verdict, stopped = decided(wanting(ports=[("", "", 8000)]), app="other")
    assert isinstance(verdict, Refusal)
    assert stopped == []
    assert PORTS in verdict.message


def test_a_gang_that_needs_more_victims_than_questions_can_be_asked_takes_the_first() -> None:
    """Sparing asks twice for each victim that is needed; the steps of a cycle allow 200."""
    small = [part(f"s{at:03}", {f"n{at // 8}": 1}, admitted=at) for at in range(256)]
    queue, nodes = Queue("a", within_queue=LOWER), {f"n{at}": 8 for at in range(32)}
    cluster = Cluster([queue], nodes, [Spec("high", "a", 200, priority=1)], small)
    assert taken(cluster) == {"high": [f"s{at:03}" for at in range(56, 256)]}


def test_where_the_steps_run_out_more_is_taken_than_must_be_and_nothing_beyond_the_last() -> None:
    """A pod of `high` fits only where `s1` and where `s5` is; the last that is needed is `s5`."""
    small = [part(f"s{at}", {f"n{at}": 1}, admitted=9 - at) for at in range(8)]
    nodes = {f"n{at}": 2 if at in (1, 5) else 1 for at in range(8)}
    gangs = [Spec("high", "a", 2, priority=1, each=2)]
    queue = Queue("a", within_queue=LOWER)
    every, few = Settings(), Settings(search_steps=7 * QUESTION)
    assert taken(Cluster([queue], nodes, gangs, small, settings=every)) == {"high": ["s1", "s5"]}
    found = taken(Cluster([queue], nodes, gangs, small, settings=few))["high"]
    assert {"s1", "s5"} < {*found} <= {f"s{at}" for at in range(6)}


def many_that_find_nothing(last: Spec) -> Cluster:
    """Twenty gangs that would have to look at 100 parts each, and one for which something is."""
    low = [part(f"r{at}", {"n1": 1}, "b", kept="it must stay") for at in range(100)]
    queues = [Queue("b", within_queue=LOWER), Queue("c", within_queue=LOWER)]
    gangs = [Spec(f"g{at:02}", "b", 2, priority=50 + at) for at in range(20)]
    parts = [*low, part("low", {"n2": 8}, "c")]
    steps = Settings(cycle_search_steps=4 * 2 * 101 * LISTING)
    return Cluster(queues, {"n1": 100, "n2": 8}, [*gangs, last], parts, settings=steps)


def test_looking_at_parts_costs_steps_and_ends_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(*of: Any) -> Any:
        asked.append("again")
        return candidates(*of)

    monkeypatch.setattr("scheduling.preemption.preempting.candidates", counted)
    many_that_find_nothing(Spec("last", "c", 8, priority=1)).cycle()
    assert 0 < len(asked) <= 8


def test_gangs_that_find_nothing_keep_no_other_from_its_turn() -> None:
    """What runs changes before each cycle, so that all that was sought in vain is sought again."""
    cluster = many_that_find_nothing(Spec("last", "c", 8, priority=1))
    for cycle in range(10):
        cluster.parts = [replace(each, admitted=cycle) for each in cluster.parts]
        if cluster.cycle():
            break
        assert cluster.memory is not None
        assert cluster.memory.asks_again_in == SOON
    assert cluster.says("last").startswith("Preempting")


@pytest.mark.parametrize(("victim", "asked", "quota", "starts"), [
    (4, 4, 6, True), (4, 4, 5, False), (2, 4, 6, True), (2, 4, 5, False),
])  # fmt: skip
def test_quota_of_victims_that_end_is_not_counted_beside_what_is_promised_for_it(
    victim: int, asked: int, quota: int, *, starts: bool
) -> None:
    """`third`, on a node of its own, needs 2: beside the victim now, and the other gang later."""
    queue = Queue("a", quota={GPU: quota}, within_queue=LOWER)
    high = Spec("high", "a", 1, priority=1, each=asked)
    low, foreign = part("low", {"n1": victim}), {"n1": 4 - max(victim, asked)}
    cluster = Cluster([queue], {"n1": 4, "n2": 2}, [high], [low], foreign=foreign)
    cluster.stop(cluster.cycle())
    cluster.gangs = [high, Spec("third", "a", 1, each=2)]
    cluster.cycle()
    assert (cluster.runs("third") == 2) is starts
    cluster.end()
    cluster.cycle()
    assert cluster.runs("high") == asked


def test_quota_that_ends_is_set_against_one_promise_only() -> None:
    """`one` gets the quota of `ends`, `two` what is left of it: none is left for `third`."""
    queues = [
        Queue("company", quota={GPU: 4}),
        Queue("a", "company", quota={GPU: 8}, borrowing_limit={GPU: 0}, reclaim=Reclaim.ANY),
        Queue("b", "company"),
    ]
    parts = [part("ends", {"n1": 4}, ending=True), part("lent", {"n2": 4}, "b")]
    gangs = [Spec("one", "a", 1, each=4), Spec("two", "a", 1, each=4, created=1)]
    cluster = Cluster(queues, {"n1": 4, "n2": 4, "n3": 2}, gangs, parts)
    assert taken(cluster) == {"one": ["ends"], "two": ["lent"]}
    cluster.gangs = [*gangs, Spec("third", "a", 1, each=2, priority=9)]
    cluster.cycle()
    assert cluster.runs("third") == 0
