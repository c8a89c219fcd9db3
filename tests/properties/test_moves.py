"""The scalar front of every constraint against its vector front, pod by pod.

Constraints of every sort are made up at random, between groups on a few nodes of which some are
equivalent: a search that counts pod by pod (`Moves`), against a look at all nodes anew.
"""

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

from scheduling.filters.domain_counts import CountedDomains
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.gang_affinity import AntiAffinity, InternalConstraints, RequiredAffinity
from scheduling.filters.pod_topology_spread import SpreadRule
from scheduling.model.constraints import PodTerm, Requirement, SpreadConstraint
from scheduling.model.node import Node
from scheduling.model.pod import PodShape
from scheduling.placement.interdependent.exhaustive.moves import Moves
from scheduling.placement.interdependent.partial_placement import PartialPlacement
from scheduling.state.node_table import node_snapshot_of
from tests.examples import every_other, one_in

GANGS = 400
BLOCKS = 8
LEAST_GIVEN_UP = 200
MOVES = 8
MOST_STATES = 150


class MadeUp:
    """A few nodes, two or three groups, and what they ask of each other."""

    def __init__(self, seed: str) -> None:
        self.chance = Random(seed)
        self.nodes = [self._node(at) for at in range(self.chance.randint(2, 5))]
        self.groups = range(self.chance.randint(1, 3))

    def partial(self) -> PartialPlacement:
        shapes = [self._shape() for _ in self.groups]
        counts = [self.chance.randint(1, 3) for _ in self.groups]
        earlier = np.zeros((len(counts), len(self.nodes)), dtype=np.int64)
        if self.chance.random() < 0.3:
            earlier[self.chance.choice(self.groups), self.chance.randrange(len(self.nodes))] = 1
        return PartialPlacement(
            shapes,
            counts,
            self._internal_constraints(),
            FreeCapacity.of(node_snapshot_of(self.nodes)),
            earlier,
        )

    def _node(self, at: int) -> Node:
        name, labels = f"n{at}", self.chance.choice(({"zone": "a"}, {"zone": "b"}, {}))
        cpu = self.chance.choice((2, 2, 2, 3))
        return Node(
            name, {"host": name, **labels}, (), unschedulable=False, allocatable={"cpu": cpu}
        )

    def _shape(self) -> PodShape:
        selector = self.chance.choice(((), (), (), (("zone", "a"),)))
        return PodShape((("cpu", self.chance.choice((1, 1, 2))),), node_selector=selector)

    def _internal_constraints(self) -> InternalConstraints:
        """Make up mostly one sort of constraint, so that there are ways to go."""
        pairs = {each for pair in self._pairs() for each in (pair, (pair[1], pair[0], pair[2]))}
        apart = frozenset(AntiAffinity(*each) for each in pairs)
        near = [self._near(at) for at in self.groups if self.chance.random() < 0.3]
        rules = [self._rule() for _ in range(self.chance.choice((0, 1, 1, 2, 3)))]
        return InternalConstraints(apart, tuple(near), tuple(rules))

    def _pairs(self) -> Iterable[tuple[int, int, str]]:
        if self.chance.random() < 0.3:
            pair = self.chance.choice(self.groups), self.chance.choice(self.groups)
            yield *pair, self.chance.choice(("zone", "host"))

    def _near(self, at: int) -> RequiredAffinity:
        keys = self.chance.choice((("zone",), ("host",), ("zone", "host")))
        values = frozenset(self.chance.choice(((), (), ("a", "n0"))))
        partners = frozenset(each for each in self.groups if self.chance.random() < 0.6)
        return RequiredAffinity(at, keys, tuple(values for _ in keys), partners)

    def _rule(self) -> SpreadRule:
        many = self.chance.randint(1, 3)
        by_node = self.chance.random() < 0.5
        of = [at if by_node else self.chance.randint(0, many) for at in range(len(self.nodes))]
        names = tuple(map(str, range(len(of) if by_node else many)))
        any_order = self.chance.random() < 0.3
        has_floor = any_order or self.chance.random() < 0.3
        return SpreadRule(
            owner=self.chance.choice(self.groups),
            constraint=SpreadConstraint(PodTerm("k", (Requirement("app", "Exists", ()),), ()), 1),
            counted=frozenset(each for each in self.groups if self.chance.random() < 0.7),
            domains=CountedDomains(names, np.array(of, dtype=np.intp)),
            existing=self._amounts(len(names), (0, 0, 0, 1)),
            possible=self._amounts(len(names), (0, 0, 0, 0, 0, 1)),
            nominated=self._amounts(len(of), (0, 0, 0, 1)) * (self.chance.random() < 0.4),
            floor=self._amounts(len(names), (0, 1, 1, 2)) if has_floor else None,
            any_order=any_order,
        )

    def _amounts(self, length: int, among: tuple[int, ...]) -> Any:
        return np.array([self.chance.choice(among) for _ in range(length)], dtype=np.int64)


class Both:
    """The same pods placed both ways."""

    def __init__(self, partial: PartialPlacement) -> None:
        self.moves, self.partial = Moves(partial), partial

    def put(self, at: int, node: int, count: int) -> None:
        self.moves.put(at, node, count)
        self.partial.put(at, node, count)

    def nodes(self, at: int) -> list[int]:
        """Return where one more pod of a group may go, found by looking at all nodes."""
        return [int(node) for node in self.partial.open(at).nonzero()[0]]

    def alike_behave_alike(self, groups: Sequence[int]) -> bool:
        """Say whether nodes that lead to the same state all take the next pod, or none of them."""
        everywhere = range(self.partial.pods.shape[1])
        return all(
            {self.state_with(at, node) for node in self.nodes(at)}.isdisjoint(
                self.state_with(at, node) for node in everywhere if node not in self.nodes(at)
            )
            for at in groups
        )

    def state_with(self, at: int, node: int) -> Any:
        self.put(at, node, 1)
        found = self.moves.state()
        self.put(at, node, -1)
        return found

    def states(self, at: int, nodes: Iterable[int]) -> list[Any]:
        """Return the states that one more pod of a group leads to, from these nodes."""
        return [self.state_with(at, node) for node in nodes]


@pytest.mark.parametrize("seed", one_in(4, range(GANGS)))
def test_the_next_pod_goes_where_it_may_and_nodes_alike_are_one(seed: int) -> None:
    chance, both = Random(seed), Both(MadeUp(f"next/{seed}").partial())
    placed: list[tuple[int, int]] = []
    for _ in range(MOVES):
        left = [at for at, count in enumerate(both.moves.left) if count]
        for at in left:
            offered = both.states(at, both.moves.open(at))
            assert len(set(offered)) == len(offered)
            assert set(offered) == set(both.states(at, both.nodes(at)))
        assert both.alike_behave_alike(left)
        ways = [(at, node) for at in left for node in both.nodes(at)]
        if ways and chance.random() < 0.8:
            placed.append(chance.choice(ways))
            both.put(*placed[-1], 1)
        elif placed:
            both.put(*placed.pop(chance.randrange(len(placed))), -1)


class Everything(Both):
    """All ways to go on, tried from wherever they lead."""

    def __init__(self, partial: PartialPlacement) -> None:
        super().__init__(partial)
        self.known: dict[Any, bool] = {}
        self.given_up = 0

    def ends_well(self) -> bool:
        """Say whether all pods can be placed from here, or that takes too long to know."""
        state = self.moves.state()
        if state not in self.known:
            self.known[state] = not any(self.moves.left) or len(self.known) > MOST_STATES
            self.known[state] |= self._goes_on()
        return self.known[state]

    def _goes_on(self) -> bool:
        if len(self.known) > MOST_STATES:
            return True
        groups = [at for at, count in enumerate(self.moves.left) if count]
        ways = [(at, node) for at in groups for node in self.nodes(at)]
        return any([self._ends_well_with(at, node) for at, node in ways])  # noqa: C419 # all of them

    def _ends_well_with(self, at: int, node: int) -> bool:
        self.put(at, node, 1)
        found = self.ends_well()
        if len(self.known) <= MOST_STATES and self.moves.is_hopeless():
            self.given_up += 1
            assert not found
        self.put(at, node, -1)
        return found


@pytest.mark.parametrize("block", every_other(range(BLOCKS)))
def test_what_is_given_up_could_not_have_ended_well(block: int) -> None:
    """Every gang is tried to its end, and some of each block are given up on the way."""
    given_up = 0
    for seed in range(block, GANGS, BLOCKS):
        everything = Everything(MadeUp(f"hopeless/{seed}").partial())
        everything.ends_well()
        given_up += everything.given_up
    assert given_up >= LEAST_GIVEN_UP
