"""The packing order against the rule worked out node by node, in plain numbers."""

from collections.abc import Sequence
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.filters.free_capacity import Distribution, FreeCapacity
from scheduling.model.node import Node
from scheduling.model.pod import PodShape
from scheduling.scoring import lexical_order
from scheduling.scoring.node_scores import SAMPLE, best_nodes, order_nodes, sample, typical_use
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.node_table import node_snapshot_of
from tests.examples import examples
from tests.properties.strategies import USED

DEVICES = ("amd.com/gpu", "nvidia.com/gpu")
NAMES = ("cpu", "memory", *DEVICES, "pods")
WORLD = st.lists(
    st.fixed_dictionaries({name: st.integers(0, 40) for name in NAMES}), min_size=1, max_size=12
)
ASKED = st.fixed_dictionaries({name: st.integers(0, 3) for name in NAMES})


def columns_drawn(world: Sequence[dict[str, int]], used: dict[str, dict[str, int]]) -> NodeSnapshot:
    nodes = [
        Node(f"n{at:02}", {}, (), unschedulable=False, allocatable=amounts)
        for at, amounts in enumerate(world)
    ]
    return node_snapshot_of(nodes, {f"n0{name[1:]}": of for name, of in used.items()})


def shape_of(asked: dict[str, int]) -> PodShape:
    return PodShape(tuple(sorted((name, n) for name, n in {**asked, "pods": 1}.items() if n)))


class Rule(NamedTuple):
    """The rule as `stranded_devices` tells it, without columns; `typically` is what was free
    then."""

    offered: list[dict[str, int]]
    free: list[dict[str, int]]
    typically: list[dict[str, int]] = []  # noqa: RUF012 # a tuple's default, never written

    @classmethod
    def of(cls, room: FreeCapacity) -> "Rule":
        def rows(of: np.ndarray) -> list[dict[str, int]]:
            return [dict(zip(room.columns.resources, each, strict=True)) for each in of.T.tolist()]

        return cls(rows(room.columns.allocatable), rows(room.free))

    def typical(self, device: str, resource: str) -> int:
        """The lower median of what is in use per device, over nodes with devices in use."""
        found = []
        for offered, free in zip(self.offered, self.typically, strict=True):
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
            share = max(free[device], 0) * 1000 // max(self.offered[at][device], 1)
            idle += max(share, int(free[device] > 0))
        tightness = 0 if asked.keys() & set(DEVICES) else fitting
        return steps // pods, idle, cost, tightness, at


@examples(300)
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
    """Also in a room that something was taken from, where what is typical is as it was at the
    outset; the best are the beginning of all."""
    shape, room = shape_of(asked), FreeCapacity.of(columns_drawn(world, used))
    taker = shape_of(data.draw(ASKED))
    cost = np.array(costs, dtype=np.int64).__getitem__
    outset = Rule.of(room)
    for begins_anew in (False, True, False):
        nodes, rule = room.takers(shape), Rule.of(room)._replace(typically=outset.free)
        expected = sorted(nodes.tolist(), key=lambda at: rule.key(shape, at, count, costs[at]))
        assert order_nodes(shape, room, nodes, cost, count).tolist() == expected
        assert best_nodes(shape, room, nodes, cost, count).tolist() == expected[:count]
        with patch.object(lexical_order, "BLOCK", 3):  # as many nodes are asked, some at a time
            assert best_nodes(shape, room, nodes, cost, count).tolist() == expected[:count]
        takes = np.flatnonzero(room.counts(taker))[:1]
        room = room.without(taker, Distribution(takes, np.ones(len(takes), dtype=np.int64)))
        if begins_anew:
            room = room.for_next()
            outset = Rule.of(room)


@given(
    st.lists(
        st.tuples(st.integers(0, 2**52), st.integers(0, 2**31)) | st.tuples(st.just(5), st.just(2)),
        min_size=1,
        max_size=5,
    )
)
def test_typical_use_is_exact(pairs: list[tuple[int, int]]) -> None:
    """However large the amounts are that columns hold: no quotient is rounded past its floor."""
    taken, devices = (np.array(each, dtype=np.int64) for each in zip(*pairs, strict=True))
    uses = sorted(n // d for n, d in pairs if d)
    expected = uses[(len(uses) - 1) // 2] if uses else 0
    assert typical_use(devices, [taken], 1) == [expected]


@pytest.mark.parametrize("nodes", [1, 2, SAMPLE, SAMPLE + 1, 2 * SAMPLE, 5_000, 50_000])
def test_a_sample_is_spread_evenly_and_follows_no_rhythm(nodes: int) -> None:
    """All nodes where they are few; else any row of them, and any rhythm, has its share."""
    at = sample(nodes)
    assert sorted({*at.tolist()}) == at.tolist()
    assert len(at) == min(nodes, SAMPLE)
    assert at[-1] < nodes
    if nodes > SAMPLE:
        assert np.diff(at).max() <= 3 * nodes / SAMPLE + 1
        for rhythm in range(2, 13):
            held = np.bincount(at % rhythm, minlength=rhythm)
            assert held.min() > 0.9 * SAMPLE / rhythm
