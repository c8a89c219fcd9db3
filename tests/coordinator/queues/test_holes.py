"""The holes of a queue are those on its nodes; queues are counted in turn, each seldom."""

from collections.abc import Mapping

import pytest

from coordinator.queues.holes import EACH, PAUSE, HoleTurns, QueueHoles
from scheduling.model.node import Node
from scheduling.queueing.queue_nodes import NodeRules
from scheduling.state.node_table import node_snapshot_of
from tests.builders import GPU

RED, BLUE = (("model", "red"),), (("model", "blue"),)
DEVICES = frozenset([GPU])


def gpu_node(name: str, model: str, gpus: int) -> Node:
    offered = {"cpu": 64_000, "memory": 2**40, "pods": 110, GPU: gpus}
    return Node(name, {"model": model}, (), False, offered)


NODES = (gpu_node("a", "red", 8), gpu_node("b", "red", 3), gpu_node("c", "blue", 4))


def holes_of(
    used: Mapping[str, Mapping[str, int]] | None,
    rules: NodeRules,
    resources: tuple[str, ...] = (GPU,),
) -> QueueHoles:
    return QueueHoles(lambda: (node_snapshot_of(NODES, used), resources), {"q": rules})


def counted(rules: NodeRules, used: Mapping[str, Mapping[str, int]] | None = None) -> list[int]:
    """The pods of each size that a queue with these rules is told of."""
    found = holes_of(used, rules, (GPU, "amd.com/gpu")).of("q")
    assert {each["resource"] for each in found} == {GPU}, "no node has the other"
    assert [each["size"] for each in found] == [1, 2, 4, 8]
    return [each["pods"] for each in found]


@pytest.mark.parametrize(
    ("rules", "holes"),
    [
        (NodeRules(), [15, 7, 3, 1]),
        (NodeRules(of_all=RED), [11, 5, 2, 1]),
        (NodeRules(of_devices=BLUE, devices=DEVICES), [4, 2, 1, 0]),
        (NodeRules(of_devices=BLUE), [15, 7, 3, 1]),
        (NodeRules(of_all=RED, of_devices=BLUE, devices=DEVICES), [0, 0, 0, 0]),
    ],
)
def test_a_queue_has_the_holes_of_the_nodes_that_its_gpu_pods_may_use(
    rules: NodeRules, holes: list[int]
) -> None:
    assert counted(rules) == holes


def test_where_processors_are_short_fewer_fit_than_gpus_alone_allow() -> None:
    """Pods take 8 CPUs beside a GPU on one node, so that 16 left on another are enough for two."""
    used = {"a": {GPU: 2, "cpu": 16_000}, "c": {"cpu": 48_000}, "b": {GPU: 3}}
    found = holes_of(used, NodeRules(of_all=BLUE))
    assert [(each["pods"], each["atMost"]) for each in found.of("q")] == [
        (4, 4),
        (2, 2),
        (1, 1),
        (0, 0),
    ]
    used["b"] = {GPU: 3, "cpu": 24_000}
    found = holes_of(used, NodeRules(of_all=BLUE))
    assert [(each["pods"], each["atMost"]) for each in found.of("q")] == [
        (2, 4),
        (1, 2),
        (0, 1),
        (0, 0),
    ]


def test_queues_come_in_turn_while_something_moves_and_rest_when_nothing_does() -> None:
    turns, names = HoleTurns(), [f"q{at}" for at in range(5)]
    turns.moved(1, len(names))
    now, told = 0.0, list[str]()
    while turns.next_at is not None:
        now = max(now, turns.next_at)
        told += turns.take(names, now)
        turns.moved(1, len(names))
    assert told == names
    assert now == pytest.approx(4 * EACH / 5)
    turns.moved(2, len(names))
    assert turns.next_at == pytest.approx(EACH)


def test_the_first_edition_gives_each_queue_a_turn_whatever_its_number() -> None:
    """A cluster without nodes has edition 0: queues are still to be told that there is no room."""
    turns = HoleTurns()
    turns.moved(0, 1)
    assert list(turns.take(["a"], 0.0)) == ["a"]


@pytest.mark.parametrize("queues", [1, 7, 400])
def test_no_queue_is_counted_more_often_and_all_together_once_a_pause(queues: int) -> None:
    turns, names = HoleTurns(), sorted(f"q{at}" for at in range(queues))
    last: dict[str, float] = {}
    count = 0
    for tick in range(4000):
        now = tick / 4
        turns.moved(tick, queues)
        for name in turns.take(names, now):
            assert now - last.get(name, -EACH) >= EACH
            last[name], count = now, count + 1
    assert count <= 1000 / PAUSE
    assert set(last) == set(names)


def test_a_queue_that_goes_ends_its_turn() -> None:
    turns = HoleTurns()
    turns.moved(1, 2)
    assert list(turns.take(["a", "b"], 0.0)) == ["a"]
    turns.moved(1, 0)
    assert turns.next_at is None
    turns.moved(2, 1)
    assert list(turns.take(["a"], 100.0)) == ["a"]
