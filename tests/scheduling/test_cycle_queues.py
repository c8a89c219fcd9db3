"""A cycle with several queues: quota for minimum and surplus, Strict, Backfill, ageing."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from scheduling.admission.gang import admit
from scheduling.admission.question import Outcome, Question, SearchSteps
from scheduling.admission.refusal_memory import Memory
from scheduling.backfill import outlook
from scheduling.backfill.reservations import Reservations
from scheduling.cycle import next_cycle
from scheduling.model.constraints import PodTerm
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.node import Node
from scheduling.model.queue import Queue, WhenBlocked
from scheduling.model.verdict import Admitted, Refusal, Verdict
from scheduling.queueing.order import QueueOrder
from scheduling.queueing.queues import Holding, Queues
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.queueing.waiting import WaitingGangs
from scheduling.state.pod_index import ExistingPods, PodIndex
from tests.builders import GPU, columns, gang, group, node, require, shape

NODES = (node("n1", gpu=8), node("n2", gpu=8))


walk = QueueOrder._walk


def asks(
    name: str,
    pods: int,
    *,
    queue: str = "a",
    surplus: int = 0,
    created: float = 0,
    lasts: float = inf,
) -> PendingGang:
    """A gang with pods of one GPU each, and units of surplus of one pod each."""
    one = shape(gpu=1)
    more = ((group("workers", 1, one),),) * surplus
    asked = gang(name, group("workers", pods, one), surplus=more, created=created)
    return replace(asked, queue=queue, duration=lasts)


def holds(name: str, gpus: Mapping[str, int], *, ends: float = inf, queue: str = "a") -> Holding:
    """A running gang with so many GPUs on each node."""
    room = tuple((where, ((GPU, count), ("pods", count))) for where, count in gpus.items())
    return Holding(GangKey("team", name), queue, room, ends)


def decide(
    queues: Iterable[Queue],
    *pending: PendingGang,
    running: Iterable[Holding] = (),
    aged: Iterable[PendingGang] = (),
    passed: Iterable[PendingGang] = (),
    nodes: tuple[Node, ...] = NODES,
    existing: ExistingPods | None = None,
) -> tuple[dict[str, Verdict], list[str]]:
    """The verdicts by name of the gang, and the blocked gangs that were passed.

    `aged` have waited too long, `passed` were passed too often.
    """
    tree, runs = QuotaTree(queues), list(running)
    waiting = WaitingGangs(tree)
    for each in pending:
        waiting.put(each)
    held = np.zeros((len(tree.names), len(tree.resources)), dtype=np.int64)
    used: dict[str, dict[str, int]] = {}
    for each_running in runs:
        for where, amounts in each_running.room:
            if each_running.queue in tree.index:
                held[tree.index[each_running.queue]] += tree.requests(dict(amounts))
            taken = used.setdefault(where, {})
            for resource, amount in amounts:
                taken[resource] = taken.get(resource, 0) + amount
    overdue = frozenset(each.key for each in aged)
    old = overdue | {each.key for each in passed}
    told = Queues(waiting, held, {GPU: 16}, 0.0, lambda: runs, old, overdue)
    decisions, memory = next_cycle(told, columns(*nodes, used=used), None, existing=existing)
    return {each.key.name: each.verdict for each in decisions}, [key.name for key in memory.passed]


def said(verdict: Verdict) -> str:
    assert isinstance(verdict, Refusal), verdict
    return f"{verdict.reason}: {verdict.message}"


def team(when: WhenBlocked = WhenBlocked.BEST_EFFORT, gpus: int = 99) -> Queue:
    return Queue("a", quota={GPU: gpus}, when_blocked=when)


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


BUSY = (holds("old", {"n1": 8}, ends=100), holds("other", {"n2": 6}, ends=200))


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


def test_an_aged_gang_holds_its_nodes_against_other_queues_too() -> None:
    queues = [team(gpus=99), Queue("b", quota={GPU: 16})]
    big = asks("big", 10)
    other = asks("other", 1, queue="b", created=1)
    verdicts, _ = decide(queues, big, other, running=BUSY, aged=[big])
    assert said(verdicts["other"]) == (
        "QueueBlocked: there is room, but team/big has waited so long for it that nothing passes it"
    )


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


COMPANY = (
    Queue("all"),
    Queue("research", "all", {GPU: 10}),
    Queue("product", "all", {GPU: 6}),
    Queue("students", "all", {GPU: 0}),
)


def test_an_aged_borrower_does_not_come_before_guaranteed_quota() -> None:
    student = asks("student", 14, queue="students")
    verdicts, _ = decide(
        COMPANY, student, asks("within", 4, queue="research", created=5), aged=[student]
    )
    assert isinstance(verdicts["within"], Admitted)


def test_an_aged_borrower_that_waits_for_room_lets_guaranteed_quota_pass() -> None:
    """Nodes have 13 GPUs: the borrower waits for them, others of the queue behind it."""
    student = asks("student", 14, queue="students")
    verdicts, _ = decide(
        COMPANY,
        student,
        asks("second", 1, queue="students", created=1),
        asks("borrows", 8, queue="product", created=5),
        asks("within", 4, queue="research", created=6),
        running=[holds("small", {"n1": 2}, queue="product")],
        nodes=(*NODES[:1], node("n2", gpu=7)),
        aged=[student],
    )
    assert isinstance(verdicts["within"], Admitted)


LENDER = asks("lender", 4, queue="lender")
LENDING = (
    Queue("all"),
    Queue("lender", "all", {GPU: 4}),
    Queue("other", "all", {GPU: 2}),
    Queue("guest", "all", {GPU: 0}),
)


BY_GUESTS = [holds("g", {"n1": 3}, queue="guest")]
"""Of six GPUs of quota the guests hold three, so that the lender's four are not all there."""


@pytest.mark.parametrize(
    ("queue", "pods", "nodes", "passes"),
    [
        ("guest", 1, NODES, False),
        ("other", 3, NODES, False),  # it would borrow one
        ("other", 2, NODES, True),  # its own quota covers it
        ("lender", 1, NODES, True),  # in its own queue others pass until it has aged
        ("guest", 1, (node("n1", gpu=6),), True),  # the nodes could not take the lender's gang
    ],
)
def test_quota_that_a_queue_has_lent_is_kept_for_its_own_gang_from_those_that_borrow(
    queue: str, pods: int, nodes: tuple[Node, ...], *, passes: bool
) -> None:
    passer = asks("p", pods, queue=queue, created=1)
    verdicts, _ = decide(LENDING, LENDER, passer, running=BY_GUESTS, nodes=nodes)
    assert said(verdicts["lender"]).startswith("QuotaExceeded")
    assert isinstance(verdicts["p"], Admitted) == passes


def test_who_may_not_borrow_because_the_lender_waits_is_told_so() -> None:
    passer = asks("p", 1, queue="guest", created=1)
    verdicts, _ = decide(LENDING, LENDER, passer, running=BY_GUESTS)
    assert said(verdicts["p"]) == (
        "QueueBlocked: there is room, but team/lender waits for quota that its own queue has lent, "
        "so nothing more of it is borrowed"
    )


def test_an_aged_gang_is_decided_before_other_queues_that_need_as_little_to_borrow() -> None:
    queues = [team(gpus=16), Queue("b", quota={GPU: 16})]
    old, other = asks("old", 10, created=5), asks("other", 10, queue="b", created=1)
    verdicts, _ = decide(queues, old, other, aged=[old])
    assert isinstance(verdicts["old"], Admitted)
    verdicts, _ = decide(queues, old, other, passed=[old])
    assert isinstance(verdicts["other"], Admitted), "passes count in the queue alone"


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


def test_a_gang_that_takes_none_of_the_short_quota_passes_an_aged_one() -> None:
    """The aged gang waits for GPUs of its quota; the other asks for CPU alone."""
    both = Queue("a", quota={GPU: 8, "cpu": 100_000})
    big, light = asks("big", 8), gang("light", group("head", 1, shape(cpu=1)), created=1)
    verdicts, _ = decide(
        [both],
        big,
        replace(light, queue="a"),
        running=[holds("old", {"n1": 1})],
        nodes=(node("n1", gpu=8, cpu=8), node("n2", gpu=8, cpu=8)),
        aged=[big],
    )
    assert isinstance(verdicts["light"], Admitted)


MIXED = (node("n1", gpu=8, cpu=8), node("c1", cpu=4))
"""A node with GPUs, which others hold, and one without."""

HOLDS_GPUS = holds("old", {"n1": 8})


def with_head(name: str, gpus: int) -> PendingGang:
    """A gang with a head of 3 CPU, and workers of a GPU each."""
    return replace(
        gang(name, group("head", 1, shape(cpu=3)), group("workers", gpus, shape(gpu=1))), queue="a"
    )


def on_cpu(name: str, cpu: int) -> PendingGang:
    return replace(gang(name, group("head", 1, shape(cpu=cpu)), created=1), queue="a")


def test_an_aged_gang_that_waits_for_gpus_does_not_hold_nodes_that_have_none() -> None:
    big = asks("big", 8)
    nodes = (node("n1", gpu=8, cpu=0), node("c1", cpu=4))
    verdicts, _ = decide(
        [team()], big, on_cpu("light", 4), running=[HOLDS_GPUS], aged=[big], nodes=nodes
    )
    assert said(verdicts["big"]).startswith("InsufficientResources")
    assert isinstance(verdicts["light"], Admitted)


@pytest.mark.parametrize(("cpu", "passes"), [(1, True), (2, False)])
def test_an_aged_gang_keeps_the_room_of_its_pods_that_fit(cpu: int, *, passes: bool) -> None:
    """Its head fits c1 alone, beside one more CPU; its workers wait for GPUs."""
    big = with_head("big", 8)
    nodes = (node("n1", gpu=8, cpu=0), node("c1", cpu=4))
    verdicts, _ = decide(
        [team()], big, on_cpu("other", cpu), running=[HOLDS_GPUS], aged=[big], nodes=nodes
    )
    assert isinstance(verdicts["other"], Admitted) == passes
    if not passes:
        assert said(verdicts["other"]) == (
            "QueueBlocked: there is room, but team/big has waited so long for it that nothing "
            "passes it"
        )


def hungry(name: str, pods: int) -> PendingGang:
    """A gang with workers of 2 GPUs and 3 CPU each."""
    return replace(gang(name, group("workers", pods, shape(gpu=2, cpu=3))), queue="a")


@pytest.mark.parametrize(
    ("workers", "gpus", "cpu", "passes"),
    [
        (9, 0, 3, True),  # 12 CPU are kept: n1 could run four workers if it were empty
        (9, 0, 4, False),
        (2, 0, 9, True),  # 6 CPU are kept: there are no more than two workers
        (2, 0, 10, False),
        (9, 1, 1, False),  # a GPU that is free, of nine that four workers need eight of
    ],
)
def test_what_a_node_has_beyond_all_pods_of_an_aged_gang_that_it_could_run_passes(
    workers: int, gpus: int, cpu: int, *, passes: bool
) -> None:
    """n1 has 15 of 16 CPU free and one GPU, n2 none; the workers need 2 GPUs and 3 CPU each."""
    nodes = (node("n1", gpu=9, cpu=16, labels={"name": "n1"}), node("n2", gpu=16, cpu=30))
    busy = (("n1", (("cpu", 1000), (GPU, 8))), ("n2", ((GPU, 16),)))
    big = replace(gang("big", group("workers", workers, shape(gpu=2, cpu=3))), queue="a")
    on_n1 = shape(gpu=gpus, cpu=cpu, selector={"name": "n1"})
    other = replace(gang("other", group("workers", 1, on_n1), created=1), queue="a")
    running = [Holding(GangKey("team", "old"), "a", busy)]
    verdicts, _ = decide([team()], big, other, running=running, aged=[big], nodes=nodes)
    assert said(verdicts["big"]).startswith("InsufficientResources")
    assert isinstance(verdicts["other"], Admitted) == passes


@pytest.mark.parametrize("rule", [WhenBlocked.BEST_EFFORT, WhenBlocked.BACKFILL])
@pytest.mark.parametrize(("pods", "passes"), [(8, True), (9, False)])
def test_a_gang_goes_where_nothing_is_kept_though_another_node_is_better(
    rule: WhenBlocked, pods: int, *, passes: bool
) -> None:
    """The aged gang needs n1, which is the fuller node and preferred; n2 has room for eight."""
    names = ("n1", "n2")
    nodes = tuple(node(name, gpu=8, labels={"name": name}) for name in names)
    on_n1 = group("workers", 8, shape(gpu=1, selector={"name": "n1"}))
    big, old = replace(gang("big", on_n1), queue="a"), holds("old", {"n1": 4}, ends=100)
    verdicts, passed = decide(
        [team(rule)], big, asks("other", pods, created=1), running=[old], aged=[big], nodes=nodes
    )
    other = verdicts["other"]
    assert isinstance(other, Admitted) == passes
    assert passed == (["big"] if passes else [])
    if isinstance(other, Admitted):
        assert [at for each in other.placement.assignments for at, _ in each.nodes] == ["n2"]


def test_a_gang_with_a_host_port_does_not_pass_on_what_an_aged_one_leaves() -> None:
    """Amounts alone are looked at, and a port may be what the aged gang needs too."""
    big = replace(gang("big", group("workers", 4, shape(gpu=2, cpu=3))), queue="a")
    nodes = (node("n1", gpu=8, cpu=64),)
    for ports in ((), (("", "TCP", 80),)):
        light = gang("light", group("head", 1, shape(cpu=1, ports=ports)), created=1)
        verdicts, _ = decide(
            [team()],
            big,
            replace(light, queue="a"),
            running=[holds("old", {"n1": 8})],
            aged=[big],
            nodes=nodes,
        )
        assert isinstance(verdicts["light"], Admitted) != bool(ports)


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


def delayed(count: int, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Verdict], int]:
    """Gangs of one kind that would delay the head, and how often a start was tried for it."""
    asked = []

    def counted(question: Question) -> Outcome:
        asked.append(question)
        return admit(question)

    monkeypatch.setattr(outlook, "admit", counted)
    waiting = [asks(f"g{at}", 2, created=1 + at, lasts=101 + at) for at in range(count)]
    short = replace(asks("short", 2, created=count + 2, lasts=100), priority=-1)
    verdicts, _ = decide(
        [team(WhenBlocked.BACKFILL)],
        asks("head", 16),
        *waiting,
        short,
        running=[holds("old", {"n1": 8}, ends=100)],
    )
    return verdicts, len(asked)


def test_gangs_that_ask_for_the_same_are_held_against_a_reservation_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few, tried = delayed(2, monkeypatch)
    many, tried_for_many = delayed(40, monkeypatch)
    assert tried_for_many == tried
    for verdicts in (few, many):
        assert isinstance(verdicts.pop("short"), Admitted)
        assert {said(each).split(":")[0] for name, each in verdicts.items() if name != "head"} == {
            "QueueBlocked"
        }
    assert "runs for 2m18s" in said(many["g37"])


def test_what_is_tried_for_a_blocked_gang_is_charged_to_the_cycle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spent: list[int] = []
    monkeypatch.setattr(SearchSteps, "spend", lambda _, steps: spent.append(steps))
    decide(
        [team(WhenBlocked.BACKFILL)],
        asks("head", 16),
        asks("long", 1, created=1, lasts=200),
        running=[holds("old", {"n1": 8}, ends=100)],
    )
    assert len(spent) > 2, "the searches for both, and those for the start"


def test_only_queues_whose_turn_comes_are_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    walked: list[str] = []

    def walk_and_count(order: QueueOrder, row: int, name: str) -> None:
        walked.append(name)
        walk(order, row, name)

    monkeypatch.setattr(QueueOrder, "_walk", walk_and_count)
    queues = [Queue("all", quota={GPU: 8}), *(Queue(f"q{at}", "all") for at in range(30))]
    waiting = [asks(f"g{at}", 8, queue=f"q{at % 30}", created=at) for at in range(90)]
    verdicts, _ = decide(queues, *waiting)
    assert [name for name, each in verdicts.items() if isinstance(each, Admitted)] == ["g0"]
    assert len(verdicts) == 90
    assert walked == ["q0"]


def test_thousands_of_equal_gangs_that_aged_keep_one_start_in_each_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept: list[str] = []
    monkeypatch.setattr(Reservations, "keep", lambda _, it: kept.append(it.claim.gang.key.name))
    waiting = [asks(f"g{at:02}", 8, created=at) for at in range(50)]
    decide(
        [team(gpus=8)],
        *waiting,
        asks("small", 1, created=99),
        running=[holds("old", {"n1": 1})],
        aged=waiting,
    )
    assert set(kept) == {"g00"}


def test_equal_units_of_a_surplus_are_counted_together_and_others_after_them() -> None:
    one, two, three = (group("workers", pods, shape(gpu=1)) for pods in (1, 2, 3))
    grows = replace(
        gang("g", group("workers", 1, shape(gpu=1)), surplus=((two,), (two,), (three,), (one,))),
        queue="a",
    )
    verdicts, _ = decide([team(gpus=6)], grows)
    grown = verdicts["g"]
    assert isinstance(grown, Admitted)
    assert grown.units == (0, 1, 3)
