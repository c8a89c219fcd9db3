"""A search that counts pod by pod, against the walk that looks at all nodes anew.

Bonds of every sort are drawn at random, between units on a few nodes of which some are alike.
"""

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.inter_pod_affinity import InternalConstraints, RequiredAffinity
from scheduling.filters.pod_topology_spread import CountedDomains, Rule
from scheduling.model.constraints import PodTerm, Requirement, SpreadConstraint
from scheduling.model.node import Node
from scheduling.model.pod import PodShape
from scheduling.placement.interdependent.moves import Moves
from scheduling.placement.interdependent.partial_placement import PartialPlacement
from scheduling.state.node_table import node_snapshot_of

WALKS = 400
MOVES = 8
MOST_STATES = 150


class Drawn:
    """A few nodes, two or three units, and what binds these."""

    def __init__(self, seed: str) -> None:
        self.chance = Random(seed)
        self.nodes = [self._node(at) for at in range(self.chance.randint(2, 5))]
        self.units = range(self.chance.randint(1, 3))

    def walk(self) -> PartialPlacement:
        shapes = [self._shape() for _ in self.units]
        counts = [self.chance.randint(1, 3) for _ in self.units]
        standing = np.zeros((len(counts), len(self.nodes)), dtype=np.int64)
        if self.chance.random() < 0.3:
            standing[self.chance.choice(self.units), self.chance.randrange(len(self.nodes))] = 1
        return PartialPlacement(
            shapes,
            counts,
            self._internal_constraints(),
            FreeCapacity.of(node_snapshot_of(self.nodes)),
            standing,
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
        """Draw mostly one sort of bonds, so that there are ways to go."""
        shun = {pair for pair in self._pairs() for pair in (pair, (pair[1], pair[0], pair[2]))}
        near = [self._near(at) for at in self.units if self.chance.random() < 0.3]
        rules = [self._rule() for _ in range(self.chance.choice((0, 1, 1, 2, 3)))]
        return InternalConstraints(frozenset(shun), tuple(near), tuple(rules))

    def _pairs(self) -> Iterable[tuple[int, int, str]]:
        if self.chance.random() < 0.3:
            pair = self.chance.choice(self.units), self.chance.choice(self.units)
            yield *pair, self.chance.choice(("zone", "host"))

    def _near(self, at: int) -> RequiredAffinity:
        keys = self.chance.choice((("zone",), ("host",), ("zone", "host")))
        anchor = frozenset(self.chance.choice(((), (), ("a", "n0"))))
        partners = frozenset(each for each in self.units if self.chance.random() < 0.6)
        return RequiredAffinity(at, keys, tuple(anchor for _ in keys), partners)

    def _rule(self) -> Rule:
        many = self.chance.randint(1, 3)
        by_node = self.chance.random() < 0.5
        of = [at if by_node else self.chance.randint(0, many) for at in range(len(self.nodes))]
        names = tuple(map(str, range(len(of) if by_node else many)))
        lasting = self.chance.random() < 0.3
        has_floor = lasting or self.chance.random() < 0.3
        return Rule(
            owner=self.chance.choice(self.units),
            constraint=SpreadConstraint(PodTerm("k", (Requirement("app", "Exists", ()),), ()), 1),
            counted=frozenset(each for each in self.units if self.chance.random() < 0.7),
            domains=CountedDomains(names, np.array(of, dtype=np.intp)),
            standing=self._amounts(len(names), (0, 0, 0, 1)),
            perhaps=self._amounts(len(names), (0, 0, 0, 0, 0, 1)),
            nominated=self._amounts(len(of), (0, 0, 0, 1)) * (self.chance.random() < 0.4),
            floor=self._amounts(len(names), (0, 1, 1, 2)) if has_floor else None,
            lasting=lasting,
        )

    def _amounts(self, length: int, among: tuple[int, ...]) -> Any:
        return np.array([self.chance.choice(among) for _ in range(length)], dtype=np.int64)


class Both:
    """The same pods placed both ways."""

    def __init__(self, walk: PartialPlacement) -> None:
        self.tallies, self.walk = Moves(walk), walk

    def put(self, at: int, node: int, count: int) -> None:
        self.tallies.put(at, node, count)
        self.walk.put(at, node, count)

    def nodes(self, at: int) -> list[int]:
        """Return where one more pod of a unit may go, found by looking at all nodes."""
        return [int(node) for node in self.walk.open(at).nonzero()[0]]

    def alike_behave_alike(self, units: Sequence[int]) -> bool:
        """Say whether nodes that lead to the same state all take the next pod, or none of them."""
        everywhere = range(self.walk.placed.shape[1])
        return all(
            {self.state_with(at, node) for node in self.nodes(at)}.isdisjoint(
                self.state_with(at, node) for node in everywhere if node not in self.nodes(at)
            )
            for at in units
        )

    def state_with(self, at: int, node: int) -> Any:
        self.put(at, node, 1)
        found = self.tallies.state()
        self.put(at, node, -1)
        return found

    def states(self, at: int, nodes: Iterable[int]) -> list[Any]:
        """Return the states that one more pod of a unit leads to, from these nodes."""
        return [self.state_with(at, node) for node in nodes]


@pytest.mark.parametrize("seed", range(WALKS))
def test_the_next_pod_goes_where_it_may_and_nodes_alike_are_one(seed: int) -> None:
    chance, both = Random(seed), Both(Drawn(f"next/{seed}").walk())
    placed: list[tuple[int, int]] = []
    for _ in range(MOVES):
        left = [at for at, count in enumerate(both.tallies.left) if count]
        for at in left:
            offered = both.states(at, both.tallies.open(at))
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

    def __init__(self, walk: PartialPlacement) -> None:
        super().__init__(walk)
        self.known: dict[Any, bool] = {}

    def ends_well(self) -> bool:
        """Say whether all pods can be placed from here, or that takes too long to know."""
        state = self.tallies.state()
        if state not in self.known:
            self.known[state] = not any(self.tallies.left) or len(self.known) > MOST_STATES
            self.known[state] |= self._goes_on()
        return self.known[state]

    def _goes_on(self) -> bool:
        if len(self.known) > MOST_STATES:
            return True
        units = [at for at, count in enumerate(self.tallies.left) if count]
        ways = [(at, node) for at in units for node in self.nodes(at)]
        return any([self._ends_well_with(at, node) for at, node in ways])  # noqa: C419 # all of them

    def _ends_well_with(self, at: int, node: int) -> bool:
        self.put(at, node, 1)
        found = self.ends_well()
        if len(self.known) <= MOST_STATES:
            assert not (found and self.tallies.is_hopeless())
        self.put(at, node, -1)
        return found


@pytest.mark.parametrize("seed", range(WALKS))
def test_what_is_given_up_could_not_have_ended_well(seed: int) -> None:
    Everything(Drawn(f"hopeless/{seed}").walk()).ends_well()
