"""Which devices pods may be allocated, node by node: what there is, and the pods on their way.

Devices are taken by kube-scheduler when a pod gets its turn, and told of later. So a room holds,
beside what is taken, the pods that are to come to each node and claim devices there.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace

from scheduling.devices.node_index import DeviceFacts, NodeDevicesIndex, Pending
from scheduling.devices.selection import Rules
from scheduling.model.restrictions import Claims


@dataclass(frozen=True, eq=False)
class DeviceRoom:
    """What devices are left; a value: pods that are to come make another one.

    `stamp` is equal where nothing changed that was given at the beginning of a cycle.
    """

    nodes: NodeDevicesIndex
    pending: Mapping[str, Pending]
    stamp: Hashable

    @classmethod
    def of(cls, facts: DeviceFacts, before: "DeviceRoom | None" = None) -> "DeviceRoom":
        """Return all that the facts leave, with what is still known from a room of before."""
        index = NodeDevicesIndex(facts) if before is None else before.nodes.renewed(facts)
        stamp = facts.edition, frozenset(facts.pending.items())
        return cls(index, facts.pending, stamp)

    @property
    def rules(self) -> Rules:
        """Return what judges devices."""
        return self.nodes.rules

    def with_pods(self, claims: Claims, pods: Mapping[str, int]) -> "DeviceRoom":
        """Return what is left when so many more pods with these claims are to come, by node."""
        pending = dict(self.pending)
        for node, count in pods.items():
            there = dict(pending.get(node, ()))
            there[claims] = there.get(claims, 0) + count
            pending[node] = tuple(there.items())
        return replace(self, pending=pending)
