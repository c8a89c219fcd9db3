"""Sums what the nodes offer, what pods use of it, and what gangs have reserved beside them.

It is read as the coordinator reads it: pods by `kube.codec.observed_pod`, reservations as the slots
of placements that no bound pod has taken.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from cli.report.room.devices import PlacedGang, count_devices
from cli.report.snapshot import NODES, PODS, Snapshot
from kube.codec import node as node_codec
from kube.codec.fields import InvalidObject
from kube.codec.observed_pod import ObservedPod, observe
from kube.codec.placement import placement_from_status
from kube.devices.device_index import DeviceIndex
from kube.objects.gang import Gang
from reservation.slots import SlotKind, kind_in, vacant_slots
from scheduling.devices.node_index import NodeDevicesIndex, Pending
from scheduling.model.amounts import Requests
from scheduling.model.gang import GangKey
from scheduling.model.holder import Holder, gang_holder
from scheduling.model.placement import Placement
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.node_table import node_snapshot_of


class Use(NamedTuple):
    """Equal pods of one holder on one node; `reserved` where none of them is there yet."""

    holder: Holder
    node: str
    requests: Requests
    pods: int
    reserved: bool


@dataclass(frozen=True, slots=True)
class Room:
    """The nodes with all that is used or reserved on them; `reserved` by node and resource.

    `classes` are the resources that stand for devices by claim. `claimed` are all such devices,
    with the pods that are to come to each node and claim some; None where they are not known.
    """

    nodes: NodeSnapshot
    reserved: Mapping[tuple[str, str], int]
    uses: tuple[Use, ...]
    classes: tuple[str, ...] = ()
    claimed: tuple[NodeDevicesIndex, Mapping[str, Pending]] | None = None


def room_of(found: Snapshot) -> Room | None:
    """Return the room on the nodes; None where nodes or pods could not be listed."""
    if found.lacks(NODES) or found.lacks(PODS):
        return None
    pods = [observe(each) for each in found.pods]
    uses = (*_bound(pods), *_promised(found.gangs, pods))
    reserved = _sums(each for each in uses if each.reserved)
    room = Room(_nodes(found, _sums(uses)), _by_cell(reserved), uses)
    return room if found.devices is None else _with_devices(room, found.devices, found, pods)


def _with_devices(room: Room, index: DeviceIndex, found: Snapshot, pods: list[ObservedPod]) -> Room:
    """Return the room with the devices of each class as one more resource."""
    known = {pod.uid for pod in pods}  # a pod may be bound between one list and the other
    waiting = [pod for pod in map(observe, found.unbound) if pod.uid not in known]
    members = _members([*pods, *waiting])
    placed = [
        PlacedGang(gang_holder(key_of(gang)), placement, own)
        for gang, placement, own in _placed(found.gangs, members)
    ]
    counts = count_devices(room.nodes, index, placed, pods)
    more = [Use(u.holder, u.node, ((u.resource, u.devices),), 1, u.reserved) for u in counts.uses]
    counted, reserved = counts.counted, {**room.reserved, **counts.counted.reserved}
    claimed = counts.devices, counts.pending
    return Room(counted.nodes, reserved, (*room.uses, *more), counted.names, claimed)


def _nodes(found: Snapshot, used: Mapping[str, Mapping[str, int]]) -> NodeSnapshot:
    return node_snapshot_of(map(node_codec.node, found.nodes), used)


def _sums(uses: Iterable[Use]) -> dict[str, dict[str, int]]:
    """Add up what is used, by node and resource."""
    found: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for use in uses:
        sums = found[use.node]
        for resource, amount in use.requests:
            sums[resource] = sums.get(resource, 0) + amount * use.pods
    return found


def _by_cell(sums: Mapping[str, Mapping[str, int]]) -> dict[tuple[str, str], int]:
    return {
        (node, resource): amount
        for node, amounts in sums.items()
        for resource, amount in amounts.items()
    }


def key_of(gang: Gang) -> GangKey:
    """Return namespace and name of a gang."""
    return GangKey(gang.metadata.namespace, gang.metadata.name)


def placement_of(gang: Gang) -> Placement | None:
    """Return what is promised to a gang; None where nothing is, or it cannot be read."""
    written = gang.status.placement
    if written is None:
        return None
    try:
        return placement_from_status(written)
    except InvalidObject:
        return None


def _bound(pods: Iterable[ObservedPod]) -> list[Use]:
    """Count equal pods of a holder on a node once."""
    counts = Counter((each.holder, each.node, each.used) for each in pods if each.holds)
    return [Use(*use, pods=count, reserved=False) for use, count in counts.items()]


def _promised(gangs: Iterable[Gang], pods: Iterable[ObservedPod]) -> list[Use]:
    """Return the reservations: the slots of each gang that none of its bound pods has taken."""
    found: list[Use] = []
    for gang, placement, own in _placed(gangs, _members(pods)):
        found += _vacant(key_of(gang), placement, own)
    return found


Members = Mapping[tuple[GangKey, str], list[ObservedPod]]
"""Pods by their gang and the uid of its Ray cluster."""


def _members(pods: Iterable[ObservedPod]) -> Members:
    members: defaultdict[tuple[GangKey, str], list[ObservedPod]] = defaultdict(list)
    for pod in pods:
        if pod.member is not None:
            members[pod.member.gang, pod.member.cluster_uid].append(pod)
    return members


def _placed(
    gangs: Iterable[Gang], members: Members
) -> Iterator[tuple[Gang, Placement, list[ObservedPod]]]:
    """Yield the gangs with a placement, and their pods."""
    for gang in gangs:
        placement = placement_of(gang)
        if placement is not None:
            yield gang, placement, members.get((key_of(gang), gang.spec.ray_cluster_uid), [])


def _vacant(gang: GangKey, placement: Placement, pods: list[ObservedPod]) -> list[Use]:
    requests: dict[SlotKind, Requests] = {
        kind_in(each): each.requests for each in placement.assignments
    }
    holder = gang_holder(gang)
    return [
        Use(holder, slot.node, requests[slot.kind], pods=count, reserved=True)
        for slot, count in vacant_slots(placement, pods).items()
    ]
