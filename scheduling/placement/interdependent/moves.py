"""Lists where the next pod may go in a search that goes pod by pod.

Nodes that nothing tells apart are of one kind: as much room for all that the gang could ask for,
open to the same units, in the same domains or each alone in one of its own that holds as much. Of
those of a kind that hold the same pods only one is offered, and what is placed is the same state
whichever of them it is placed on: a thousand equal nodes are as few to a search as two.
"""

from collections.abc import Iterator

import numpy as np

from scheduling.model.amounts import Positions
from scheduling.placement.interdependent.checks import STEPS_PER_CELL, Checks, Load
from scheduling.placement.interdependent.partial_placement import PartialPlacement

STEPS_PER_POD = 700
"""What placing one pod and taking it back costs, in steps of some 20 ns."""

STEPS_PER_NODE = 100
"""What asking one node costs beside its bonds."""

STEPS_PER_BOND = 25
"""What asking one bond about one node costs."""


class Moves:
    """The pods of a gang placed one by one: how many are left, and where the next may go."""

    def __init__(self, walk: PartialPlacement) -> None:
        walk.begin()
        self._walk = walk
        self.left = list(walk.left)
        self._units = range(len(self.left))
        self._checks = Checks(walk)
        self._asked = [self._checks.of(at) for at in self._units]
        self._ranks: list[list[int]] = [walk.ranks(at).tolist() for at in self._units]
        kinds = self._checks.kinds()
        self._kinds: list[int] = kinds.tolist()
        self._alike = [_by_kind(walk.ranks(at), kinds) for at in self._units]
        self._empty: Load = (0,) * len(self.left)
        self._loads: dict[int, Load] = {}
        walk.spent += STEPS_PER_CELL * len(self._kinds) * len(self.left)

    def put(self, at: int, node: int, count: int) -> None:
        """Place pods of a unit on a node, or with a negative count take them back."""
        self.left[at] -= count
        before = self._loads.pop(node, self._empty)
        load = (*before[:at], before[at] + count, *before[at + 1 :])
        self._checks.put(at, node, count, load)
        if load != self._empty:
            self._loads[node] = load

    def is_hopeless(self) -> bool:
        """Say whether some unit lacks room for those left, whatever else comes or stays away."""
        self._walk.spent += STEPS_PER_BOND * (len(self.left) + len(self._checks.prospects))
        return not self._checks.lets_in(self.left)

    def state(self) -> tuple[tuple[int, Load], ...]:
        """Return what is placed but for which of the nodes of a kind it is placed on."""
        return tuple(sorted((self._kinds[node], load) for node, load in self._loads.items()))

    def open(self, at: int) -> Iterator[int]:
        """Yield nodes that take a pod of a unit, in packing order; of those alike one."""
        checks = self._asked[at]
        self._walk.spent += STEPS_PER_POD + len(self._kinds)
        for node in self._unlike(at):
            self._walk.spent += STEPS_PER_NODE + STEPS_PER_BOND * len(checks)
            for check in checks:
                if not check(node):
                    break
            else:
                yield node

    def _unlike(self, at: int) -> Iterator[int]:
        """Yield nodes that a unit may go to in packing order, of each kind and load one."""
        rank = self._ranks[at]
        loaded = self._loaded(at)
        for alike in self._alike[at]:
            fresh = next((node for node in alike if node not in self._loads), None)
            if fresh is not None:
                while loaded and rank[loaded[-1]] < rank[fresh]:
                    yield loaded.pop()
                yield fresh
        yield from reversed(loaded)

    def _loaded(self, at: int) -> list[int]:
        """Return the nodes with pods that a unit may go to, of those alike one, the first last."""
        rank, kinds = self._ranks[at], self._kinds
        first = {(kinds[node], load): node for node, load in self._loads.items() if rank[node] >= 0}
        return sorted(first.values(), key=rank.__getitem__, reverse=True)

    def hand_over(self) -> None:
        """Place on the walk what is placed here."""
        self._walk.begin()
        for node, load in self._loads.items():
            for at, count in enumerate(load):
                self._walk.put(at, node, count)


def _by_kind(ranks: Positions, kinds: Positions) -> list[list[int]]:
    """Return the nodes that have a rank, by kind, in the order of the ranks of the first."""
    nodes = np.flatnonzero(ranks >= 0)
    nodes = nodes[np.lexsort((ranks[nodes], kinds[nodes]))]
    ends = np.flatnonzero(np.diff(kinds[nodes])) + 1
    groups = [each.tolist() for each in np.split(nodes, ends) if len(each)]
    return sorted(groups, key=lambda alike: int(ranks[alike[0]]))
