"""Reports the devices of nodes: used, reserved and free, and how many pods still fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import msgspec
import numpy as np

from cli.report.order import natural
from cli.report.room.sums import Room, room_of
from cli.report.room.totals import FarReport, SharedReport, far_report, shared_report, totals_of
from cli.report.snapshot import Snapshot, Unread
from scheduling.devices.class_resources import is_class
from scheduling.diagnosis.holes import OTHER, SIZES, GpuPools, Pool, pool_name, pools
from scheduling.model.amounts import CPU, MEMORY, is_device
from scheduling.model.node import Node


class NodeReport(msgspec.Struct, frozen=True, rename="camel"):
    """The devices of one resource on one node; `off` says why no new pod gets there."""

    name: str
    pool: str
    resource: str
    allocatable: int
    used: int
    reserved: int
    free: int
    off: str = ""


class PoolReport(msgspec.Struct, frozen=True, rename="camel"):
    """The devices of one resource in one pool of nodes.

    `free` can take pods, `unschedulable` are on nodes that take none; `stranded` is the part of
    `free` that lacks processor or memory. `holes` has the number of pods by size that still fit:
    of devices alone, for other resources come in no such sizes. CPU is in milli, memory in bytes.
    """

    name: str
    resource: str
    nodes: int
    allocatable: int
    used: int
    reserved: int
    free: int
    unschedulable: int
    stranded: float
    holes: Mapping[str, int]


class NodesReport(msgspec.Struct, frozen=True, rename="camel"):
    """All nodes with such devices; `is_known` is false where nodes or pods could not be listed.

    `offered` are the resources that nodes have. Devices that are `shared`, or that several nodes
    reach (`far`), are in no pool of these and on no node.
    """

    is_known: bool
    pools: tuple[PoolReport, ...] = ()
    nodes: tuple[NodeReport, ...] = ()
    nodes_without: int = 0
    offered: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    shared: tuple[SharedReport, ...] = ()
    far: tuple[FarReport, ...] = ()


_ACCELERATORS = ("google.com/tpu", "habana.ai/gaudi", "aws.amazon.com/neuron")


def devices_of(room: Room) -> tuple[str, ...]:
    """Return the resources that are accelerators by their names, and devices by class."""
    named = (each for each in room.nodes.resources if _is_accelerator(each))
    return (*named, *room.classes)


def _is_accelerator(resource: str) -> bool:
    name = resource.rpartition("/")[2]
    is_gpu = name.endswith("gpu") or name.startswith(("gpu", "mig-"))
    return is_device(resource) and (is_gpu or resource in _ACCELERATORS)


def nodes_report(
    found: Snapshot, resources: Sequence[str] = (), labels: Sequence[str] = ()
) -> NodesReport:
    """Report on the nodes that have one of the resources.

    Where none is named it is on accelerators, and where no node has any on CPU and memory. `labels`
    name the pool of a node, the first one first.
    """
    room, unread = room_of(found), told(found.unread)
    if room is None:
        return NodesReport(is_known=False, unread=unread)
    asked_of = tuple(resources) or devices_of(room) or (CPU, MEMORY)
    asked = GpuPools(asked_of, tuple(labels) or GpuPools().labels)
    nodes = tuple(_nodes(room, asked))
    totals = totals_of(room, resources, asked.labels)
    more = (*(each.resource for each in totals.shared), *(each.resource for each in totals.far))
    return NodesReport(
        is_known=True,
        pools=tuple(_pools(room, asked, nodes)),
        nodes=nodes,
        nodes_without=len(room.nodes.names) - len({each.name for each in nodes}),
        offered=tuple(dict.fromkeys((*room.nodes.resources, *more))),
        unread=unread,
        shared=tuple(map(shared_report, totals.shared)),
        far=tuple(map(far_report, totals.far)),
    )


def told(unread: Sequence[Unread]) -> tuple[str, ...]:
    """Return what could not be read, as reports repeat it."""
    return tuple(each.message for each in unread)


def _pools(room: Room, asked: GpuPools, nodes: Sequence[NodeReport]) -> Iterator[PoolReport]:
    """Yield the pools; nodes of those beyond the largest count in the one of the rest."""
    found = sorted(pools(room.nodes, room.reserved, asked), key=partial(_order, asked))
    named = {(each.resource, each.name) for each in found}
    counts = Counter(
        place if (place := (each.resource, each.pool)) in named else (each.resource, OTHER)
        for each in nodes
    )
    for each in found:
        yield _pool(each, counts[each.resource, each.name])


def _order(asked: GpuPools, pool: Pool) -> tuple[object, ...]:
    """Sort by resource, then the largest first; those of one size by name, and the rest last."""
    rest, place = pool.name == OTHER, asked.resources.index(pool.resource)
    return place, rest, -pool.allocatable, natural(pool.name)


def _pool(pool: Pool, count: int) -> PoolReport:
    idle = pool.free + pool.unschedulable
    sized = is_device(pool.resource) or is_class(pool.resource)
    return PoolReport(
        name=pool.name,
        resource=pool.resource,
        nodes=count,
        allocatable=pool.allocatable,
        used=max(pool.allocatable - idle - pool.reserved, 0),
        reserved=pool.reserved,
        free=pool.free,
        unschedulable=pool.unschedulable,
        stranded=round(pool.stranded, 2) if sized else 0,
        holes={str(size): count for size, count in zip(SIZES, pool.holes, strict=True) if sized},
    )


def _nodes(room: Room, asked: GpuPools) -> Iterator[NodeReport]:
    nodes = room.nodes
    for resource in asked.resources:
        if resource not in nodes.row:
            continue
        row = nodes.row[resource]
        there = np.flatnonzero(nodes.allocatable[row]).tolist()
        for at in sorted(there, key=lambda each: natural(nodes.names[each])):
            node = nodes.traits.nodes[at]
            whole, used = int(nodes.allocatable[row, at]), int(nodes.used[row, at])
            reserved = room.reserved.get((node.name, resource), 0)
            yield NodeReport(
                name=node.name,
                pool=pool_name(node.labels, asked.labels),
                resource=resource,
                allocatable=whole,
                used=used - reserved,
                reserved=reserved,
                free=max(whole - used, 0),
                off=_off(node),
            )


def _off(node: Node) -> str:
    """Say why a node takes no new pods; empty where it does."""
    if node.unschedulable:
        return "cordoned"
    states = (
        each.key.rpartition("/")[2]
        for each in node.taints
        if each.key.startswith("node.kubernetes.io/") and each.effect != "PreferNoSchedule"
    )
    return next(states, "")
