"""Gangs that wait for quota and that no nodes could hold are told so first, at a bounded cost."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from scheduling.admission import never_fitting
from scheduling.admission.refusal_memory import Memory
from scheduling.cycle import next_cycle
from scheduling.diagnosis.never_fits import Never, never
from scheduling.model.gang import PendingGang
from scheduling.model.node import Node
from scheduling.model.queue import Queue
from scheduling.model.verdict import Refusal
from scheduling.placement.exact_search import Demand
from scheduling.queueing.queues import Queues
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.queueing.waiting import WaitingGangs
from scheduling.state.node_snapshot import NodeSnapshot
from tests.builders import GPU, columns, gang, group, node, shape

SMALL = node("n1", gpu=8)


def asks(name: str, gpus: int, *, created: float = 0) -> PendingGang:
    """A gang of one pod with so many GPUs."""
    return replace(gang(name, group("workers", 1, shape(gpu=gpus)), created=created), queue="a")


class Plot:
    """Cycles over one queue whose whole quota is used, one after the other."""

    def __init__(self, pending: Iterable[PendingGang], *, gets_nodes: bool = False) -> None:
        self.waiting = WaitingGangs(QuotaTree([Queue("a", quota={GPU: 99}, gets_nodes=gets_nodes)]))
        for each in pending:
            self.waiting.put(each)
        self.memory: Memory | None = None
        self.nodes = columns(SMALL)

    def cycle(self, *nodes: Node) -> dict[str, str]:
        """Return what the gangs are told that are told anything."""
        if nodes:
            self.nodes = columns(*nodes)
        queues = Queues(self.waiting, np.array([[99]]), {GPU: 8})
        decisions, self.memory = next_cycle(queues, self.nodes, self.memory)
        return {
            each.key.name: f"{each.verdict.reason}: {each.verdict.message}"
            for each in decisions
            if isinstance(each.verdict, Refusal)
        }

    def reasons(self, *nodes: Node) -> dict[str, str]:
        """Return the reasons of what they are told."""
        return {name: said.split(":")[0] for name, said in self.cycle(*nodes).items()}


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[Demand]:
    """What was judged."""
    found: list[Demand] = []

    def noted(demand: Demand, nodes: NodeSnapshot) -> tuple[Never, ...]:
        found.append(demand)
        return never(demand, nodes)

    monkeypatch.setattr(never_fitting, "never", noted)
    return found


def test_a_gang_beyond_its_quota_that_no_node_could_hold_is_told_that_first() -> None:
    told = Plot([asks("large", 16), asks("small", 8)]).cycle()
    assert told["large"] == (
        "NeverFits: workers needs 16 nvidia.com/gpu on one node; the largest node that could run "
        "it, n1, has 8 in all: the gang waits until a node is added or changed"
    )
    assert told["small"].startswith("QuotaExceeded: ")


def test_a_change_of_nodes_has_it_judged_again(judged: list[Demand]) -> None:
    plot = Plot([asks("large", 16)])
    assert plot.reasons() == {"large": "NeverFits"}
    assert plot.reasons(SMALL, node("n2", gpu=16)) == {"large": "QuotaExceeded"}
    assert plot.reasons(SMALL) == {"large": "NeverFits"}
    assert len(judged) == 3


def test_the_words_follow_the_nodes() -> None:
    plot = Plot([asks("large", 16)])
    plot.cycle()
    assert "n2, has 12 in all" in plot.cycle(node("n2", gpu=12))["large"]


def test_nothing_is_judged_where_nothing_changed_and_equal_gangs_once(judged: list[Demand]) -> None:
    plot = Plot(asks(f"g{at}", 16) for at in range(5))
    assert set(plot.reasons().values()) == {"NeverFits"}
    assert len(judged) == 1
    assert plot.cycle() == {}
    assert len(judged) == 1


def test_a_cycle_judges_so_many_and_the_next_goes_on(
    judged: list[Demand], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(never_fitting, "JUDGED", 2)
    plot = Plot(asks(f"g{at}", 16 + at, created=at) for at in range(5))
    turns, waits = [], []
    for _ in range(3):
        told = plot.reasons()
        turns.append(sorted(name for name, reason in told.items() if reason == "NeverFits"))
        assert plot.memory is not None
        waits.append(plot.memory.asks_again_in <= 1.0)
    assert turns == [["g0", "g1"], ["g2", "g3"], ["g4"]]
    assert waits == [True, True, False]
    assert len(judged) == 5


def test_all_are_judged_again_though_nodes_change_in_every_cycle(
    judged: list[Demand], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(never_fitting, "JUDGED", 2)
    plot = Plot(asks(f"g{at}", 16 + at, created=at) for at in range(4))
    for size in range(1, 3):
        plot.cycle(node("n1", gpu=size))
    judged.clear()
    for size in range(3, 5):
        plot.cycle(node("n1", gpu=size))
    assert len({demand[0][0] for demand in judged}) == 4


def test_a_gang_that_takes_the_row_of_another_is_judged_itself() -> None:
    plot = Plot([asks("large", 16)])
    plot.cycle()
    plot.waiting.drop(asks("large", 16).key)
    plot.waiting.put(asks("small", 8))
    assert plot.reasons() == {"small": "QuotaExceeded"}


def test_where_nodes_can_be_asked_for_quota_comes_first() -> None:
    plot = Plot([asks("large", 16)], gets_nodes=True)
    assert plot.reasons() == {"large": "QuotaExceeded"}
