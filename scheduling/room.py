"""What is left on the nodes while a cycle admits one gang after the other?

A `Room` is a value: taking from it makes another one, so an attempt that fails leaves nothing to
undo. What follows from a room (how many pods of a shape fit, why a gang does not) is remembered
in it; counts are handed on to the rooms made from it and brought up to date only at the nodes
that changed, so a cycle divides each column once per shape and not once per gang.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from scheduling.columns import LIMIT, Amounts, Columns, Positions
from scheduling.counting import pods_per_node
from scheduling.feasibility import feasible
from scheduling.model import PodShape

T = TypeVar("T")


@dataclass(frozen=True, eq=False, slots=True)
class Spread:
    """Pods of one shape over nodes: `pods[i]` of them on the node at position `nodes[i]`."""

    nodes: Positions
    pods: Amounts


class Room:
    """The free amounts, the counts known so far, and which nodes changed since each was made."""

    def __init__(self, columns: Columns, free: Amounts) -> None:
        self.columns = columns
        self.free = free
        self._changed: tuple[Positions, ...] = ()
        self._counts: dict[tuple[PodShape, PodShape | None], tuple[Amounts, int]] = {}
        self._remembered: dict[Hashable, object] = {}
        self._rank = 0

    @classmethod
    def of(cls, columns: Columns) -> "Room":
        """Return all the room that the nodes have."""
        return cls(columns, columns.free)

    def counts(self, shape: PodShape, beside: PodShape | None = None) -> Amounts:
        """Return how many pods of the shape fit on each node, next to one pod of `beside`.

        The array is shared, never to be written.
        """
        known, seen = self._counts.get((shape, beside), (None, 0))
        if known is None:
            known = self._counted(shape, beside, slice(None))
        elif seen < len(self._changed):
            at = np.concatenate(self._changed[seen:])
            known = known.copy()
            known[at] = self._counted(shape, beside, at)
        self._counts[shape, beside] = known, len(self._changed)
        return known

    def _counted(self, shape: PodShape, beside: PodShape | None, at: Positions | slice) -> Amounts:
        free = self.free[:, at]
        if beside is not None:
            free = free - self._column(beside)[:, None]
        fitting = pods_per_node(shape.requests, self.columns.row, free)
        fitting *= feasible(shape, self.columns)[at]
        return fitting

    def _column(self, shape: PodShape) -> Amounts:
        """Return what one pod takes, row by row; a resource without a row fits nowhere anyway."""
        column = np.zeros(len(self.columns.resources), dtype=np.int64)
        for resource, amount in shape.requests:
            if resource in self.columns.row:
                column[self.columns.row[resource]] = min(amount, LIMIT)
        return column

    def total(self, shape: PodShape) -> int:
        """Return how many pods of the shape fit in all, if nothing else comes."""
        return self.remembered(("total", shape), lambda: int(self.counts(shape).sum()))

    def without(self, shape: PodShape, spread: Spread) -> "Room":
        """Return what is left when these pods have taken theirs."""
        free = self.free.copy()
        free[:, spread.nodes] -= self._column(shape)[:, None] * spread.pods
        return self._changed_to(free, spread.nodes, self._rank)

    def facing(self, priority: int) -> "Room":
        """Return the room as pods of this priority find it: they pass over lower nominations."""
        rank = self.columns.rank(priority)
        if rank == self._rank:
            return self
        given = self.columns.ceded(rank) - self.columns.ceded(self._rank)
        return self._changed_to(self.free + given, np.flatnonzero(given.any(axis=0)), rank)

    def _changed_to(self, free: Amounts, at: Positions, rank: int) -> "Room":
        changed = Room(self.columns, free)
        changed._rank = rank
        changed._changed = (*self._changed, at)
        changed._counts = dict(self._counts)
        return changed

    def moved_to(self, columns: Columns) -> "Room":
        """Return the room that these columns leave; counts used here are handed on to it.

        What is no longer asked for is forgotten; so is all where nodes are not what they were,
        since what a node refuses follows from its traits.
        """
        moved = Room(columns, columns.free)
        before = self.columns
        if columns.traits is before.traits and columns.resources == before.resources:
            latest = len(self._changed)
            moved._changed = (np.flatnonzero((columns.free != self.free).any(axis=0)),)
            moved._counts = {
                key: (counts, 0) for key, (counts, seen) in self._counts.items() if seen == latest
            }
        return moved

    def remembered(self, key: Hashable, derive: Callable[[], T]) -> T:
        """Return what `derive` said for this key in this room, calling it only the first time."""
        if key not in self._remembered:
            self._remembered[key] = derive()
        return self._remembered[key]  # type: ignore[return-value] # a key names one derivation
