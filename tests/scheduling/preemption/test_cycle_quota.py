"""What quota covers, and what is taken back."""

from dataclasses import replace
from typing import Any

import pytest

from scheduling.model.queue import (
    Queue,
    Reclaim,
    WhenBlocked,
    WhileBorrowing,
)
from tests.builders import GPU
from tests.scheduling.preemption.cluster import Cluster, Spec, part
from tests.scheduling.preemption.company import LOWER, company, taken


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
