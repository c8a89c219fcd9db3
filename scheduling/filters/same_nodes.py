"""Carries per-node results to the next snapshot for the nodes that did not change."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from scheduling.model.amounts import Positions
from scheduling.state.node_snapshot import NodeSnapshot

V = TypeVar("V", bound=np.generic)


@dataclass(frozen=True, eq=False, slots=True)
class SameNodes:
    """The nodes that stayed what they are: their positions before and now, both rising.

    Both are None where no node changed at all.
    """

    before: Positions | None
    now: Positions | None
    nodes_before: int
    nodes_now: int

    @classmethod
    def of(cls, before: NodeSnapshot, now: NodeSnapshot) -> "SameNodes":
        """Compare two snapshots by the identity of their nodes."""
        if before.traits is now.traits:
            return cls(None, None, len(before.names), len(now.names))
        index, known = before.index, before.nodes
        pairs = [
            (index[node.name], at)
            for at, node in enumerate(now.nodes)
            if node.name in index and known[index[node.name]] is node
        ]
        positions = np.array(pairs, dtype=np.intp).reshape(-1, 2)
        return cls(positions[:, 0], positions[:, 1], len(before.names), len(now.names))

    def carried(self, known: NDArray[V]) -> NDArray[V]:
        """Return what was known of each node (the last axis) at its place of now, else zeros."""
        if self.before is None:
            return known
        carried = np.zeros((*known.shape[:-1], self.nodes_now), dtype=known.dtype)
        carried[..., self.now] = known[..., self.before]
        return carried

    def found(self, at: Positions) -> Positions:
        """Return where nodes of before are now; those that are gone are left out."""
        if self.before is None or self.now is None:
            return at
        places = np.full(self.nodes_before, -1, dtype=np.intp)
        places[self.before] = self.now
        return places[at][places[at] >= 0]

    def others_and(self, *some: Positions) -> Positions:
        """Return all nodes that are new or not what they were, and some more, each once."""
        if self.now is None:
            return some[0] if len(some) == 1 else np.unique(np.concatenate(some))
        mask = np.ones(self.nodes_now, dtype=np.bool_)
        mask[self.now] = False
        mask[np.concatenate(some)] = True
        return np.flatnonzero(mask)
