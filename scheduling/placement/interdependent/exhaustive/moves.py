"""Lists where the next pod may go in a search that goes pod by pod.

Nodes that nothing tells apart are of one class: as much room for all that the gang could ask for,
open to the same groups, in the same domains or each alone in one of its own that holds as much. If
several nodes of a class hold the same pods, only one is offered, and a pod on any of them gives the
same state of the search: a thousand equal nodes are as few to a search as two.
"""

from collections.abc import Iterator

import numpy as np

from scheduling.model.amounts import Positions
from scheduling.placement.interdependent.exhaustive.checks import STEPS_PER_CELL, Checks, Load
from scheduling.placement.interdependent.partial_placement import PartialPlacement

STEPS_PER_POD = 700
"""What placing one pod and taking it back costs, in steps of some 20 ns."""

STEPS_PER_NODE = 100
"""What asking one node costs beside its checks."""

STEPS_PER_CHECK = 25
"""What asking one constraint about one node costs."""


class Moves:
    """The pods of a gang placed one by one: how many are left, and where the next may go."""

    def __init__(self, partial: PartialPlacement) -> None:
        partial.reset()
        self._partial = partial
        self.left = list(partial.left)
        self._groups = range(len(self.left))
        self._checks = Checks(partial)
        self._asked = [self._checks.of(at) for at in self._groups]
        self._ranks: list[list[int]] = [partial.ranks(at).tolist() for at in self._groups]
        classes = self._checks.node_classes()
        self._class_of: list[int] = classes.tolist()
        self._by_class = [_by_class(partial.ranks(at), classes) for at in self._groups]
        self._empty: Load = (0,) * len(self.left)
        self._loads: dict[int, Load] = {}
        partial.spent += STEPS_PER_CELL * len(self._class_of) * len(self.left)

    def put(self, at: int, node: int, count: int) -> None:
        """Place pods of a group on a node, or with a negative count take them back."""
        self.left[at] -= count
        before = self._loads.pop(node, self._empty)
        load = (*before[:at], before[at] + count, *before[at + 1 :])
        self._checks.put(at, node, count, load)
        if load != self._empty:
            self._loads[node] = load

    def is_hopeless(self) -> bool:
        """Say whether some group lacks room for its pods left, whatever else is placed or not."""
        self._partial.spent += STEPS_PER_CHECK * (len(self.left) + len(self._checks.bounds))
        return not self._checks.lets_in(self.left)

    def state(self) -> tuple[tuple[int, Load], ...]:
        """Return what is placed but for which of the nodes of a class it is placed on."""
        return tuple(sorted((self._class_of[node], load) for node, load in self._loads.items()))

    def open(self, at: int) -> Iterator[int]:
        """Yield nodes that take a pod of a group, in packing order; of equivalent ones one."""
        checks = self._asked[at]
        self._partial.spent += STEPS_PER_POD + len(self._class_of)
        for node in self._distinct(at):
            self._partial.spent += STEPS_PER_NODE + STEPS_PER_CHECK * len(checks)
            for check in checks:
                if not check(node):
                    break
            else:
                yield node

    def _distinct(self, at: int) -> Iterator[int]:
        """Yield nodes that a group may go to in packing order, of each class and load one."""
        rank = self._ranks[at]
        loaded = self._loaded(at)
        for alike in self._by_class[at]:
            fresh = next((node for node in alike if node not in self._loads), None)
            if fresh is not None:
                while loaded and rank[loaded[-1]] < rank[fresh]:
                    yield loaded.pop()
                yield fresh
        yield from reversed(loaded)

    def _loaded(self, at: int) -> list[int]:
        """Return the nodes with pods that a group may go to, of those alike one, the first last."""
        rank, classes = self._ranks[at], self._class_of
        first = {
            (classes[node], load): node for node, load in self._loads.items() if rank[node] >= 0
        }
        return sorted(first.values(), key=rank.__getitem__, reverse=True)

    def hand_over(self) -> None:
        """Place what is placed here on the partial placement."""
        self._partial.reset()
        for node, load in self._loads.items():
            for at, count in enumerate(load):
                self._partial.put(at, node, count)


def _by_class(ranks: Positions, classes: Positions) -> list[list[int]]:
    """Return the nodes that have a rank, by class, in the order of the ranks of the first."""
    nodes = np.flatnonzero(ranks >= 0)
    nodes = nodes[np.lexsort((ranks[nodes], classes[nodes]))]
    ends = np.flatnonzero(np.diff(classes[nodes])) + 1
    groups = [each.tolist() for each in np.split(nodes, ends) if len(each)]
    return sorted(groups, key=lambda alike: int(ranks[alike[0]]))
