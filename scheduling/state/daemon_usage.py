"""Sums up what pods of DaemonSets and static pods use on each node, kept from events.

They run on a node whatever else does, so no gang ever gets their part of it. The sums are kept by
one owner; the array of them is brought up to date, when it is asked for, at the nodes that changed.
"""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from scheduling.model.amounts import LIMIT, Amounts
from scheduling.state.node_snapshot import NodeAttributes, NodeSnapshot


class DaemonUsage:
    """The sums by the name of the node, known or not."""

    def __init__(self) -> None:
        self._sums: dict[str, Counter[str]] = {}
        self._changed: set[str] = set()
        self._of: tuple[NodeAttributes, tuple[str, ...]] | None = None
        self._amounts: Amounts = np.zeros((0, 0), dtype=np.int64)

    def use(self, node: str, amounts: Iterable[tuple[str, int]], sign: int) -> None:
        """Add (+1) the amounts of a pod on a node, or take them back (-1)."""
        sums = self._sums.setdefault(node, Counter())
        for resource, amount in amounts:
            sums[resource] += sign * amount
            if not sums[resource]:
                del sums[resource]
        if not sums:
            del self._sums[node]
        self._changed.add(node)

    def on(self, nodes: NodeSnapshot) -> Amounts:
        """Return the sums, resources x nodes; never to be written."""
        of = nodes.traits, nodes.resources
        if self._of != of:
            self._of = of
            self._amounts = np.zeros_like(nodes.allocatable)
            self._changed = set(self._sums)
        elif self._changed:
            self._amounts = self._amounts.copy()
        for name in self._changed & nodes.index.keys():
            self._write(nodes, name)
        self._changed = set()
        return self._amounts

    def _write(self, nodes: NodeSnapshot, name: str) -> None:
        at, sums = nodes.index[name], self._sums.get(name, Counter())
        for resource, row in nodes.row.items():
            self._amounts[row, at] = min(sums[resource], LIMIT)
