"""Where do the pods of a gang go whose members mind each other's company?

Each pod must be right given those before it, so units are placed one after the other, those that
are drawn to others last, each node by node. First in one sweep, the packing rule's order, once
per home that a series could begin in; where no sweep succeeds, by trying everything within a
bound of steps.

Within a unit the order of pods does not matter: keeping apart is mutual, and a pod that is drawn
goes where the terms hold already, so it opens no new place for the next. Between units a yes must
hold in whatever order kube-scheduler takes them (`_holds_in_any_order`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from scheduling.columns import Amounts, Mask, Positions
from scheduling.counting import pods_per_node
from scheduling.feasibility import feasible
from scheduling.model import PodShape
from scheduling.neighbours import Attraction, Bonds
from scheduling.packing import order_nodes
from scheduling.room import Room, Spread
from scheduling.search import Found, OutOfSteps

STEPS_PER_LOOK = 3000
"""What looking at all nodes once costs beside their number, in steps of some 20 ns."""

HOMES = 64
"""In how many places a series is begun in a sweep."""


@dataclass(frozen=True, slots=True)
class NoWay:
    """There is no placement; this is certain.

    `missing` says per unit what the best sweep lacked.
    """

    missing: tuple[int, ...]
    steps: int


def place_bonded(
    shapes: Sequence[PodShape],
    counts: Sequence[int],
    bonds: Bonds,
    room: Room,
    standing: Amounts,
    steps: int,
) -> Found | NoWay | OutOfSteps:
    """Place so many pods of each unit beside those that stand (units x nodes), or nobody."""
    walk = _Walk(shapes, counts, bonds, room, standing)
    for home in walk.homes():
        if walk.spent > steps:
            return OutOfSteps(walk.spent)
        if walk.sweep(home):
            return Found(walk.spreads(), walk.spent)
    return walk.try_everything(steps)


class _Walk:
    """One attempt: what is free, what is placed, and what is left to place."""

    def __init__(
        self,
        shapes: Sequence[PodShape],
        counts: Sequence[int],
        bonds: Bonds,
        room: Room,
        standing: Amounts,
    ) -> None:
        self._shapes, self._bonds, self._room = shapes, bonds, room
        self._counts, self._standing = counts, standing
        self._traits = room.columns.traits
        self._near = {each.unit: each for each in bonds.near}
        self._turns = sorted(range(len(shapes)), key=self._turn)
        self._ranks = [self._rank(at) for at in range(len(shapes))]
        self._fewest = tuple(counts)
        self.spent = 0
        self._begin()

    def _begin(self) -> None:
        self._free = self._room.free.copy()
        self._placed = np.zeros_like(self._standing)
        self._left = list(self._counts)
        self._last = [-1] * len(self._shapes)

    def _turn(self, at: int) -> tuple[bool, bool, int]:
        """Those who are drawn come after those who are not, those who cannot begin last."""
        near = self._near.get(at)
        return near is not None and not near.may_begin, near is not None, at

    def _rank(self, at: int) -> Positions:
        """Return the rank of each node in the unit's packing order; -1 where it cannot go."""
        ranks = np.full(self._room.free.shape[1], -1, dtype=np.intp)
        nodes = np.flatnonzero(self._room.counts(self._shapes[at]))
        zeros = np.zeros(len(nodes), dtype=np.int64)
        order = order_nodes(self._shapes[at], self._room, nodes, zeros, max(self._counts[at], 1))
        ranks[order] = np.arange(len(order))
        return ranks

    # ---- what the rules leave

    def _open(self, at: int) -> Amounts:
        """Return how many more pods of a unit each node takes as things stand."""
        self.spent += STEPS_PER_LOOK + self._free.shape[1]
        shape = self._shapes[at]
        caps = pods_per_node(shape.requests, self._room.columns.row, self._free)
        caps *= feasible(shape, self._room.columns)
        for unit, other, key in self._bonds.shun:
            if unit == at:
                caps *= ~self._near_to(other, key)
                if other == at:
                    np.minimum(caps, 1, out=caps, where=self._has(key))
        if at in self._near:
            caps *= self._drawn(self._near[at])
        return np.minimum(caps, self._left[at])

    def _near_to(self, other: int, key: str) -> Mask:
        """Return the nodes that share a value of the label with a pod of the other unit."""
        column = self._traits.label(key)
        taken = np.zeros(len(column.values), dtype=np.bool_)
        taken[column.of[(self._placed[other] + self._standing[other]) > 0]] = True
        return taken[column.of] & self._has(key)

    def _has(self, key: str) -> Mask:
        return self._traits.label(key).where(lambda value: value is not None)

    def _drawn(self, near: Attraction) -> Mask:
        mask = np.ones(self._free.shape[1], dtype=np.bool_)
        begun = any(near.anchors)
        for key, anchors in zip(near.keys, near.anchors, strict=True):
            place = self._traits.label(key).where(anchors.__contains__)
            for partner in near.partners:
                place = place | self._near_to(partner, key)
            begun = begun or bool(place.any())
            mask &= place
        if not begun and near.may_begin:
            for key in near.keys:
                mask = self._has(key) if key == near.keys[0] else mask & self._has(key)
        return mask

    # ---- one sweep

    def homes(self) -> Iterator[Mask | None]:
        """Yield the places in which a series could begin, the tightest that holds it first."""
        beginner = next((n for n in self._bonds.near if n.may_begin and self._left[n.unit]), None)
        if beginner is None or self._has_begun(beginner):
            yield None
            return
        caps = self._open(beginner.unit)
        codes = np.stack([self._traits.label(key).of for key in beginner.keys], axis=1)
        _, which = np.unique(codes, axis=0, return_inverse=True)
        held = np.bincount(which.reshape(-1), weights=caps)
        enough = [at for at in np.argsort(held, kind="stable") if held[at] > 0]
        enough.sort(key=lambda at: bool(held[at] < self._left[beginner.unit]))
        for at in enough[:HOMES]:
            yield which.reshape(-1) == at

    def _has_begun(self, near: Attraction) -> bool:
        return any(self._standing[partner].any() for partner in near.partners)

    def sweep(self, home: Mask | None) -> bool:
        """Fill unit after unit in packing order; say whether all found their place."""
        self._begin()
        for at in self._turns:
            near = self._near.get(at)
            inside = home if near is not None and near.may_begin else None
            while self._left[at]:
                caps = self._open(at) * (1 if inside is None else inside)
                nodes = self._in_order(caps, at)
                if not len(nodes):
                    self._fewest = min(self._fewest, tuple(self._left), key=sum)
                    return False
                self._fill(at, nodes, caps)
        return self._holds_in_any_order()

    def _fill(self, at: int, nodes: Positions, caps: Amounts) -> None:
        """Take from the nodes in turn, one per value of a label within which the unit is alone."""
        for key in (key for unit, other, key in self._bonds.shun if unit == other == at):
            codes = self._traits.label(key).of[nodes]
            _, first = np.unique(codes, return_index=True)
            alone = np.zeros(len(nodes), dtype=np.bool_)
            alone[first] = True
            nodes = nodes[alone | ~self._has(key)[nodes]]
        before = np.cumsum(caps[nodes]) - caps[nodes]
        pods = np.clip(self._left[at] - before, 0, caps[nodes])
        for node, count in zip(nodes[pods > 0].tolist(), pods[pods > 0].tolist(), strict=True):
            self._put(at, node, count)

    def _in_order(self, caps: Amounts, at: int) -> Positions:
        nodes = np.flatnonzero((caps > 0) & (self._ranks[at] > self._last[at]))
        return nodes[np.argsort(self._ranks[at][nodes])]

    def _put(self, at: int, node: int, count: int) -> None:
        self._placed[at, node] += count
        self._left[at] -= count
        row = self._room.columns.row
        for resource, amount in self._shapes[at].requests:
            self._free[row[resource], node] -= count * amount

    # ---- everything

    def try_everything(self, steps: int) -> Found | NoWay | OutOfSteps:
        """Go through all ways, nodes of a unit in rising order; a no needs all to be tried."""
        self._begin()
        fragile = False
        stack = [self._ways()]
        while stack:
            if self.spent > steps:
                return OutOfSteps(self.spent)
            if next(stack[-1], None) is None:
                stack.pop()
            elif any(self._left):
                stack.append(self._ways())
            elif self._holds_in_any_order():
                return Found(self.spreads(), self.spent)
            else:
                fragile = True
        if fragile or self._order_matters():
            return OutOfSteps(self.spent)
        return NoWay(self._fewest, self.spent)

    def _ways(self) -> Iterator[bool]:
        """Put pods of the next unit on a node, one way after the other, and take them back."""
        at = next(at for at in self._turns if self._left[at])
        caps = self._open(at)
        nodes = self._in_order(caps, at)
        rest = np.cumsum(caps[nodes][::-1])[::-1]
        before = self._last[at]
        for node, possible in zip(nodes.tolist(), rest.tolist(), strict=True):
            if possible < self._left[at]:
                break
            self._last[at] = int(self._ranks[at][node])
            for count in range(int(caps[node]), 0, -1):
                self._put(at, node, count)
                yield True
                self._put(at, node, -count)
        self._last[at] = before

    def _order_matters(self) -> bool:
        """Say whether another order of units might succeed, which nobody could rely on.

        So it is where units are drawn to units that are drawn themselves, or where others than
        those who may begin a series are part of it.
        """
        return any(
            near.partners & (self._near.keys() - {near.unit})
            or (near.may_begin and near.partners != {near.unit})
            for near in self._bonds.near
        )

    def _holds_in_any_order(self) -> bool:
        """Say whether kube-scheduler may take the pods as they come.

        Who may begin a series either finds members of it that are drawn to nobody wherever it
        is, or begins it where all of it is.
        """
        beginners = [near for near in self._bonds.near if near.may_begin]
        return all(self._is_held(near) or self._is_in_one_place(near) for near in beginners)

    def _is_held(self, near: Attraction) -> bool:
        here = (self._placed[near.unit] + self._standing[near.unit]) > 0
        for key in near.keys:
            holds = [self._near_to(other, key) for other in near.partners - self._near.keys()]
            if not holds or not np.logical_or.reduce(holds)[here].all():
                return False
        return True

    def _is_in_one_place(self, near: Attraction) -> bool:
        rows = list(near.partners)
        nodes = (self._placed[rows] + self._standing[rows]).any(axis=0)
        return all(
            len(np.unique(self._traits.label(key).of[nodes & self._has(key)])) <= 1
            for key in near.keys
        )

    def spreads(self) -> tuple[Spread, ...]:
        """Return what was placed, per unit."""
        found = [np.flatnonzero(row) for row in self._placed]
        return tuple(
            Spread(nodes, row[nodes]) for nodes, row in zip(found, self._placed, strict=True)
        )
