"""The devices left on each node, and the pods on their way there that claim devices.

kube-scheduler allocates devices when it binds a pod, and the watch reports that later. So a room
holds, beside the allocated devices, the pods on their way to each node that claim devices there.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from scheduling.devices.mixes import KeptMixes
from scheduling.devices.node_index import DeviceFacts, Kinds, NodeDevicesIndex, Pending
from scheduling.devices.selection import Rules
from scheduling.model.amounts import Amounts
from scheduling.model.devices.asked import least_of, promised_to
from scheduling.model.devices.in_use import TakenDevice
from scheduling.model.node import Node
from scheduling.model.shape.restrictions import Claims

KINDS_KEPT = 16
"""Claims of which it is remembered how many pods with these are to come to each node."""


@dataclass(slots=True)
class _Left:
    """How many devices of some nodes are left, once that was asked for.

    `coming` is by claims how many pods with these are on their way to each node.
    """

    nodes: tuple[Node, ...] = ()
    index: Mapping[str, int] = field(default_factory=dict)
    row: Amounts = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    coming: dict[Claims, Amounts] = field(default_factory=dict)

    def less(self, claims: Claims, pods: Mapping[str, int]) -> "_Left":
        """Return what is left where so many more pods are to come, by node."""
        least, coming = promised_to(claims), {**self.coming}
        if claims in coming:
            coming[claims] = self.plus(coming[claims], pods)
        row = self.plus(self.row, {name: -least * count for name, count in pods.items()})
        return _Left(self.nodes, self.index, row, coming)

    def plus(self, row: Amounts, numbers: Mapping[str, int]) -> Amounts:
        """Return a row where so many more are on these nodes."""
        at = [(self.index[name], number) for name, number in numbers.items() if name in self.index]
        found = row.copy()
        where, more = np.array(at, dtype=np.int64).reshape(-1, 2).T
        found[where] += more
        return found


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
    kept: KeptMixes = field(default_factory=KeptMixes, repr=False)
    """What is known of nodes from gangs that asked before."""
    _left: _Left = field(default_factory=_Left, repr=False)

    @classmethod
    def of(cls, facts: DeviceFacts, before: "DeviceRoom | None" = None) -> "DeviceRoom":
        """Return all that the facts leave, with what is still known from a room of before."""
        index = NodeDevicesIndex(facts) if before is None else before.nodes.renewed(facts)
        stamp = facts.edition, frozenset(facts.pending.items())
        promised = {node: _least(pods) for node, pods in facts.pending.items()}
        kept = before.kept if before and before.rules is index.rules else KeptMixes()
        return cls(index, facts.pending, stamp, index.looks, promised, kept)

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
        pending, promised, least = dict(self.pending), dict(self.promised), promised_to(claims)
        for node, count in pods.items():
            there = dict(pending.get(node, ()))
            there[claims] = there.get(claims, 0) + count
            pending[node] = tuple((each, number) for each, number in there.items() if number)
            promised[node] = promised.get(node, 0) + least * count
        left = self._left.less(claims, pods)
        return replace(self, pending=pending, promised=promised, _left=left)

    def without_taken(self, devices: frozenset[TakenDevice]) -> "DeviceRoom":
        """Return what is left once claims give these devices back."""
        return replace(self, nodes=self.nodes.without_taken(devices), _left=_Left())

    def most_on(
        self, kinds: Kinds, claims: Claims, nodes: tuple[Node, ...], index: Mapping[str, int]
    ) -> Amounts:
        """Return of how many further pods each node has devices for no more, where others come too.

        `kinds` are the claims of all that are asked for, `claims` those of the pods that count;
        `index` says where a node stands.
        """
        left = self._left_on(nodes, index)
        devices: Amounts = np.maximum(left.row, 0) // least_of(claims)
        most = self.nodes.most_on(kinds, claims, nodes) - self._coming(claims)
        found: Amounts = np.minimum(devices, np.maximum(most, 0))
        return found

    def _left_on(self, nodes: tuple[Node, ...], index: Mapping[str, int]) -> _Left:
        """Return how many devices of each node are left for further pods: no fewer than there are.

        Its rows are shared, never to be written.
        """
        left = self._left
        if left.nodes is not nodes:
            left.nodes, left.index, left.coming = nodes, index, {}
            promised = {name: -number for name, number in self.promised.items()}
            left.row = left.plus(self.nodes.numbers_on(nodes), promised)
        return left

    def _coming(self, claims: Claims) -> Amounts:
        """Return how many pods with these claims are on their way to each node."""
        left = self._left
        if claims not in left.coming:
            while len(left.coming) >= KINDS_KEPT:
                del left.coming[next(iter(left.coming))]
            there = {name: dict(pods).get(claims, 0) for name, pods in self.pending.items()}
            left.coming[claims] = left.plus(np.zeros(len(left.nodes), dtype=np.int64), there)
        return left.coming[claims]


def _least(pods: Pending) -> int:
    return sum(promised_to(claims) * count for claims, count in pods)
