"""Reads the nodes with the gangs on their GPUs, and the queues, as far as the caller may."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from cli.endings import NotAllowed
from cli.read.cluster import read_gangs_anywhere, read_snapshot
from cli.read.devices import with_devices
from cli.read.own_queues import with_own_queues
from cli.read.reader import Reader
from cli.report.gangs import queue_of
from cli.report.queues import QueueReport, queues_report
from cli.report.room.nodes import NodeReport, nodes_report, told
from cli.report.room.sums import Room, room_of
from cli.report.room.totals import FarReport, SharedReport
from cli.report.snapshot import DEVICES, GANGS, NODES, PODS, QUEUES, Snapshot, Unread
from cli.show.words import counted

MOST_NODES = 5000
MOST_QUEUES = 1000

_RIGHTS = {
    NODES: "list nodes and pods of all namespaces (ClusterRole muster-viewer)",
    PODS: "list nodes and pods of all namespaces (ClusterRole muster-viewer)",
    DEVICES: (
        "list deviceclasses, resourceslices, resourceclaims and devicetaintrules "
        "(ClusterRole muster-viewer)"
    ),
    QUEUES: "list GangQueues (ClusterRole muster-viewer)",
    GANGS: "list Gangs of all namespaces (ClusterRole muster-viewer)",
}
"""The right without which a part is not shown."""


class UseReport(msgspec.Struct, frozen=True, rename="camel"):
    """What one holder has of a resource on a node; `reserved`: its pods are not there yet."""

    holder: str
    gang: str
    amount: int
    reserved: bool


class DrawnNode(msgspec.Struct, frozen=True, rename="camel"):
    """The devices of one resource on one node, and who has them."""

    name: str
    pool: str
    resource: str
    allocatable: int
    free: int
    off: str
    uses: tuple[UseReport, ...]


class RoomReport(msgspec.Struct, frozen=True, rename="camel"):
    """Nodes and queues; `lacks` names the rights without which a part is missing.

    `beside` says in words what there is of devices that no node has for itself.
    """

    nodes_known: bool
    nodes: tuple[DrawnNode, ...]
    all_nodes: int
    nodes_without: int
    queues: tuple[QueueReport, ...]
    queues_known: bool
    lacks: tuple[str, ...]
    unread: tuple[str, ...]
    beside: tuple[str, ...] = ()


async def read_room(reader: Reader, namespaces: Sequence[str]) -> RoomReport:
    """Read all that the caller may; of gangs those of one namespace where others may not be."""
    fallback = namespaces[0] if namespaces else reader.namespace
    found = await _snapshot(reader, fallback)
    found = await with_own_queues(reader, found, {queue_of(each) for each in found.gangs})
    found = await with_devices(reader, found)
    return await asyncio.to_thread(room_report, found)


async def _snapshot(reader: Reader, fallback: str) -> Snapshot:
    kinds = (GANGS, QUEUES, NODES, PODS)
    try:
        return await read_gangs_anywhere(reader, *kinds, fallback=fallback)
    except NotAllowed as refusal:
        # No gang at all may be listed: nodes and queues may still be.
        found = await _without_gangs(reader)
        return found.with_unread(Unread(GANGS, str(refusal)))


async def _without_gangs(reader: Reader) -> Snapshot:

    return await read_snapshot(reader, QUEUES, NODES, PODS, essential=())


def room_report(found: Snapshot) -> RoomReport:
    """Report on nodes with accelerators, or where there are none with CPU, and on the queues."""
    nodes, room = nodes_report(found), room_of(found)
    drawn = tuple(_drawn(nodes.nodes, room)) if room is not None else ()
    queues = queues_report(found)
    lacks = dict.fromkeys(_RIGHTS[each.kind] for each in found.unread if each.kind in _RIGHTS)
    return RoomReport(
        nodes_known=nodes.is_known,
        nodes=drawn[:MOST_NODES],
        all_nodes=len(drawn),
        nodes_without=nodes.nodes_without,
        queues=queues.queues[:MOST_QUEUES],
        queues_known=queues.is_known,
        lacks=tuple(lacks),
        unread=told(found.unread),
        beside=(*map(_shared, nodes.shared), *map(_far, nodes.far)),
    )


def _shared(each: SharedReport) -> str:
    parts = (
        f"; {name}: {of.used} used, {of.reserved} reserved, {of.free} free of {of.of}"
        for name, of in each.capacity.items()
    )
    room = f"{each.with_room} of {counted(each.devices, 'device')} with room"
    return f"{each.resource}, shared, pool {each.name}: {room}{''.join(parts)}"


def _far(each: FarReport) -> str:
    parts = f"{each.used} used, {each.reserved} reserved, {each.free} free of {each.devices}"
    return f"{each.resource}, pool {each.name}, reached by {counted(each.nodes, 'node')}: {parts}"


def _drawn(nodes: Sequence[NodeReport], room: Room) -> Iterator[DrawnNode]:
    uses = _uses(room)
    for each in nodes:
        yield DrawnNode(
            each.name,
            each.pool,
            each.resource,
            each.allocatable,
            each.free,
            each.off,
            tuple(uses.get((each.name, each.resource), ())),
        )


def _uses(room: Room) -> dict[tuple[str, str], list[UseReport]]:
    """Add up who has what, by node and resource; what is there comes before what is reserved."""
    sums: Counter[tuple[str, str, bool, str, str]] = Counter()
    for use in room.uses:
        gang = f"{use.holder.namespace}/{use.holder.name}" if _is_gang(use.holder.kind) else ""
        for resource, amount in use.requests:
            sums[use.node, resource, use.reserved, str(use.holder), gang] += amount * use.pods
    found: defaultdict[tuple[str, str], list[UseReport]] = defaultdict(list)
    for (node, resource, reserved, holder, gang), amount in sorted(sums.items()):
        if amount:
            found[node, resource].append(UseReport(holder, gang, amount, reserved))
    return found


def _is_gang(kind: str) -> bool:
    return kind in ("RayCluster", "AppWrapper")
