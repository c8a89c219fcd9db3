"""Presents claimable devices as countable resources of nodes, one resource per DeviceClass.

So reports on GPUs cover every DeviceClass. The resource has the name that Kubernetes gives a class.
A device counts where a claim of its class alone would find it; a device of several classes counts
in each. Tainted devices, and devices that are not fully modelled, count only while a claim has
them, as a node does not offer the unhealthy devices of a plugin. Devices that claims share or that
several nodes reach belong to no single node: `scheduling/diagnosis/device_totals` counts them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from scheduling.devices.allocator import allocate
from scheduling.devices.node_devices import NodeDevices
from scheduling.devices.node_index import NodeDevicesIndex, Pending
from scheduling.devices.outcome import Allocated, Undecided
from scheduling.devices.selection import Rules
from scheduling.devices.steps import StepBudget
from scheduling.model.amounts import OF_CLASS, Amounts
from scheduling.model.devices.in_use import InUse
from scheduling.model.devices.resource_slice import DeviceID
from scheduling.model.shape.restrictions import Claims
from scheduling.state.node_snapshot import NodeSnapshot

MOST_CLASSES = 20
"""Classes that are counted, those with the most devices first: their names go into metrics."""

STEPS = 10_000
"""What foreseeing the devices of one pod may take."""

STEPS_OF_ALL = 400_000
"""What it may take for all pods of one count, some 0.4 s: metrics are told while pods wait."""

FOR_A_POD = 5
"""Steps for a pod beside those of its search."""

NONE: frozenset[DeviceID] = frozenset()

Cell = tuple[str, str]
"""A node and a resource."""


@dataclass(frozen=True, eq=False, slots=True)
class ClassResources:
    """Nodes with a resource more for each class; `reserved` of them is promised to pods."""

    nodes: NodeSnapshot
    names: tuple[str, ...] = ()
    reserved: Mapping[Cell, int] = field(default_factory=dict)


def is_class(resource: str) -> bool:
    """Say whether a resource stands for the devices of a class."""
    return resource.startswith(OF_CLASS)


def class_resource(name: str) -> str:
    """Return the resource that stands for the devices of a class."""
    return OF_CLASS + name


class Foreseeing:
    """Foresees what pods on their way will get: all pods of one count within common steps.

    Of pods whose devices are not foreseen within these nothing is promised. Equal ones are not
    tried again.
    """

    def __init__(self, rules: Rules) -> None:
        self.steps = StepBudget(STEPS_OF_ALL)
        self._rules, self._open = rules, set[Claims]()

    def promised(self, node: NodeDevices, pending: Pending) -> frozenset[DeviceID]:
        """Return the devices that pods on their way to a node will get."""
        return self.in_use_after(node, pending).devices - node.in_use.devices

    def in_use_after(self, node: NodeDevices, pending: Pending) -> InUse:
        """Return what is in use once they have theirs."""
        taken = node.in_use
        for claims, count in pending:
            for _ in range(count):
                after = self.after_one(node, taken, claims)
                if after is None:
                    break  # nor do the others, which are equal
                taken = after
        return taken

    def after_one(self, node: NodeDevices, taken: InUse, claims: Claims) -> InUse | None:
        """Return what is in use after one more pod; None where it gets nothing, or that is open."""
        if claims in self._open or self.steps.left < FOR_A_POD:
            return None
        budget = StepBudget(min(STEPS, self.steps.left))
        before, found = budget.left, allocate(claims, node.pools, taken, self._rules, budget)
        self.steps.left -= FOR_A_POD + before - max(0, budget.left)
        if isinstance(found, Undecided):
            self._open.add(claims)
        if not isinstance(found, Allocated):
            return None
        return taken.plus(each for each in found.given if not each.admin_access)


def with_classes(
    nodes: NodeSnapshot, devices: NodeDevicesIndex, pending: Mapping[str, Pending]
) -> ClassResources:
    """Count the devices of each class on each node; `pending` are the pods that are to come."""
    counts, foreseeing = _Counts(len(nodes.names)), Foreseeing(devices.rules)
    for at, node in enumerate(nodes.nodes):
        found, pods = devices.of(node), pending.get(node.name, ())
        if found.usable:
            promised = foreseeing.promised(found, pods) if pods else NONE
            counts.add(at, node.name, found, promised, devices.rules)
    kept = counts.there.largest()
    if not kept:
        return ClassResources(nodes)
    rows = {class_resource(each): (counts.there.row(each), counts.used.row(each)) for each in kept}
    return ClassResources(nodes.with_rows(rows), tuple(sorted(rows)), counts.reserved)


class _Counts:
    """What there is of each class, what is used of it or promised, and what is promised."""

    def __init__(self, nodes: int) -> None:
        self.there, self.used = _Rows(nodes), _Rows(nodes)
        self.reserved: dict[Cell, int] = {}

    def add(
        self, at: int, node: str, devices: NodeDevices, promised: frozenset[DeviceID], rules: Rules
    ) -> None:
        """Count the devices of one node."""
        for name, ids in devices.by_class(rules).items():
            taken, coming = len(ids & devices.in_use.devices), len(ids & promised)
            self.there.put(name, at, len(ids))
            self.used.put(name, at, taken + coming)
            if coming:
                self.reserved[node, class_resource(name)] = coming


class _Rows:
    """Amounts of each class, node by node."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self._of: dict[str, list[int]] = {}

    def put(self, name: str, at: int, amount: int) -> None:
        if name not in self._of:
            self._of[name] = [0] * self._nodes
        self._of[name][at] = amount

    def row(self, name: str) -> Amounts:
        return np.array(self._of[name], dtype=np.int64)

    def largest(self) -> Sequence[str]:
        return sorted(self._of, key=lambda name: (-sum(self._of[name]), name))[:MOST_CLASSES]
