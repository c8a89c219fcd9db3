"""Free capacity that remembers what it was asked, against free capacity that remembers nothing."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scheduling.filters.free_capacity import Distribution, FreeCapacity
from scheduling.model.node import Node
from scheduling.model.pod import PodShape
from scheduling.model.shape.host_ports import offered
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.node_table import NodeTable
from tests.examples import examples
from tests.properties.strategies import RESOURCES, nodes, shapes

PORTS = ("hostPort:TCP:80", "hostPort:TCP:81:10.0.0.1")
AMOUNTS = st.dictionaries(
    st.sampled_from([*RESOURCES, "pods", *PORTS]), st.integers(1, 4), min_size=1
)
SHAPES = st.builds(
    lambda shape, ports: replace(shape, own_requests=tuple(sorted({*shape.requests, *ports}))),
    shapes(),
    st.lists(st.sampled_from([(name, offered(name)) for name in PORTS]), max_size=2, unique=True),
)
EVENTS = (
    st.tuples(st.just("use"), st.sampled_from(["n0", "n1", "n2", "n3"]), AMOUNTS)
    | st.tuples(st.just("nodes"), nodes())
    | st.tuples(st.just("nominate"), st.sampled_from(["n0", "n1"]), AMOUNTS, st.integers(0, 2))
    | st.tuples(st.just("place"), st.integers(0, 2), st.integers(0, 3))
    | st.tuples(st.just("face"), st.integers(-1, 3))
    | st.tuples(st.just("ask"), st.integers(0, 2))
    | st.tuples(st.just("next"))
)


class World:
    """A table, the room of a cycle, and what of the table's room it has given away."""

    def __init__(self, of: list[PodShape], on: list[Node]) -> None:
        self.shapes, self.table = of, NodeTable()
        for node in on:
            self.table.put_node(node)
        self.room = FreeCapacity.of(self.table.snapshot())

    def happen(self, event: tuple[object, ...]) -> None:
        match event:
            case ("use", str(name), dict(amounts)):
                self.table.use(name, amounts.items(), +1)
                self.move()
            case ("nodes", list(on)):
                for name in {f"n{at}" for at in range(4)} - {node.name for node in on}:
                    self.table.remove_node(name)
                for node in on:
                    self.table.put_node(node)
                self.move()
            case ("nominate", str(name), dict(amounts), int(priority)):
                self.table.use(name, amounts.items(), +1)
                self.table.nominate(name, amounts.items(), priority, +1)
                self.move()
            case ("place", int(which), int(nth)):
                fitting = np.flatnonzero(self.room.counts(self.shapes[which]))[nth : nth + 1]
                spread = Distribution(fitting, np.ones(len(fitting), dtype=np.int64))
                self.room = self.room.without(self.shapes[which], spread)
            case ("face", int(priority)):
                self.room = self.room.for_priority(priority)
            case ("next",):
                self.room = self.room.for_next()
            case ("ask", int(which)):
                self.room.counts(self.shapes[which])

    def move(self) -> None:
        """Go on to the next cycle, and see that no node is overlooked that holds more."""
        before = free_by_name(self.room.for_priority(-(2**31)))
        was = self.room
        self.room = self.room.moved_to(self.table.snapshot())
        grown = {self.room.columns.names[at] for at in self.room.grown}
        for name, free in free_by_name(self.room).items():
            known = before.get(name)
            more = known is None or any(free[of] > known.get(of, 0) for of in free)
            same_node = name in was.columns.index and (
                was.columns.nodes[was.columns.index[name]]
                is self.room.columns.nodes[self.room.columns.index[name]]
            )
            if more or not same_node:
                assert name in grown


def free_by_name(room: FreeCapacity) -> Mapping[str, dict[str, int]]:
    return {
        name: dict(zip(room.columns.resources, room.free[:, at].tolist(), strict=True))
        | {port: -room.ports.get(port, {}).get(name, 0) for port in PORTS}
        for at, name in enumerate(room.columns.names)
    }


@examples(300)
@given(st.lists(SHAPES, min_size=3, max_size=3), nodes(), st.lists(EVENTS, max_size=10))
def test_counts_are_those_of_a_room_that_was_handed_nothing(
    of: list[PodShape], on: list[Node], events: list[tuple[object, ...]]
) -> None:
    """Whatever was taken, moved, renamed or passed over."""
    world = World(of, on)
    for event in [("ask", 0), ("ask", 1), *events]:
        world.happen(event)
        fresh = FreeCapacity(world.room.columns, world.room.free, ports=world.room.ports)
        for shape in of:
            if event[0] != "place":  # so that some are brought up to date late
                assert world.room.counts(shape).tolist() == fresh.counts(shape).tolist()
    for shape in of:
        fresh = FreeCapacity(world.room.columns, world.room.free, ports=world.room.ports)
        assert world.room.counts(shape).tolist() == fresh.counts(shape).tolist()


@given(
    st.lists(SHAPES, min_size=2, max_size=2),
    nodes(),
    st.lists(
        st.tuples(st.integers(0, 1), st.dictionaries(st.integers(0, 3), st.integers(1, 3))),
        max_size=6,
    ),
    st.integers(0, 6),
)
def test_what_is_free_is_what_was_less_all_that_was_taken(
    of: list[PodShape],
    on: list[Node],
    taken: list[tuple[int, dict[int, int]]],
    asked: int,
) -> None:
    """Whether it was asked for in between or not."""
    room = FreeCapacity.of(columns_of(on))
    left = {name: dict(free) for name, free in free_by_name(room).items()}
    for number, (which, pods) in enumerate(taken):
        at = [node for node in sorted(pods) if node < len(on)]
        counts = np.array([pods[node] for node in at], dtype=np.int64)
        room = room.without(of[which], Distribution(np.array(at, dtype=np.intp), counts))
        for node, count in zip(at, counts.tolist(), strict=True):
            of_node = left[room.columns.names[node]]
            for resource, amount in of[which].requests:
                if resource in of_node:
                    of_node[resource] -= amount * count
        if number == asked:
            assert free_by_name(room) == left
    assert free_by_name(room.for_next()) == free_by_name(room) == left


def columns_of(on: list[Node]) -> NodeSnapshot:
    table = NodeTable()
    for node in on:
        table.put_node(node)
    return table.snapshot()
