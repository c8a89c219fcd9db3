"""Quota within a cycle: what waits for it, and what it is told."""

from dataclasses import replace

import numpy as np

from scheduling.admission.refusal_memory import Memory
from scheduling.cycle import next_cycle
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.queue import WhenBlocked
from scheduling.model.verdict import Admitted
from scheduling.queueing.queues import Queues
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.queueing.waiting import WaitingGangs
from tests.builders import GPU, columns, gang, group, node, shape
from tests.scheduling.backfill.cycles import NODES, asks, decide, holds, said, team


def test_a_gang_beyond_its_quota_waits_though_there_is_room_and_is_told_the_numbers() -> None:
    verdicts, _ = decide([team(gpus=6)], asks("g", 4), running=[holds("old", {"n1": 3})])
    assert said(verdicts["g"]) == (
        "QuotaExceeded: queue a uses 3 of its quota of 6 nvidia.com/gpu and may take 3 more, and "
        "the gang needs 4"
    )


def test_a_gang_that_no_quota_will_ever_cover_is_told_so() -> None:
    verdicts, _ = decide([team(gpus=6)], asks("g", 7))
    assert said(verdicts["g"]) == (
        "QuotaExceeded: queue a can hold at most 6 nvidia.com/gpu with all that it may borrow, and "
        "the gang needs 7 at once"
    )


def test_a_surplus_grows_only_as_far_as_the_quota_and_the_rest_says_why_it_waits() -> None:
    verdicts, _ = decide([team(gpus=6)], asks("g", 4, surplus=5))
    admitted = verdicts["g"]
    assert isinstance(admitted, Admitted)
    assert admitted.units == (0, 1)
    assert admitted.left_out is not None
    assert said(admitted.left_out).startswith("QuotaExceeded: queue a uses 6 of its quota of 6")


def test_what_one_gang_takes_is_gone_for_the_next_of_its_queue() -> None:
    verdicts, _ = decide([team(gpus=6)], asks("g", 4), asks("h", 4, created=1))
    assert isinstance(verdicts["g"], Admitted)
    assert "uses 4 of its quota of 6" in said(verdicts["h"])


def test_quota_that_comes_free_is_kept_for_the_gang_that_waits_for_it() -> None:
    """The head needs all quota; what would hold some of it for longer does not pass."""
    running = [holds("old", {"n1": 4}, ends=100)]
    verdicts, _ = decide(
        [team(WhenBlocked.BACKFILL, gpus=8)],
        asks("head", 8),
        asks("short", 2, created=1, lasts=100),
        asks("long", 2, created=2, lasts=101),
        running=running,
    )
    assert "uses 6 of its quota of 8" in said(verdicts["head"])
    assert isinstance(verdicts["short"], Admitted)
    assert said(verdicts["long"]).startswith("QueueBlocked: there is room, but team/head")


def test_gangs_that_wait_for_the_same_quota_as_before_are_not_told_again() -> None:
    tree = QuotaTree([team(gpus=4)])
    waiting = WaitingGangs(tree)
    for at in range(3):
        waiting.put(asks(f"g{at}", 5 - at, created=at))

    def cycle(held: int, memory: Memory | None) -> tuple[list[str], Memory]:
        told = Queues(waiting, np.array([tree.requests({GPU: held})], dtype=np.int64))
        decisions, later = next_cycle(told, columns(*NODES), memory)
        return [each.key.name for each in decisions], later

    names, memory = cycle(3, None)
    assert names == ["g0", "g1", "g2"]
    names, memory = cycle(3, memory)
    assert names == []
    names, memory = cycle(2, memory)
    assert names == ["g0", "g1", "g2"], "other numbers"
    waiting.drop(GangKey("team", "g1"))
    names, memory = cycle(2, memory)
    assert names == ["g0", "g2"], "another place"


def test_a_gang_over_quota_that_the_nodes_can_never_hold_blocks_nothing() -> None:
    """16 GPUs in all: 20 never fit, and neither does one pod of nine."""
    running = [holds("old", {"n1": 1})]
    absurd = asks("absurd", 20)
    for when in WhenBlocked:
        verdicts, _ = decide(
            [team(when, 20)], absurd, asks("small", 1, created=3), running=running, aged=[absurd]
        )
        assert isinstance(verdicts["small"], Admitted), when
    wide = replace(gang("wide", group("workers", 1, shape(gpu=9))), queue="a")
    verdicts, _ = decide(
        [team(gpus=9)], wide, asks("small", 1, created=3), running=running, aged=[wide]
    )
    assert isinstance(verdicts["small"], Admitted)


def test_an_aged_gang_beyond_all_that_its_queue_could_ever_get_blocks_nothing() -> None:
    big = asks("big", 3)
    verdicts, _ = decide([team(gpus=2)], big, asks("small", 1, created=1), aged=[big])
    assert "can hold at most 2" in said(verdicts["big"])
    assert isinstance(verdicts["small"], Admitted)


MIXED = (node("n1", gpu=8, cpu=8), node("c1", cpu=4))
"""A node with GPUs, which others hold, and one without."""


def hungry(name: str, pods: int) -> PendingGang:
    """A gang with workers of 2 GPUs and 3 CPU each."""
    return replace(gang(name, group("workers", pods, shape(gpu=2, cpu=3))), queue="a")
