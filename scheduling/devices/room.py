"""Which devices pods may be allocated, node by node: what there is, and the pods on their way.

Devices are taken by kube-scheduler when a pod gets its turn, and told of later. So a room holds,
beside what is taken, the pods that are to come to each node and claim devices there.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from scheduling.devices.node_devices import least_of
from scheduling.devices.node_index import DeviceFacts, NodeDevicesIndex, Pending
from scheduling.devices.selection import Rules
from scheduling.model.amounts import Amounts
from scheduling.model.devices.in_use import TakenDevice
from scheduling.model.node import Node
from scheduling.model.shape.restrictions import Claims


@dataclass(slots=True)
class _Left:
    """How many devices of some nodes are left, once that was asked for."""

    nodes: tuple[Node, ...] = ()
    index: Mapping[str, int] = field(default_factory=dict)
    row: Amounts = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def less(self, numbers: Mapping[str, int]) -> "_Left":
        """Return what is left where so many more are promised, by node."""
        at = [(self.index[name], number) for name, number in numbers.items() if name in self.index]
        row = self.row.copy()
        where, less = np.array(at, dtype=np.int64).reshape(-1, 2).T
        row[where] -= less
        return _Left(self.nodes, self.index, row)


@dataclass(frozen=True, eq=False)
class DeviceRoom:
    """What devices are left; a value: pods that are to come make another one.

    `stamp` is equal where nothing changed that was given at the beginning of a cycle. `looks` are
    the nodes that had been looked at then.
    """

    nodes: NodeDevicesIndex
    pending: Mapping[str, Pending]
    stamp: Hashable
    looks: int = 0
    promised: Mapping[str, int] = field(default_factory=dict)
    """How many devices those pods are given at least, by node."""
    _left: _Left = field(default_factory=_Left, repr=False)

    @classmethod
    def of(cls, facts: DeviceFacts, before: "DeviceRoom | None" = None) -> "DeviceRoom":
        """Return all that the facts leave, with what is still known from a room of before."""
        index = NodeDevicesIndex(facts) if before is None else before.nodes.renewed(facts)
        stamp = facts.edition, frozenset(facts.pending.items())
        promised = {node: _least(pods) for node, pods in facts.pending.items()}
        return cls(index, facts.pending, stamp, index.looks, promised)

    @property
    def gets_further(self) -> bool:
        """Say whether a search that ran out of steps would get further by now."""
        return self.nodes.looks > self.looks

    @property
    def rules(self) -> Rules:
        """Return what judges devices."""
        return self.nodes.rules

    def with_pods(self, claims: Claims, pods: Mapping[str, int]) -> "DeviceRoom":
        """Return what is left when so many more pods with these claims are to come, by node.

        Below zero are those that are not to come any more.
        """
        pending, promised, least = dict(self.pending), dict(self.promised), least_of(claims)
        for node, count in pods.items():
            there = dict(pending.get(node, ()))
            there[claims] = there.get(claims, 0) + count
            pending[node] = tuple((each, number) for each, number in there.items() if number)
            promised[node] = promised.get(node, 0) + least * count
        left = self._left.less({node: least * count for node, count in pods.items()})
        return replace(self, pending=pending, promised=promised, _left=left)

    def without_taken(self, devices: frozenset[TakenDevice]) -> "DeviceRoom":
        """Return what is left once claims give these devices back."""
        return replace(self, nodes=self.nodes.without_taken(devices), _left=_Left())

    def left_on(self, nodes: tuple[Node, ...], index: Mapping[str, int]) -> Amounts:
        """Return how many devices of each node are left for further pods: no fewer than there are.

        `index` says where a node stands. The array is shared, never to be written.
        """
        if self._left.nodes is not nodes:
            numbers = self.nodes.numbers_on(nodes)
            found = _Left(nodes, index, numbers).less(self.promised)
            self._left.nodes, self._left.index, self._left.row = found.nodes, index, found.row
        return self._left.row


def _least(pods: Pending) -> int:
    return sum(least_of(claims) * count for claims, count in pods)
