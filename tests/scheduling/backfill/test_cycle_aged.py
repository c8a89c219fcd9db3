"""What an aged gang keeps from others."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from scheduling.cycle import next_cycle
from scheduling.model.gang import PendingGang
from scheduling.model.queue import Queue, WhenBlocked
from scheduling.model.verdict import Admitted
from scheduling.queueing.queues import Queues
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.queueing.waiting import WaitingGangs
from tests.builders import GPU, columns, gang, group, node, shape
from tests.scheduling.backfill.cycles import BUSY, NODES, asks, decide, holds, said, team


def test_an_aged_gang_holds_its_nodes_against_other_queues_too() -> None:
    queues = [team(gpus=99), Queue("b", quota={GPU: 16})]
    big = asks("big", 10)
    other = asks("other", 1, queue="b", created=1)
    verdicts, _ = decide(queues, big, other, running=BUSY, aged=[big])
    assert said(verdicts["other"]) == (
        "QueueBlocked: there is room, but team/big has waited so long for it that nothing passes it"
    )


def test_of_aged_gangs_of_several_queues_the_first_that_came_is_decided_first() -> None:
    """Else a busy queue of higher priority, all of whose gangs wait that long, starves others."""
    queues = [team(gpus=16), Queue("b", quota={GPU: 16})]
    old = asks("old", 10, created=1)
    other = replace(asks("other", 10, queue="b", created=2), priority=9)
    running = [holds("runs", {"n1": 1})]
    verdicts, _ = decide(queues, old, other, running=running, aged=[old, other])
    assert isinstance(verdicts["old"], Admitted)
    verdicts, _ = decide(queues, old, other, running=running)
    assert isinstance(verdicts["other"], Admitted), "its queue uses the smaller share"


def test_a_gang_that_was_passed_too_often_holds_its_nodes_in_its_queue_alone() -> None:
    queues = [team(gpus=99), Queue("b", quota={GPU: 16})]
    big, other = asks("big", 10), asks("other", 1, queue="b", created=1)
    verdicts, _ = decide(queues, big, other, asks("own", 1, created=2), running=BUSY, passed=[big])
    assert isinstance(verdicts["other"], Admitted)
    assert said(verdicts["own"]).startswith("QueueBlocked: there is room, but team/big")


def urgent(name: str, pods: int) -> PendingGang:
    """A gang that is before all others of its queue, though it came last."""
    return replace(asks(name, pods, created=9), priority=1000)


def test_an_aged_gang_that_waits_for_quota_does_not_bar_the_gang_before_it() -> None:
    big, running = asks("big", 8), [holds("old", {"n1": 1})]
    verdicts, passed = decide([team(gpus=8)], big, urgent("vip", 1), running=running, aged=[big])
    assert isinstance(verdicts["vip"], Admitted)
    assert passed == [], "it was before the other one, and did not pass it"


def test_an_aged_gang_behind_another_that_waits_for_quota_is_protected_too() -> None:
    big, running = asks("big", 8), [holds("old", {"n1": 1})]
    behind = asks("behind", 1, created=3)
    verdicts, _ = decide([team(gpus=8)], big, urgent("vip", 8), behind, running=running, aged=[big])
    assert said(verdicts["behind"]).startswith("QueueBlocked: there is room, but team/big")


@pytest.mark.parametrize(("lasts", "passes"), [(100, True), (101, False), (inf, False)])
def test_an_aged_gang_with_a_known_start_lets_pass_what_ends_before_it(
    lasts: float, *, passes: bool
) -> None:
    head, other = asks("head", 16), asks("other", 1, created=1, lasts=lasts)
    verdicts, _ = decide(
        [team(WhenBlocked.BACKFILL)],
        head,
        other,
        running=[holds("old", {"n1": 8}, ends=100)],
        aged=[head],
    )
    assert isinstance(verdicts["other"], Admitted) == passes
    if not passes:
        assert "team/head is expected to start in 1m40s" in said(verdicts["other"])


@pytest.mark.parametrize("is_aged", [True, False])
def test_an_aged_gang_keeps_its_node_while_it_waits_for_quota(*, is_aged: bool) -> None:
    """The quota of its queue is used up on n1; n2 is free, and another queue wants a part of it."""
    big = replace(gang("big", group("workers", 1, shape(gpu=8))), queue="a")
    verdicts, _ = decide(
        [team(gpus=8), Queue("b", quota={GPU: 8})],
        big,
        asks("small", 1, queue="b", created=1),
        running=[holds("old", {"n1": 8})],
        aged=[big] if is_aged else [],
    )
    assert said(verdicts["big"]).startswith("QuotaExceeded")
    assert isinstance(verdicts["small"], Admitted) != is_aged


def test_a_start_is_kept_on_nodes_of_pods_that_would_fit_now_too() -> None:
    """The head of the gang fits only c1, which is free; its workers wait for n1 until 50."""
    workers = group("workers", 8, shape(gpu=1, selector={"pool": "gpu"}))
    blocked = replace(gang("big", group("head", 1, shape(cpu=4)), workers), queue="a")
    small = gang("small", group("head", 1, shape(cpu=4)), created=1)
    verdicts, _ = decide(
        [team(WhenBlocked.BACKFILL)],
        blocked,
        replace(small, queue="a"),
        running=[holds("old", {"n1": 4}, ends=50)],
        nodes=(node("n1", gpu=8, cpu=2, labels={"pool": "gpu"}), node("c1", cpu=4)),
    )
    assert said(verdicts["small"]).startswith("QueueBlocked: there is room, but team/big")


def test_a_cycle_says_when_time_alone_may_turn_what_a_reservation_refused() -> None:
    tree = QuotaTree([team(WhenBlocked.BACKFILL)])

    def asks_again(*pending: PendingGang, ends: float) -> float:
        waiting = WaitingGangs(tree)
        for each in pending:
            waiting.put(each)
        held = np.array([tree.requests({GPU: 8})], dtype=np.int64)
        told = Queues(waiting, held, {GPU: 16}, 0.0, lambda: [holds("old", {"n1": 8}, ends=ends)])
        nodes = columns(*NODES, used={"n1": {GPU: 8, "pods": 8}})
        return next_cycle(told, nodes, None)[1].asks_again_in

    head, long = asks("head", 16), asks("long", 1, created=1)
    assert asks_again(head, long, ends=40) == 40
    assert asks_again(head, long, ends=4000) == 60
    assert asks_again(head, ends=40) == inf


@pytest.mark.parametrize("when", [WhenBlocked.BEST_EFFORT, WhenBlocked.BACKFILL])
def test_quota_that_a_gang_is_to_borrow_is_kept_from_those_that_borrow_it_too(
    when: WhenBlocked,
) -> None:
    """The eight GPUs of the queue above come free at 100; an aged gang needs no such time."""
    above = Queue("all", quota={GPU: 8})
    mine = replace(team(when), parent="all", quota={})
    big, small = asks("big", 8), asks("small", 1, queue="c", created=5)
    verdicts, _ = decide(
        [above, mine, Queue("c", "all"), Queue("d", quota={GPU: 8})],
        big,
        small,
        asks("apart", 1, queue="d", created=6),
        running=[holds("old", {"n1": 4}, ends=100, queue="c")],
        aged=[big] if when is WhenBlocked.BEST_EFFORT else [],
    )
    assert said(verdicts["small"]).startswith("QueueBlocked: there is room, but team/big")
    assert isinstance(verdicts["apart"], Admitted), "it shares no quota with them"
