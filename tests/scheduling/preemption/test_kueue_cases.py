"""Cases of Kueue's own tables, by their names: what is stopped, and the same table in the docs.

Of `pkg/scheduler/preemption/preemption_hierarchical_test.go`: the trees, what runs and what comes
are Kueue's, with GPUs in the place of CPUs.
"""

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from scheduling.model.queue import Queue, Reclaim, WhileBorrowing, WithinQueue
from tests.builders import GPU
from tests.scheduling.preemption.cluster import Cluster, Spec, part
from tests.scheduling.preemption.test_kueue_cohorts import CASES as COHORTS

REFERENCE = Path(__file__).parents[3] / "docs" / "queues-reference.md"
NEVER, LOWER = WhileBorrowing.NEVER, WhileBorrowing.LOWER_PRIORITY


def queue(
    name: str,
    gpus: int = 0,
    parent: str = "r",
    *,
    reclaim: Reclaim = Reclaim.ANY,
    borrowing: WhileBorrowing = NEVER,
) -> Queue:
    quota = {GPU: gpus} if gpus or name == "r" else {}
    return Queue(
        name,
        parent,
        quota,
        within_queue=WithinQueue.LOWER_PRIORITY,
        reclaim=reclaim,
        while_borrowing=borrowing,
        borrowers_priority=0,
    )


class Case(NamedTuple):
    """Queues, what runs (name, queue, GPUs, priority), what comes (GPUs, priority), what goes."""

    queues: Sequence[Queue]
    runs: Sequence[tuple[str, str, int, int]]
    comes: tuple[int, int]
    stopped: Collection[str]


def below_c(gpus: int, *others: Queue, root: int = 0, q: Queue | None = None) -> list[Queue]:
    """A root, with the queue c below it, and the queue q of the gang that comes below c."""
    of_root, of_c = Queue("r", quota={GPU: root}), Queue("c", "r", {GPU: gpus})
    return [of_root, of_c, q or queue("q", parent="c"), *others]


BORROWING, SAME = queue("borrowing"), queue("same", parent="c")
WHILE = queue("q", parent="c", borrowing=LOWER)
WHILE_LOWER = queue("q", parent="c", reclaim=Reclaim.LOWER_PRIORITY, borrowing=LOWER)

CASES = {
    "avoid queues within nominal quota": Case(
        below_c(2, BORROWING, queue("nominal", 2)),
        [("one", "nominal", 2, -10), ("two", "borrowing", 2, 0)],
        (2, 0),
        ["two"],
    ),
    "preempt multiple with hierarchical advantage": Case(
        below_c(2, BORROWING),
        [("one", "borrowing", 1, 1), ("two", "borrowing", 1, 2)],
        (2, 0),
        ["one", "two"],
    ),
    "preempt in cohort and own CQ": Case(
        below_c(3, SAME, q=WHILE),
        [("stays", "same", 1, 1), ("goes", "same", 1, 0), ("own", "q", 1, -1)],
        (2, 1),
        ["goes", "own"],
    ),
    "prefer to preempt hierarchical candidate": Case(
        below_c(2, BORROWING),
        [("borrows", "borrowing", 1, 1), ("own", "q", 1, -2)],
        (1, 0),
        ["borrows"],
    ),
    "forced to preempt priority candidate": Case(
        below_c(2, queue("nominal", 2), SAME, q=WHILE),
        [("within", "nominal", 2, -10), ("beside", "same", 2, -1)],
        (2, 0),
        ["beside"],
    ),
    "incoming workload fits in CQ nominal quota": Case(
        below_c(2, BORROWING, SAME, q=queue("q", 4, "c")),
        [("borrows", "borrowing", 3, 10), ("beside", "same", 3, 10)],
        (4, 0),
        ["beside", "borrows"],
    ),
    "preempt hierarchical and priority candidates": Case(
        below_c(4, BORROWING, SAME, root=1, q=WHILE_LOWER),
        [("low", "borrowing", 2, -1), ("beside", "same", 1, -1), ("high", "borrowing", 2, 1)],
        (3, 0),
        ["beside", "low"],
    ),
    "preempt hierarchical candidates and inside CQ": Case(
        below_c(4, BORROWING, SAME, root=1, q=WHILE_LOWER),
        [("low", "borrowing", 2, -1), ("own", "q", 1, -1), ("high", "borrowing", 2, 1)],
        (3, 0),
        ["low", "own"],
    ),
    "reclaim nominal quota from lowest priority workload, excluding non-borrowing": Case(
        below_c(3, BORROWING, queue("nominal", 2)),
        [
            ("eight", "borrowing", 1, 8),
            ("nine", "borrowing", 1, 9),
            ("ten", "borrowing", 1, 9),
            ("within", "nominal", 2, -2),
        ],
        (1, 0),
        ["eight"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_case_of_kueue_comes_out_the_same(name: str) -> None:
    case = CASES[name]
    gpus = sum(count for _, _, count, _ in case.runs)
    parts = [part(who, {"n1": n}, where, priority=p) for who, where, n, p in case.runs]
    incoming = Spec("incoming", "q", case.comes[0], priority=case.comes[1], created=9)
    cluster = Cluster(case.queues, {"n1": gpus}, [incoming], parts)
    found = {p.gang.name for each in cluster.cycle() for p in each.parts}
    assert found == {*case.stopped}


def test_the_docs_count_the_cases_that_are_run() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    section = text[text.index("### Cases of Kueue") : text.index("## Stopping a queue")]
    (count,) = re.findall(r"(\d+) cases are run, and end the same", section)
    assert int(count) == len({*CASES, *COHORTS})
