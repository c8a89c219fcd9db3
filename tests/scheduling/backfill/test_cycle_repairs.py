"""Running gangs get back what they lost, whatever waits."""

from dataclasses import replace

import numpy as np

from scheduling.cycle import next_cycle
from scheduling.model.gang import PendingGang
from scheduling.model.queue import WhenBlocked
from scheduling.model.verdict import Admitted, Refusal
from scheduling.queueing.queues import Queues
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.queueing.waiting import WaitingGangs
from tests.builders import GPU, columns, node
from tests.scheduling.backfill.cycles import BUSY, asks, decide, holds, said, team


def repairs(name: str, pods: int, *, surplus: int = 0, created: float = 0) -> PendingGang:
    """A gang that runs and has lost pods of its minimum."""
    return replace(asks(name, pods, surplus=surplus, created=created), is_repair=True)


def test_an_aged_gang_does_not_keep_a_running_one_from_the_pods_that_it_lost() -> None:
    big, running = asks("big", 8), [holds("broken", {"n1": 7})]
    verdicts, _ = decide([team(gpus=8)], big, repairs("broken", 1), running=running, aged=[big])
    assert isinstance(verdicts["broken"], Admitted)
    assert said(verdicts["big"]).startswith("QuotaExceeded")


def test_an_aged_gang_keeps_a_running_one_from_its_surplus_alone() -> None:
    big, broken = asks("big", 16), repairs("broken", 1, surplus=3, created=1)
    verdicts, _ = decide([team()], big, broken, running=BUSY, aged=[big])
    repaired = verdicts["broken"]
    assert isinstance(repaired, Admitted)
    assert repaired.units == ()
    assert repaired.left_out is not None
    assert said(repaired.left_out).startswith("QueueBlocked")


def test_of_what_a_running_gang_lost_as_much_is_placed_as_fits_when_room_comes() -> None:
    """All three would fit no more than before, and one by one they do."""
    tree = QuotaTree([team()])
    waiting = WaitingGangs(tree)
    waiting.put(replace(repairs("broken", 3), is_separable=True))
    told = Queues(waiting, np.zeros((1, len(tree.resources)), dtype=np.int64))
    memory = None
    for free, placed in ((0, 0), (0, 0), (2, 2)):
        nodes = columns(node("n1", gpu=8), used={"n1": {GPU: 8 - free}})
        ((decision,), memory) = next_cycle(told, nodes, memory)
        verdict = decision.verdict
        counts = verdict.placement.assignments if isinstance(verdict, Admitted) else ()
        assert sum(count for each in counts for _, count in each.nodes) == placed
    waiting.put(repairs("broken", 3))
    ((decision,), _) = next_cycle(told, nodes, None)
    assert isinstance(decision.verdict, Refusal), "of one that did not run nothing is"


def test_strict_does_not_hold_back_the_repair_of_a_running_gang() -> None:
    verdicts, _ = decide(
        [team(WhenBlocked.STRICT)],
        asks("big", 8),
        asks("small", 1, created=1),
        repairs("broken", 1, created=2),
        running=BUSY,
    )
    assert isinstance(verdicts["broken"], Admitted)
    assert said(verdicts["small"]).startswith("QueueBlocked")


def test_a_repair_stays_within_the_quota() -> None:
    verdicts, _ = decide(
        [team(WhenBlocked.STRICT, 8)],
        asks("big", 8),
        repairs("broken", 2, created=1),
        running=[holds("broken", {"n1": 7})],
    )
    assert said(verdicts["broken"]).startswith("QuotaExceeded")


def test_a_repair_moves_the_start_that_is_kept_for_a_blocked_gang() -> None:
    verdicts, _ = decide(
        [team(WhenBlocked.BACKFILL)],
        asks("big", 14),
        asks("short", 1, created=1, lasts=100),
        replace(repairs("broken", 3, created=2), duration=300),
        asks("later", 1, created=3, lasts=200),
        running=[holds("old", {"n1": 8}, ends=100)],
    )
    assert isinstance(verdicts["broken"], Admitted)
    assert isinstance(verdicts["later"], Admitted), "the start is at 300 now"
