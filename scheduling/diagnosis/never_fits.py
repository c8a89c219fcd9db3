"""Explains why pods would not fit even on empty nodes.

The nodes that could run a pod are those that no lasting condition rules out: a cordon is not
lasting, nor are Kubernetes' own taints, other pods, volumes, or the domain that a gang is tried in.
Synthetic resources (ports, disks, volumes) are ignored. So an answer stays true until a node is
added or changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from scheduling.filters.feasibility import feasible
from scheduling.filters.node_resources_fit import pods_per_node
from scheduling.filters.volumes.node_volume_limits import is_attach
from scheduling.model.amounts import PODS, Mask, exact_sum, is_device
from scheduling.model.constraints import Toleration
from scheduling.model.pod import PodShape
from scheduling.model.shape.host_ports import is_port
from scheduling.model.shape.node_restrictions import lasting
from scheduling.placement.exact_search import Demand
from scheduling.placement.independent import needed
from scheduling.state.node_snapshot import NodeSnapshot

PASSING = tuple(
    Toleration(f"node.{key}", "Exists", "", "")
    for key in (
        "cloudprovider.kubernetes.io/shutdown",
        "cloudprovider.kubernetes.io/uninitialized",
        "kubernetes.io/disk-pressure",
        "kubernetes.io/memory-pressure",
        "kubernetes.io/network-unavailable",
        "kubernetes.io/not-ready",
        "kubernetes.io/out-of-service",
        "kubernetes.io/pid-pressure",
        "kubernetes.io/unreachable",
        "kubernetes.io/unschedulable",
    )
)
"""Tolerations of the taints that Kubernetes puts on nodes and takes off again."""


@dataclass(frozen=True, slots=True)
class TooLarge:
    """One pod is larger than any node: it needs `each` of a resource, `node` has the most.

    Without a resource no single one is too much, but no node has all that the pod needs.
    """

    shape: PodShape
    resource: str = ""
    each: int = 0
    node: str = ""
    largest: int = 0


@dataclass(frozen=True, slots=True)
class TooMany:
    """All pods together are more than the nodes hold: `total` is what they have of a resource."""

    resource: str
    needed: int
    total: int


@dataclass(frozen=True, slots=True)
class TooScattered:
    """Of one shape only so many pods fit, since a pod cannot be split between nodes."""

    shape: PodShape
    wanted: int
    fit: int


Never = TooLarge | TooMany | TooScattered


def never(demand: Demand, columns: NodeSnapshot) -> tuple[Never, ...]:
    """Return why the pods could not even run on empty nodes; nothing where they might.

    Causes that concern one pod go before those that concern all. Nothing is certain of resources
    that nodes may also give through a DeviceClass.
    """
    if any(_is_open(shape, columns) for shape, _ in demand):
        return ()
    most = [(shape, count, _most(shape, columns)) for shape, count in demand]
    scarce = [each for each in most if each[2] < each[1] and _able(each[0], columns).any()]
    large = tuple(_too_large(shape, columns) for shape, _, fit in scarce if not fit)
    if large:
        return large
    many = _too_many(demand, columns)
    return (many,) if many else tuple(TooScattered(*each) for each in scarce)


def _is_open(shape: PodShape, columns: NodeSnapshot) -> bool:
    if shape.restrictions.by_class:
        return True
    return bool(columns.claimable) and any(n in columns.claimable for n, _ in shape.requests)


def patient(shape: PodShape) -> PodShape:
    """Return the shape without conditions that pass by themselves and synthetic resources."""
    return replace(
        lasting(shape),
        own_requests=tuple(each for each in shape.own_requests if not is_port(each[0])),
        tolerations=(*shape.tolerations, *PASSING),
        spread=(),
    )


def _is_synthetic(resource: str) -> bool:
    return is_port(resource) or is_attach(resource)


def _able(shape: PodShape, columns: NodeSnapshot) -> Mask:
    """Return the nodes that could run pods of the shape; shared, never to be written."""
    return columns.traits.remembered(
        ("able", shape.scheduling_key), lambda: feasible(patient(shape), columns)
    )


def _most(shape: PodShape, columns: NodeSnapshot) -> int:
    """Return how many pods of the shape the empty nodes hold."""
    return columns.traits.remembered(
        ("most when empty", shape.fitting), lambda: _counted(shape, columns)
    )


def _counted(shape: PodShape, columns: NodeSnapshot) -> int:
    requests = patient(shape).requests
    fitting = pods_per_node(requests, columns.row, columns.allocatable)
    return exact_sum(fitting * _able(shape, columns))


def _too_large(shape: PodShape, columns: NodeSnapshot) -> TooLarge:
    """Name the resource of which no node has enough, preferably a device."""
    able = _able(shape, columns)
    found = [
        _largest(shape, resource, each, columns, able) for resource, each in patient(shape).requests
    ]
    short = [each for each in found if each.largest < each.each]
    short.sort(key=lambda each: (not is_device(each.resource), each.resource))
    return short[0] if short else TooLarge(shape)


def _largest(
    shape: PodShape, resource: str, each: int, columns: NodeSnapshot, able: Mask
) -> TooLarge:
    row = columns.row.get(resource)
    if row is None:
        return TooLarge(shape, resource, each)
    amounts = np.where(able, columns.allocatable[row], -1)
    at = int(amounts.argmax())
    return TooLarge(shape, resource, each, columns.names[at], int(amounts[at]))


def _too_many(demand: Demand, columns: NodeSnapshot) -> TooMany | None:
    """Compare what all need with what all nodes have that could run one of the pods."""
    short = []
    for resource, amount in needed(demand).items():
        asking = [shape for shape, _ in demand if resource in shape.amounts]
        able = frozenset(shape.scheduling_key for shape in asking)
        total = columns.traits.remembered(
            ("total when empty", resource, able), partial(_total, resource, asking, columns)
        )
        if total < amount and not _is_synthetic(resource):
            short.append(TooMany(resource, amount, total))
    return min(short, key=_told_first, default=None)


def _told_first(cause: TooMany) -> tuple[bool, bool, str]:
    """Order causes: devices first, pod slots last."""
    return cause.resource == PODS, not is_device(cause.resource), cause.resource


def _total(resource: str, asking: Sequence[PodShape], columns: NodeSnapshot) -> int:
    """Add up what the nodes have that could run one of the pods that ask for the resource."""
    row = columns.row.get(resource)
    if row is None:
        return 0
    able = np.logical_or.reduce([_able(shape, columns) for shape in asking])
    return exact_sum(columns.allocatable[row][able])
