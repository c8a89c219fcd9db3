"""Counts devices by claim as resources of nodes, one for each DeviceClass, with who has them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kube.codec.observed_pod import ObservedPod
from kube.devices.claims_of_pods import ClaimNotReady, claims_of_pod
from kube.devices.device_index import DeviceIndex
from kube.devices.selectors import CelSelectors
from reservation.slots import SlotKind, vacant_slots
from scheduling.devices.node_index import DeviceFacts, NodeDevicesIndex, Pending
from scheduling.devices.selection import Rules
from scheduling.devices.class_resources import (
    ClassResources,
    class_resource,
    foreseen,
    with_classes,
)
from scheduling.model.devices.resource_claim import ResourceClaim
from scheduling.model.devices.resource_slice import DeviceID
from scheduling.model.holder import Holder
from scheduling.model.placement import Placement
from scheduling.model.shape.restrictions import Claims
from scheduling.state.node_snapshot import NodeSnapshot


class PlacedGang(NamedTuple):
    """A gang with a placement, and its pods, on nodes and not."""

    holder: Holder
    placement: Placement
    pods: Sequence[ObservedPod]


class DeviceUse(NamedTuple):
    """Devices of a class that one holder has on a node; `reserved` where they are promised."""

    holder: Holder
    node: str
    resource: str
    devices: int
    reserved: bool


class CountedDevices(NamedTuple):
    """The nodes with their devices by class, and who has these."""

    counted: ClassResources
    uses: tuple[DeviceUse, ...]


def count_devices(
    nodes: NodeSnapshot,
    index: DeviceIndex,
    gangs: Iterable[PlacedGang],
    pods: Iterable[ObservedPod],
) -> CountedDevices:
    """Count the devices of each class; `pods` are those on nodes, of gangs and of others."""
    coming = list(_coming(gangs, index))
    pending: dict[str, Pending] = {}
    for _, node, claims in coming:
        pending[node] = (*pending.get(node, ()), (claims, 1))
    rules = Rules(index.classes, CelSelectors())
    facts = DeviceFacts(tuple(index.slices.values()), tuple(index.taken), rules, 0, pending)
    devices = NodeDevicesIndex(facts)
    counted = with_classes(nodes, devices, pending)
    had = _had(index, {each.uid: each.holder for each in pods})
    sums = Counter((*_of_claims(nodes, devices, had), *_promised(nodes, devices, coming)))
    uses = (DeviceUse(*use[:3], count, use[3]) for use, count in sums.items())
    return CountedDevices(counted, tuple(each for each in uses if each.resource in counted.names))


Coming = tuple[Holder, str, Claims]
"""A pod that is to come to a node, and what it claims there."""

Device = tuple[Holder, str, str, bool]
"""One device: who has it, its node, the resource of its class, whether it is only promised."""


def _coming(gangs: Iterable[PlacedGang], index: DeviceIndex) -> Iterator[Coming]:
    """Yield the pods that are pinned and not bound, then those whose slots no such pod has."""
    for gang in gangs:
        for pod in gang.pods:
            if not pod.node and pod.settled_on and pod.alive:
                yield gang.holder, pod.settled_on, _claims(pod, index, unallocated=True)
        alike = {_kind(pod): pod for pod in gang.pods if pod.claims}
        for slot, count in vacant_slots(gang.placement, gang.pods).items():
            like = alike.get(slot.kind)
            new = _claims(like, index, unallocated=False) if like is not None else ()
            yield from [(gang.holder, slot.node, new)] * count


def _kind(pod: ObservedPod) -> SlotKind | None:
    member = pod.member
    if member is None or member.shape is None:
        return None
    return SlotKind(member.pod_set, member.replica, member.shape.key)


def _claims(pod: ObservedPod, index: DeviceIndex, *, unallocated: bool) -> Claims:
    """Return what a pod still claims, or what one like it would claim."""
    found = claims_of_pod(pod.namespace, pod.name, pod.uid, pod.claims, index)
    if isinstance(found, ClaimNotReady):
        return ()
    of_own = {each.claim for each in pod.claims if each.template}
    return tuple(
        each.spec
        for each in found
        if each.allocation is None or (not unallocated and each.name in of_own)
    )


def _promised(
    nodes: NodeSnapshot, devices: NodeDevicesIndex, coming: Iterable[Coming]
) -> Iterator[Device]:
    """Yield what the pods will get, in the order in which they are counted."""
    by_node: defaultdict[str, list[tuple[Holder, Claims]]] = defaultdict(list)
    for holder, node, claims in coming:
        by_node[node].append((holder, claims))
    for name, pods in by_node.items():
        if name not in nodes.index:
            continue
        found = devices.of(nodes.nodes[nodes.index[name]])
        before: frozenset[DeviceID] = frozenset()
        for at, (holder, _) in enumerate(pods, 1):
            so_far = tuple((claims, 1) for _, claims in pods[:at])
            after = foreseen(found, so_far, devices.rules)
            for of_class, ids in found.by_class(devices.rules).items():
                yield from [(holder, name, class_resource(of_class), True)] * len(
                    ids & (after - before)
                )
            before = after


def _of_claims(
    nodes: NodeSnapshot, devices: NodeDevicesIndex, had: Mapping[DeviceID, Holder]
) -> Iterator[Device]:
    for node in nodes.nodes:
        found = devices.of(node)
        for of_class, ids in found.by_class(devices.rules).items():
            for each in ids & found.in_use:
                yield had[each], node.name, class_resource(of_class), False


def _had(index: DeviceIndex, holders: Mapping[str, Holder]) -> Mapping[DeviceID, Holder]:
    """Return who has each device: the holder of the first pod that uses its claim."""
    found = {key: _holder(claim, holders) for key, claim in index.claims.items()}
    return {device: found[key] for device, key in index.taken.items()}


def _holder(claim: ResourceClaim, holders: Mapping[str, Holder]) -> Holder:
    users = (each for each in (claim.owner, *claim.reserved_for) if each in holders)
    uid = next(users, "")
    return holders[uid] if uid else Holder("ResourceClaim", claim.namespace, claim.name)
