"""Which gangs pass a blocked one: Strict, BestEffort, Backfill."""

from dataclasses import replace

import pytest

from scheduling.model.constraints import PodTerm
from scheduling.model.gang import PendingGang
from scheduling.model.queue import Queue, WhenBlocked
from scheduling.model.verdict import Admitted, Verdict
from scheduling.state.pod_index import ExistingPods, PodIndex
from tests.builders import GPU, gang, group, node, require, shape
from tests.scheduling.backfill.cycles import BUSY, NODES, asks, decide, holds, said, team


def test_a_strict_queue_does_not_wait_for_a_gang_that_the_nodes_can_never_hold() -> None:
    """20 GPUs do not fit 16: that is NeverFits, and blocks no other gang."""
    verdicts, _ = decide(
        [team(WhenBlocked.STRICT, gpus=99)], asks("absurd", 20), asks("fits", 1, created=1)
    )
    assert said(verdicts["absurd"]).startswith("NeverFits")
    assert isinstance(verdicts["fits"], Admitted)


def odd() -> PendingGang:
    """A head and two workers of 2 CPU each never fit `SMALL`; sums do not show that."""
    asked = gang("odd", group("head", 1, shape(cpu=2)), group("workers", 2, shape(cpu=2, gpu=1)))
    return replace(asked, queue="a")


SMALL = (node("n1", cpu=3, gpu=1), node("n2", cpu=3, gpu=1))


def with_anti_affinity() -> ExistingPods:
    """One pod of some namespace that keeps pods of its app off its node."""
    index = PodIndex()
    term = PodTerm("host", (require("app", "In", "x"),), ("others",))
    index.use(("others", (("app", "x"),)), (term,), "n1", 1)
    return ExistingPods(index)


@pytest.mark.parametrize("existing", [None, with_anti_affinity()], ids=["", "with a constraint"])
@pytest.mark.parametrize("when", WhenBlocked)
def test_a_gang_whose_groups_fit_empty_nodes_each_alone_and_not_together_blocks_nothing(
    when: WhenBlocked, existing: ExistingPods | None
) -> None:
    """Pods that exist would only take nodes away, whatever constraints they have."""
    light = gang("light", group("head", 1, shape(cpu=1)), created=1)
    verdicts, passed = decide(
        [team(when)],
        odd(),
        replace(light, queue="a"),
        aged=[odd()],
        nodes=SMALL,
        existing=existing,
    )
    assert said(verdicts["odd"]).startswith("InsufficientResources")
    assert isinstance(verdicts["light"], Admitted)
    assert passed == []


def test_strict_lets_nothing_pass_a_gang_that_waits_for_room() -> None:
    verdicts, passed = decide(
        [team(WhenBlocked.STRICT)], asks("big", 8), asks("small", 1, created=1), running=BUSY
    )
    assert said(verdicts["small"]) == (
        "QueueBlocked: waits behind team/big: nothing passes a blocked gang in queue a"
    )
    assert passed == []


def test_best_effort_lets_all_pass_and_counts_it() -> None:
    verdicts, passed = decide(
        [team()], asks("big", 8), asks("s", 1, created=1), asks("t", 1, created=2), running=BUSY
    )
    assert isinstance(verdicts["s"], Admitted)
    assert passed == ["big", "big"]


def test_backfill_lets_a_gang_pass_that_ends_before_the_blocked_one_starts() -> None:
    """The blocked gang starts at 100, when a whole node is free again."""
    wide = group("workers", 1, shape(gpu=8))
    big = replace(gang("big", wide), queue="a")
    verdicts, _ = decide(
        [team(WhenBlocked.BACKFILL)],
        big,
        asks("short", 1, created=1, lasts=100),
        asks("long", 1, created=2, lasts=101),
        running=BUSY,
        nodes=NODES,
    )
    assert isinstance(verdicts["short"], Admitted)
    assert isinstance(verdicts["long"], Admitted), "it stands on n2, and n1 is enough"


def test_backfill_refuses_what_would_delay_the_blocked_gang_and_says_by_whom_and_when() -> None:
    verdicts, _ = decide(
        [team(WhenBlocked.BACKFILL)],
        asks("big", 10),
        asks("long", 2, created=1, lasts=3700),
        asks("unknown", 2, created=2),
        running=[holds("old", {"n1": 8}, ends=100), holds("other", {"n2": 6})],
    )
    assert said(verdicts["long"]) == (
        "QueueBlocked: there is room, but team/big is expected to start in 1m40s, and would start "
        "later for this gang, which runs for 1h1m"
    )
    assert said(verdicts["unknown"]).endswith("which names no expected duration")


def test_without_known_ends_backfill_lets_all_pass() -> None:
    running = [holds("old", {"n1": 8}), holds("other", {"n2": 6})]
    verdicts, passed = decide(
        [team(WhenBlocked.BACKFILL)], asks("big", 10), asks("s", 2, created=1), running=running
    )
    assert isinstance(verdicts["s"], Admitted)
    assert passed == ["big"]


def test_a_minimum_passes_where_only_the_surplus_would_delay_the_blocked_gang() -> None:
    """Beside 14 GPUs of 16 there are two: for the minimum, and one more."""
    verdicts, _ = decide(
        [team(WhenBlocked.BACKFILL)],
        asks("big", 14),
        asks("grows", 1, surplus=6, created=1),
        running=[holds("old", {"n1": 6}, ends=100)],
    )
    grown = verdicts["grows"]
    assert isinstance(grown, Admitted)
    assert grown.units == ()
    assert grown.left_out is not None
    assert said(grown.left_out).startswith("QueueBlocked: there is room, but team/big")


def test_a_gang_that_was_admitted_before_the_blocked_one_ends_too() -> None:
    """The first holds n1 until 50; then the head could start, and what runs on delays it."""
    verdicts, _ = decide(
        [team(WhenBlocked.BACKFILL)],
        asks("first", 8, lasts=50),
        asks("head", 16, created=1),
        asks("endless", 8, created=2),
    )
    assert isinstance(verdicts["first"], Admitted)
    assert said(verdicts["endless"]).startswith("QueueBlocked: there is room, but team/head")


KEPT = Queue("b", quota={GPU: 99}, when_blocked=WhenBlocked.BACKFILL)


def behind_a_reservation(when: WhenBlocked) -> tuple[dict[str, Verdict], list[str]]:
    """The head of queue a would delay a gang of queue b; a short gang is behind it."""
    return decide(
        [KEPT, team(when)],
        asks("reserved", 16, queue="b", created=-9),
        asks("head", 4, created=1),
        asks("short", 1, created=2, lasts=5),
        running=[holds("old", {"n1": 4}, ends=100)],
    )


def test_in_a_strict_queue_nothing_passes_a_gang_that_a_reservation_holds() -> None:
    verdicts, passed = behind_a_reservation(WhenBlocked.STRICT)
    assert said(verdicts["head"]).startswith("QueueBlocked: there is room, but team/reserved")
    assert said(verdicts["short"]).startswith("QueueBlocked: waits behind team/head")
    assert passed == []


def test_a_gang_that_passes_one_that_a_reservation_holds_is_counted() -> None:
    verdicts, passed = behind_a_reservation(WhenBlocked.BEST_EFFORT)
    assert isinstance(verdicts["short"], Admitted)
    assert passed == ["head"]


def test_gangs_of_a_queue_that_is_not_active_end_too() -> None:
    """The head starts when the gang of the broken queue has ended, at 100."""
    verdicts, _ = decide(
        [team(WhenBlocked.BACKFILL)],
        asks("head", 16),
        asks("short", 1, created=1, lasts=100),
        asks("long", 1, created=2, lasts=101),
        running=[holds("old", {"n1": 8}, ends=100, queue="broken")],
    )
    assert isinstance(verdicts["short"], Admitted)
    assert said(verdicts["long"]).startswith("QueueBlocked: there is room, but team/head")
