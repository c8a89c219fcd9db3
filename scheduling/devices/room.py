"""Which devices pods may be allocated, node by node: what there is, and the pods on their way.

Devices are taken by kube-scheduler when a pod gets its turn, and told of later. So a room holds,
beside what is taken, the pods that are to come to each node and claim devices there.
"""

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from scheduling.devices.node_devices import NodeDevices
from scheduling.devices.pools import PoolKey, SliceIndex, gather_pools
from scheduling.devices.selection import Rules
from scheduling.model.devices.resource_slice import DeviceID, ResourceSlice
from scheduling.model.node import Node
from scheduling.model.restrictions import Claims

Pending = tuple[tuple[Claims, int], ...]
"""Pods on their way to a node, by their claims."""


@dataclass(frozen=True, eq=False)
class DeviceFacts:
    """What is known of devices at one moment.

    `taken` are the devices that claims have for themselves. `pending` are, by node, the pods that
    are to come there, of all gangs, whose claims are not allocated. `edition` is another number
    whenever slices, claims or classes changed.
    """

    slices: Collection[ResourceSlice]
    taken: Collection[DeviceID]
    rules: Rules
    edition: int
    pending: Mapping[str, Pending] = field(default_factory=dict)


class _Known(NamedTuple):
    """The devices of a node, and all that they follow from."""

    node: Node
    slices: tuple[ResourceSlice, ...]
    taken: frozenset[DeviceID]
    devices: NodeDevices


class NodeDevicesIndex:
    """The devices of each node, worked out when first asked for.

    What was known of a node `before` is taken over where nothing changed that it follows from.
    """

    rules: Rules

    def __init__(self, facts: DeviceFacts, before: "NodeDevicesIndex | None" = None) -> None:
        self.rules = facts.rules
        if before is not None and before.rules == facts.rules:
            self.rules = before.rules  # patterns are remembered by the very object
        self._slices = SliceIndex(facts.slices)
        self._taken: dict[PoolKey, set[DeviceID]] = {}
        for device in facts.taken:
            self._taken.setdefault(PoolKey(device.driver, device.pool), set()).add(device)
        foreign = self._slices.counters_of_one_node
        self._foreign = tuple(self._slices.of_pool(foreign)) if foreign else ()
        self._before = before.found if before is not None else {}
        self.found: dict[str, _Known] = {}

    def of(self, node: Node) -> NodeDevices:
        """Return the devices that a node reaches."""
        known = self.found.get(node.name)
        if known is None:
            known = self.found[node.name] = self._worked_out(node)
            self._before.pop(node.name, None)
        return known.devices

    def _worked_out(self, node: Node) -> _Known:
        reaching = self._slices.may_reach(node.name)
        keys = dict.fromkeys(PoolKey(each.driver, each.pool) for each in reaching)
        taken = frozenset(chain.from_iterable(self._taken.get(key, ()) for key in keys))
        slices = (*chain.from_iterable(map(self._slices.of_pool, keys)), *self._foreign)
        before = self._before.get(node.name)
        if before is None or before.node != node or before.slices != slices:
            pools = gather_pools(node, self._slices, self.rules.features)
            return _Known(node, slices, taken, NodeDevices.of(pools, taken))
        if before.taken == taken:
            return before
        return _Known(node, slices, taken, NodeDevices.of(before.devices.pools, taken))


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
        index = NodeDevicesIndex(facts, before.nodes if before is not None else None)
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
