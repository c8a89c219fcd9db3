"""Which gangs the empty nodes might hold, and how seldom the whole verdict is asked for it."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from scheduling.admission.gang import admit
from scheduling.admission.question import Outcome, Question
from scheduling.admission.refusal_memory import Memory
from scheduling.backfill import empty_nodes
from scheduling.backfill.empty_nodes import NEW_VERDICTS
from scheduling.cycle import NodeFacts, next_cycle
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.queue import Queue, WhenBlocked
from scheduling.model.verdict import Admitted, Refusal, Verdict
from scheduling.queueing.queues import Holding, Queues
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.queueing.waiting import WaitingGangs
from scheduling.state.daemon_usage import DaemonUsage
from scheduling.state.node_snapshot import NodeSnapshot
from tests.builders import GPU, columns, gang, group, node, shape

A, B = {"zone": "a"}, {"zone": "b"}
SMALL = [node(f"{zone['zone']}{at}", cpu=3, gpu=1, labels=zone) for zone in (A, B) for at in (1, 2)]
FULL = {each.name: {GPU: 1} for each in SMALL}
NODES = columns(*SMALL, used=FULL)
GANGS = NEW_VERDICTS + 8


def asks(at: int, *, zone: dict[str, str], cpu: str = "2") -> PendingGang:
    """A head, and two workers in a zone; with 2 CPU each they never fit its two nodes together."""
    head = group("head", 1, shape(cpu=cpu, memory=at, selector=zone))
    workers = group("workers", 2, shape(cpu=cpu, gpu=1, selector=zone))
    return replace(gang(f"g{at:03}", head, workers, created=at), queue="a")


def light(at: int, pods: int = 1, cpu: int = 1) -> PendingGang:
    """A gang that fits now, and never ends."""
    heads = group("head", pods, shape(cpu=cpu, selector=B))
    return replace(gang("light", heads, created=at), queue="a")


@pytest.fixture
def verdicts_asked(monkeypatch: pytest.MonkeyPatch) -> list[Question]:
    """The verdicts on empty nodes that were asked for."""
    asked: list[Question] = []

    def counted(question: Question) -> Outcome:
        asked.append(question)
        return admit(question)

    monkeypatch.setattr(empty_nodes, "admit", counted)
    return asked


def cycle(
    when: WhenBlocked,
    *pending: PendingGang,
    memory: Memory | None = None,
    nodes: NodeSnapshot = NODES,
    daemons: DaemonUsage | None = None,
) -> tuple[dict[str, Verdict], Memory]:
    """Decide gangs of one queue; what holds the GPUs ends after 100 s."""
    waiting = WaitingGangs(QuotaTree([Queue("a", when_blocked=when)]))
    for each in pending:
        waiting.put(each)
    room = tuple((each.name, ((GPU, 1),)) for each in SMALL)
    running = [Holding(GangKey("team", "old"), "a", room, 100.0)]
    queues = Queues(waiting, np.zeros((1, 0), dtype=np.int64), {}, 0.0, lambda: running)
    decisions, found = next_cycle(
        queues, nodes, memory, facts=NodeFacts(daemons=daemons or DaemonUsage())
    )
    return {each.key.name: each.verdict for each in decisions}, found


def test_of_the_gangs_that_backfill_only_the_first_is_asked_about(
    verdicts_asked: list[Question],
) -> None:
    """A start is kept for no other on the same nodes, and nothing else is kept from any."""
    cycle(WhenBlocked.BACKFILL, *(asks(at, zone=A, cpu="1") for at in range(GANGS)))
    assert len(verdicts_asked) == 1


def test_a_cycle_goes_on_asking_where_the_one_before_it_stopped(
    verdicts_asked: list[Question],
) -> None:
    """Until its turn each gang counts as one that might fit."""
    pending = *(asks(at, zone=B) for at in range(GANGS)), light(GANGS)
    verdicts, memory = cycle(WhenBlocked.STRICT, *pending)
    assert len(verdicts_asked) == NEW_VERDICTS
    assert isinstance(verdicts["light"], Refusal)
    assert memory.asks_again_in == 1.0

    verdicts, memory = cycle(WhenBlocked.STRICT, *pending, memory=memory)
    assert len(verdicts_asked) == GANGS
    assert isinstance(verdicts["light"], Admitted)
    assert memory.asks_again_in == inf


def test_answers_last_as_long_as_the_nodes_are_the_same_and_the_gangs_wait(
    verdicts_asked: list[Question],
) -> None:
    pending = [asks(at, zone=B) for at in range(4)]
    _, memory = cycle(WhenBlocked.STRICT, *pending)
    _, memory = cycle(WhenBlocked.STRICT, *pending[:3], memory=memory)
    assert len(verdicts_asked) == 4
    assert memory.when_empty is not None
    assert len(memory.when_empty.might_hold) == 3

    more = columns(*SMALL, node("b3", cpu=3, gpu=1, labels=B), used=FULL)
    verdicts, _ = cycle(WhenBlocked.STRICT, *pending[:3], light(4), memory=memory, nodes=more)
    assert isinstance(verdicts["light"], Refusal), "they fit three nodes, once those are free"


@pytest.mark.parametrize("is_first", [True, False])
def test_a_start_is_kept_for_the_gang_behind_one_that_can_never_fit(*, is_first: bool) -> None:
    """That one may be the first of its queue, or the first on its nodes."""
    before = () if is_first else (asks(0, zone=A, cpu="1"),)
    never, fits = asks(1, zone=B), asks(2, zone=B, cpu="1500m")
    verdicts, _ = cycle(WhenBlocked.BACKFILL, *before, never, fits, light(3, pods=2, cpu=2))
    refusal = verdicts["light"]
    assert isinstance(refusal, Refusal)
    assert "team/g002" in refusal.message


def test_a_gang_that_can_never_fit_is_passed_by_none() -> None:
    """Else the one behind it would never age."""
    _, memory = cycle(WhenBlocked.BACKFILL, asks(1, zone=B), asks(2, zone=B, cpu="1"), light(3))
    assert memory.passed == (GangKey("team", "g002"),)


# ---- beside pods of DaemonSets

CPU_100M = (("cpu", 100),)


def using(*nodes: str) -> DaemonUsage:
    """DaemonSets that use 100m on each of these nodes."""
    found = DaemonUsage()
    for each in nodes:
        found.use(each, CPU_100M, +1)
    return found


def whole_node() -> PendingGang:
    """A gang for all 3 CPU of a node in zone B, of which both are full at the moment."""
    return replace(gang("whole", group("head", 1, shape(cpu=3, gpu=1, selector=B))), queue="a")


@pytest.mark.parametrize("when", [WhenBlocked.STRICT, WhenBlocked.BACKFILL])
@pytest.mark.parametrize(
    ("daemons", "admitted"),
    [(using(), False), (using("b1"), False), (using("a1", "a2"), False), (using("b1", "b2"), True)],
)
def test_what_fits_only_without_daemonsets_blocks_no_other(
    when: WhenBlocked, daemons: DaemonUsage, *, admitted: bool
) -> None:
    verdicts, _ = cycle(when, whole_node(), light(1, pods=2, cpu=2), daemons=daemons)
    assert isinstance(verdicts["light"], Admitted) is admitted
    refusal = verdicts["whole"]
    assert isinstance(refusal, Refusal)
    assert ("so it holds back no other gang" in refusal.message) is admitted


def test_answers_last_as_long_as_daemonsets_use_the_same(verdicts_asked: list[Question]) -> None:
    daemons = using("b1", "b2")
    pending = whole_node(), light(1)
    _, memory = cycle(WhenBlocked.STRICT, *pending, daemons=daemons)
    daemons.use("b1", CPU_100M, -1)
    daemons.use("b1", CPU_100M, +1)
    _, memory = cycle(WhenBlocked.STRICT, *pending, memory=memory, daemons=daemons)
    assert len(verdicts_asked) == 1

    daemons.use("b1", CPU_100M, -1)
    verdicts, _ = cycle(WhenBlocked.STRICT, *pending, memory=memory, daemons=daemons)
    assert len(verdicts_asked) == 2
    assert isinstance(verdicts["light"], Refusal)
