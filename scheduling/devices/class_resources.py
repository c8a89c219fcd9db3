"""Counts devices by claim as resources of nodes: so what tells of GPUs tells of each DeviceClass.

The resource has the name that Kubernetes gives a class. A device counts where a claim of its class
alone would find it: one of several classes counts in each. Devices that are tainted, or of which
not all is modelled (several nodes reach them, counters), count only while a claim has them, as an
unhealthy device of a plugin is left out of what its node offers.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from scheduling.devices.allocator import allocate
from scheduling.devices.node_devices import NodeDevices
from scheduling.devices.node_index import NodeDevicesIndex, Pending
from scheduling.devices.outcome import Allocated
from scheduling.devices.selection import Rules
from scheduling.devices.steps import StepBudget
from scheduling.model.amounts import Amounts
from scheduling.model.devices.resource_slice import DeviceID
from scheduling.model.shape.restrictions import Claims
from scheduling.state.node_snapshot import NodeSnapshot

PREFIX = "deviceclass.resource.kubernetes.io/"
"""Kubernetes offers each class as an extended resource of this name."""

MOST_CLASSES = 20
"""Classes that are counted, those with the most devices first: their names go into metrics."""

STEPS = 10_000
"""What foreseeing the devices of one pod may take."""


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
    return resource.startswith(PREFIX)


def class_resource(name: str) -> str:
    """Return the resource that stands for the devices of a class."""
    return PREFIX + name


def with_classes(
    nodes: NodeSnapshot, devices: NodeDevicesIndex, pending: Mapping[str, Pending]
) -> ClassResources:
    """Count the devices of each class on each node; `pending` are the pods that are to come."""
    there, used, reserved = _Rows(len(nodes.names)), _Rows(len(nodes.names)), Counter[Cell]()
    for at, node in enumerate(nodes.nodes):
        found = devices.of(node)
        if not found.usable:
            continue
        promised = foreseen(found, pending.get(node.name, ()), devices.rules)
        for name, ids in found.by_class(devices.rules).items():
            taken, coming = len(ids & found.in_use), len(ids & promised)
            there.add(name, at, len(ids))
            used.add(name, at, taken + coming)
            reserved[node.name, class_resource(name)] += coming
    kept = there.largest()
    if not kept:
        return ClassResources(nodes)
    rows = {class_resource(each): (there.of[each], used.of[each]) for each in kept}
    return ClassResources(
        nodes.with_rows(rows), tuple(sorted(rows)), {k: n for k, n in reserved.items() if n}
    )


class _Rows:
    """Amounts of each class, node by node."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self.of: dict[str, Amounts] = {}

    def add(self, name: str, at: int, amount: int) -> None:
        if name not in self.of:
            self.of[name] = np.zeros(self._nodes, dtype=np.int64)
        self.of[name][at] += amount

    def largest(self) -> Sequence[str]:
        return sorted(self.of, key=lambda name: (-int(self.of[name].sum()), name))[:MOST_CLASSES]


def foreseen(node: NodeDevices, pending: Pending, rules: Rules) -> frozenset[DeviceID]:
    """Return the devices that pods on their way will get, as far as that is foreseen."""
    taken = set(node.in_use)
    for claims in _each(pending):
        outcome = allocate(claims, node.pools, taken, rules, StepBudget(STEPS))
        if isinstance(outcome, Allocated):
            given = (each for claim in outcome.claims for each in claim)
            taken.update(each.device for each in given if not each.admin_access)
    return frozenset(taken - node.in_use)


def _each(pending: Iterable[tuple[Claims, int]]) -> Iterator[Claims]:
    for claims, count in pending:
        yield from [claims] * count
