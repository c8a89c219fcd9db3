"""Cases of Kueue's table of preemption in cohorts of one level, by their names there.

Of `TestPreemption` in `pkg/scheduler/preemption/preemption_test.go`: the queues, what runs and what
comes are Kueue's, with GPUs in the place of CPUs. Quota alone decides: the node has room for all.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import pytest

from scheduling.model.queue import Queue, Reclaim, WhileBorrowing, WithinQueue
from tests.builders import GPU
from tests.scheduling.preemption.cluster import Cluster, Spec, part

ROOM = 100


def rules(
    name: str,
    gpus: int,
    within: WithinQueue = WithinQueue.LOWER_PRIORITY,
    reclaim: Reclaim = Reclaim.LOWER_PRIORITY,
    *,
    borrows: int | None = None,
    lends: int | None = None,
    while_borrowing: WhileBorrowing = WhileBorrowing.NEVER,
    parent: str = "r",
) -> Queue:
    return Queue(
        name,
        parent,
        {GPU: gpus},
        {} if borrows is None else {GPU: borrows},
        {} if lends is None else {GPU: lends},
        within_queue=within,
        reclaim=reclaim,
        while_borrowing=while_borrowing,
        borrowers_priority=0,
    )


LOWER, ANY = Reclaim.LOWER_PRIORITY, Reclaim.ANY
OWN, NOT_OWN = WithinQueue.LOWER_PRIORITY, WithinQueue.NEVER
TO_BORROW = WhileBorrowing.LOWER_PRIORITY
ROOT = Queue("r", quota={GPU: 0})

STANDALONE = [rules("standalone", 6, reclaim=Reclaim.NEVER, parent="")]
COHORT = [ROOT, rules("c1", 6, borrows=6), rules("c2", 6, NOT_OWN, ANY, borrows=6)]
NO_LIMITS = [ROOT, rules("d1", 6), rules("d2", 6, NOT_OWN, ANY)]
LEGION = [ROOT, rules("l1", 6, borrows=12)]
SHARED = [
    ROOT,
    rules("a_standard", 1, NOT_OWN, borrows=12, while_borrowing=TO_BORROW),
    rules("b_standard", 1, OWN, ANY, borrows=12, while_borrowing=TO_BORROW),
    rules("a_best_effort", 1, NOT_OWN, borrows=12, while_borrowing=TO_BORROW),
    rules("b_best_effort", 0, NOT_OWN, borrows=13, while_borrowing=TO_BORROW),
    Queue("shared", "r", {GPU: 10}),
]
LEND = [ROOT, rules("lend1", 6, lends=4), rules("lend2", 6, lends=2)]
LONG = [
    ROOT,
    Queue("cohort-left", "r"),
    Queue("cohort-right", "r"),
    rules("cq-left", 10, NOT_OWN, ANY, parent="cohort-left"),
    Queue("cq-right", "cohort-right", {GPU: 0}),
]


class Case(NamedTuple):
    """Queues, what runs (name, queue, GPUs, priority), what comes (the same), what goes."""

    queues: Sequence[Queue]
    runs: Sequence[tuple[str, str, int, int]]
    comes: tuple[str, int, int]
    stopped: Collection[str] = ()


LOCALLY = "preempting locally and"
RECLAIM = "reclaim borrowed quota from same priority for withinCohort"
USE = "use BorrowWithinCohort;"
PREEMPTING = "preempting a lower-priority workload"
ABOVE = "with priority above MaxPriorityThreshold, if borrowing is"
CANNOT = "cannot preempt from other ClusterQueues"


def alone(*runs: tuple[str, int, int]) -> list[tuple[str, str, int, int]]:
    return [(name, "standalone", gpus, priority) for name, gpus, priority in runs]


CASES = {
    "preempt lowest priority": Case(
        STANDALONE,
        alone(("low", 2, -1), ("mid", 2, 0), ("high", 2, 1)),
        ("standalone", 2, 1),
        ["low"],
    ),
    "preempt multiple": Case(
        STANDALONE,
        alone(("low", 2, -1), ("mid", 2, 0), ("high", 2, 1)),
        ("standalone", 3, 1),
        ["low", "mid"],
    ),
    "no preemption for low priority": Case(
        STANDALONE, alone(("low", 3, -1), ("mid", 3, 0)), ("standalone", 1, -1)
    ),
    "not enough low priority workloads": Case(
        STANDALONE, alone(("low", 3, -1), ("mid", 3, 0)), ("standalone", 4, 0)
    ),
    "some free quota, preempt low priority": Case(
        STANDALONE,
        alone(("low", 1, -1), ("mid", 1, 0), ("high", 3, 1)),
        ("standalone", 2, 1),
        ["low"],
    ),
    "minimal set excludes low priority": Case(
        STANDALONE,
        alone(("low", 1, -1), ("mid", 2, 0), ("high", 3, 1)),
        ("standalone", 2, 1),
        ["mid"],
    ),
    "reclaim quota from borrower": Case(
        COHORT,
        [("low", "c1", 3, -1), ("mid", "c2", 3, 0), ("high", "c2", 6, 1)],
        ("c1", 3, 1),
        ["mid"],
    ),
    "no workloads borrowing": Case(
        COHORT, [("high", "c1", 4, 1), ("low", "c2", 4, -1)], ("c1", 4, 1)
    ),
    "not enough workloads borrowing": Case(
        COHORT, [("high", "c1", 4, 1), ("one", "c2", 4, -1), ("two", "c2", 4, -1)], ("c1", 4, 1)
    ),
    f"{LOCALLY} borrowing same resource in cohort": Case(
        COHORT,
        [("med", "c1", 4, 0), ("low", "c1", 4, -1), ("other", "c2", 4, -1)],
        ("c1", 4, 1),
        ["low"],
    ),
    f"{LOCALLY} borrowing same resource in cohort; no borrowing limit in the cohort": Case(
        NO_LIMITS,
        [("med", "d1", 4, 0), ("low", "d1", 4, -1), ("other", "d2", 4, -1)],
        ("d1", 4, 1),
        ["low"],
    ),
    f"{LOCALLY} not borrowing same resource in 1-queue cohort": Case(
        LEGION, [("med", "l1", 4, 0), ("low", "l1", 2, -1)], ("l1", 4, 1), ["med"]
    ),
    f"do not {RECLAIM}=ReclaimFromLowerPriority": Case(
        COHORT, [("own", "c1", 2, 0), ("one", "c2", 4, 0), ("two", "c2", 4, 0)], ("c1", 4, 0)
    ),
    f"{RECLAIM}=ReclaimFromAny": Case(
        COHORT,
        [("one", "c1", 4, 0), ("two", "c1", 4, 1), ("own", "c2", 2, 0)],
        ("c2", 4, 0),
        ["one"],
    ),
    "preempt from all ClusterQueues in cohort": Case(
        COHORT,
        [("low", "c1", 3, -1), ("mid", "c1", 2, 0), ("their", "c2", 3, -1), ("more", "c2", 4, 0)],
        ("c1", 4, 0),
        ["low", "their"],
    ),
    "can't preempt workloads in ClusterQueue for withinClusterQueue=Never": Case(
        COHORT, [("low", "c2", 3, -1)], ("c2", 4, 1)
    ),
    f"{USE} allow {PREEMPTING} from another ClusterQueue while borrowing": Case(
        SHARED,
        [("goes", "a_best_effort", 10, -1), ("stays", "b_best_effort", 1, -1)],
        ("a_standard", 10, 0),
        ["goes"],
    ),
    f"{USE} don't allow {PREEMPTING} {ABOVE} required even after the preemption": Case(
        SHARED, [("b", "b_standard", 10, 1)], ("a_standard", 10, 2)
    ),
    f"{USE} allow {PREEMPTING} {ABOVE} not required after the preemption": Case(
        SHARED, [("b", "b_standard", 13, 1)], ("a_standard", 1, 2), ["b"]
    ),
    f"{USE} don't allow for preemption of lower-priority workload from the same ClusterQueue": Case(
        SHARED, [("a", "a_standard", 13, 1)], ("a_standard", 1, 2)
    ),
    f"{USE} only preempt from CQ if no workloads below threshold and already above nominal": Case(
        SHARED,
        [
            ("one", "a_standard", 10, 1),
            ("two", "a_standard", 1, 1),
            ("own", "b_standard", 1, 1),
            ("higher", "b_standard", 1, 2),
        ],
        ("b_standard", 1, 3),
        ["own"],
    ),
    "reclaim quota from lender": Case(
        LEND,
        [("low", "lend1", 3, -1), ("mid", "lend2", 3, 0), ("high", "lend2", 4, 1)],
        ("lend1", 3, 1),
        ["mid"],
    ),
    "preempt from all ClusterQueues in cohort-lend": Case(
        LEND,
        [
            ("low", "lend1", 3, -1),
            ("mid", "lend1", 2, 0),
            ("their", "lend2", 3, -1),
            ("more", "lend2", 4, 0),
        ],
        ("lend1", 4, 0),
        ["low", "their"],
    ),
    f"{CANNOT} if exceeds requestable quota including lending limit": Case(
        LEND, [("low", "lend2", 10, -1)], ("lend1", 9, 0)
    ),
    "long range preemption": Case(LONG, [("goes", "cq-right", 5, 0)], ("cq-left", 8, 0), ["goes"]),
}

# Three come out otherwise, by design.
BEYOND = Case(
    SHARED,
    [
        ("high", "b_standard", 10, 2),
        ("covered", "b_standard", 1, 1),
        ("low", "a_best_effort", 1, -1),
        ("lower", "a_best_effort", 1, -2),
    ],
    ("b_standard", 2, 2),
)
THREE = [ROOT, rules("a", 2, reclaim=ANY), Queue("b", "r", {GPU: 2}), Queue("c", "r", {GPU: 2})]
EXHAUSTED = Case(
    THREE,
    [("a1", "a", 1, -2), ("a2", "a", 1, -2), ("a3", "a", 1, -1)]
    + [(f"b{n}", "b", 1, 0) for n in (1, 2, 3)],
    ("a", 2, 0),
    ["a2", "b3"],
)
NOT_EXHAUSTED = Case(
    THREE,
    [("a1", "a", 1, -1), ("b5", "b", 1, -1), *((f"b{n}", "b", 1, 0) for n in (1, 2, 3, 4))],
    ("a", 2, 0),
    ["b3", "b5"],
)


@pytest.mark.parametrize("name", CASES)
def test_a_case_of_kueue_comes_out_the_same(name: str) -> None:
    case = CASES[name]
    assert stopped(case) == {*case.stopped}


def test_what_quota_covers_is_not_stopped_for_what_borrows() -> None:
    """Of the CQ Kueue stops one within its nominal quota, for one beyond it."""
    assert stopped(BEYOND) == {*BEYOND.stopped}


@pytest.mark.parametrize("case", [EXHAUSTED, NOT_EXHAUSTED], ids=["exhausted", "not exhausted"])
def test_what_borrows_is_stopped_before_what_quota_covers(case: Case) -> None:
    """Kueue stops those of the queue's own nominal quota, which are of a lower priority."""
    assert stopped(case) == {*case.stopped}


def stopped(case: Case) -> set[str]:
    parts = [part(who, {"n1": n}, where, priority=p) for who, where, n, p in case.runs]
    queue, gpus, priority = case.comes
    incoming = Spec("incoming", queue, gpus, priority=priority, created=9)
    cluster = Cluster(case.queues, {"n1": ROOM}, [incoming], parts)
    return {p.gang.name for each in cluster.cycle() for p in each.parts}
