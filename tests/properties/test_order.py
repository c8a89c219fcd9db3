"""The packing order against the rule worked out node by node, in plain numbers."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.columns import Columns
from scheduling.model import Node, PodShape
from scheduling.packing import best_nodes, order_nodes, use_beside
from scheduling.room import Room, Spread
from tests.properties.strategies import USED

DEVICES = ("amd.com/gpu", "nvidia.com/gpu")
NAMES = ("cpu", "memory", *DEVICES, "pods")
WORLD = st.lists(
    st.fixed_dictionaries({name: st.integers(0, 40) for name in NAMES}), min_size=1, max_size=12
)
ASKED = st.fixed_dictionaries({name: st.integers(0, 3) for name in NAMES})


def columns_of(world: Sequence[dict[str, int]], used: dict[str, dict[str, int]]) -> Columns:
    nodes = [
        Node(f"n{at:02}", {}, (), unschedulable=False, allocatable=amounts)
        for at, amounts in enumerate(world)
    ]
    return Columns.of(nodes, {f"n0{name[1:]}": of for name, of in used.items()})


def shape_of(asked: dict[str, int]) -> PodShape:
    return PodShape(tuple(sorted((name, n) for name, n in {**asked, "pods": 1}.items() if n)))


class Rule(NamedTuple):
    """The rule as `packing` tells it, without columns."""

    offered: list[dict[str, int]]
    free: list[dict[str, int]]

    @classmethod
    def of(cls, room: Room) -> "Rule":
        def rows(of: np.ndarray) -> list[dict[str, int]]:
            return [dict(zip(room.columns.resources, each, strict=True)) for each in of.T.tolist()]

        return cls(rows(room.columns.allocatable), rows(room.free))

    def typical(self, device: str, resource: str) -> int:
        """The lower median of what is in use per device, over nodes with devices in use."""
        found = []
        for offered, free in zip(self.offered, self.free, strict=True):
            devices = offered[device] - free[device]
            if devices > 0:
                found.append(max(offered[resource] - free[resource], 0) // devices)
        return sorted(found)[(len(found) - 1) // 2] if found else 0

    def stranded(self, device: str, idle: int, free: dict[str, int]) -> int:
        """In thousandths."""
        served = [
            max(free[name], 0) * 1000 // each
            for name in ("cpu", "memory")
            if (each := self.typical(device, name))
        ]
        return max(0, idle * 1000 - min(served, default=idle * 1000))

    def key(self, shape: PodShape, at: int, count: int, cost: int) -> tuple[int, ...]:
        """What decides about a node, in order; then the name."""
        free, asked = self.free[at], dict(shape.requests)
        fitting = min(free[name] // amount for name, amount in asked.items())
        pods = min(fitting, count)
        left = {name: amount - pods * asked.get(name, 0) for name, amount in free.items()}
        steps = idle = 0
        for device in DEVICES:
            before = self.stranded(device, max(free[device], 0), free)
            after = self.stranded(device, max(free[device], 0) - pods * asked.get(device, 0), left)
            steps += (after - before + 50) // 100
            idle += max(free[device], 0) * 1000 // max(self.offered[at][device], 1)
        tightness = 0 if asked.keys() & set(DEVICES) else fitting
        return steps // pods, idle, cost, tightness, at


@settings(max_examples=300, deadline=None)
@given(
    WORLD,
    USED,
    ASKED,
    st.integers(1, 6),
    st.lists(st.integers(0, 2), min_size=12, max_size=12),
    st.data(),
)
def test_the_order_is_the_rule(
    world: list[dict[str, int]],
    used: dict[str, dict[str, int]],
    asked: dict[str, int],
    count: int,
    costs: list[int],
    data: st.DataObject,
) -> None:
    """Also in a room that something was taken from; the best are the beginning of all."""
    shape, room = shape_of(asked), Room.of(columns_of(world, used))
    taker = shape_of(data.draw(ASKED))
    cost = np.array(costs, dtype=np.int64).__getitem__
    for _ in range(3):
        nodes, rule = np.flatnonzero(room.counts(shape)), Rule.of(room)
        expected = sorted(nodes.tolist(), key=lambda at: rule.key(shape, at, count, costs[at]))
        assert order_nodes(shape, room, nodes, cost, count).tolist() == expected
        assert best_nodes(shape, room, nodes, cost, count).tolist() == expected[:count]
        takes = np.flatnonzero(room.counts(taker))[:1]
        room = room.without(taker, Spread(takes, np.ones(len(takes), dtype=np.int64)))


@given(
    st.lists(
        st.tuples(st.integers(0, 2**60), st.integers(0, 2**31)) | st.tuples(st.just(5), st.just(2)),
        min_size=1,
        max_size=5,
    )
)
def test_use_beside_is_exact(pairs: list[tuple[int, int]]) -> None:
    """However large the amounts are: floats are used only where they are exact."""
    taken, devices = (np.array(each, dtype=np.int64) for each in zip(*pairs, strict=True))
    expected = [min(n, 2**52) // d if d else 2**62 for n, d in pairs]
    assert use_beside(devices, [taken]).tolist() == [expected]
