"""Reads a node and what it offers, and the resources that a DeviceClass gives."""

from kube.codec.node_removal import removal
from kube.objects import core as core_objects
from kube.objects.core import BareNode
from scheduling.model import node as node_model
from scheduling.model.amounts import OF_CLASS
from scheduling.model.quantity import BadQuantity, allocatable_amount


def whole_node(found: core_objects.Node | BareNode) -> core_objects.Node:
    """Return a node that can be read; where the rest of one cannot, it is full and cordoned."""
    if isinstance(found, core_objects.Node):
        return found
    return core_objects.Node(
        metadata=found.metadata, spec=core_objects.NodeSpec(unschedulable=True)
    )


def node(found: core_objects.Node) -> node_model.Node:
    """Read a node; it offers nothing of a resource whose amount is absent or cannot be read.

    The node counts all the same: it is in its domains, and pods may be on it.
    """
    return node_model.Node(
        name=found.metadata.name,
        labels=found.metadata.labels,
        taints=tuple(node_model.Taint(t.key, t.value, t.effect) for t in found.spec.taints),
        unschedulable=found.spec.unschedulable,
        allocatable={
            name: _offered(name, str(text)) for name, text in found.status.allocatable.items()
        },
        features=frozenset(found.status.declared_features),
        removal=removal(found),
    )


def _offered(resource: str, text: str) -> int:
    """Read an amount; one beyond 64 bits is less than nothing to kube-scheduler."""
    try:
        return allocatable_amount(resource, text)
    except BadQuantity:
        return 0


def resources_of_class(found: core_objects.DeviceClass) -> tuple[str, ...]:
    """Name the resources that a pod may ask for to get devices of the class (DRAExtendedResource).

    The gate is on since 1.36; earlier servers drop the name from the class, and their pods get
    nothing for either.
    """
    named = found.spec.extended_resource_name
    return (f"{OF_CLASS}{found.metadata.name}", *((named,) if named else ()))
