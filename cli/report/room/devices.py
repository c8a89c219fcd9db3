"""Counts claimable devices as resources of nodes, one for each DeviceClass, with their holders."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kube.codec.observed_pod import ObservedPod
from kube.devices.claims_of_pods import with_names
from kube.devices.class_requests import claimed_on, to_be_claimed
from kube.devices.device_index import DeviceIndex
from kube.devices.selectors import CelSelectors
from reservation.slots import SlotKind, vacant_slots
from scheduling.devices.class_resources import (
    ClassResources,
    Foreseeing,
    class_resource,
    with_classes,
)
from scheduling.devices.node_devices import NodeDevices
from scheduling.devices.node_index import DeviceFacts, NodeDevicesIndex, Pending
from scheduling.devices.selection import Rules
from scheduling.model.devices.in_use import Share
from scheduling.model.devices.resource_claim import ClaimSpec, ResourceClaim
from scheduling.model.devices.resource_slice import DeviceID
from scheduling.model.holder import Holder
from scheduling.model.node import Node
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
    """The nodes with their devices by class, who has these, and of what they were counted."""

    counted: ClassResources
    uses: tuple[DeviceUse, ...]
    devices: NodeDevicesIndex
    pending: Mapping[str, Pending]


def count_devices(
    nodes: NodeSnapshot,
    index: DeviceIndex,
    gangs: Iterable[PlacedGang],
    pods: Iterable[ObservedPod],
) -> CountedDevices:
    """Count the devices of each class; `pods` are those on nodes, of gangs and of others."""
    coming = list(_coming(gangs, index, {node.name: node for node in nodes.nodes}))
    pending: dict[str, Pending] = {}
    for _, node, claims in coming:
        pending[node] = (*pending.get(node, ()), (claims, 1))
    rules = Rules(index.classes, CelSelectors(), index.features)
    facts = DeviceFacts(tuple(index.slices.values()), index.taken_by_pool, rules, 0, pending)
    devices = NodeDevicesIndex(facts)
    counted = with_classes(nodes, devices, pending)
    had = _had(index, {each.uid: each.holder for each in pods})
    sums = Counter((*_of_claims(nodes, devices, had), *_promised(nodes, devices, coming)))
    uses = (DeviceUse(*use[:3], count, use[3]) for use, count in sums.items())
    mine = tuple(each for each in uses if each.resource in counted.names)
    return CountedDevices(counted, mine, devices, pending)


Coming = tuple[Holder, str, Claims]
"""A pod that is to come to a node, and what it claims there."""

Device = tuple[Holder, str, str, bool]
"""One device: who has it, its node, the resource of its class, whether it is only promised."""


def _coming(
    gangs: Iterable[PlacedGang], index: DeviceIndex, nodes: Mapping[str, Node]
) -> Iterator[Coming]:
    """Yield the pods that are pinned and not bound, then those whose slots no such pod has."""
    shared: set[tuple[str, str]] = set()
    for gang in gangs:
        for pod in gang.pods:
            if not pod.node and pod.settled_on and pod.alive:
                lacking = (each for _, each in with_names(pod, index) if each.allocation is None)
                own = to_be_claimed(pod, nodes.get(pod.settled_on), index)
                yield gang.holder, pod.settled_on, (*_once(lacking, shared), *own)
        asking = (pod for pod in gang.pods if pod.claims or index.gives_any(pod.extended))
        alike = {_kind(pod): pod for pod in asking}
        for slot, count in vacant_slots(gang.placement, gang.pods).items():
            like = alike.get(slot.kind)
            if like is None:
                continue
            claims, by_class = (
                with_names(like, index),
                claimed_on(like, nodes.get(slot.node), index),
            )
            own = (*(each.spec for asked, each in claims if asked.template), *by_class)
            yield from [(gang.holder, slot.node, own)] * count
            others = (c for asked, c in claims if not asked.template and c.allocation is None)
            yield gang.holder, slot.node, tuple(_once(others, shared))


def _once(claims: Iterable[ResourceClaim], known: set[tuple[str, str]]) -> Iterator[ClaimSpec]:
    """Yield what is claimed; what pods share is allocated once."""
    for each in claims:
        if each.key not in known:
            known.add(each.key)
            yield each.spec


def _kind(pod: ObservedPod) -> SlotKind | None:
    member = pod.member
    if member is None or member.shape is None:
        return None
    return SlotKind(member.pod_set, member.replica, member.shape.key)


def _promised(
    nodes: NodeSnapshot, devices: NodeDevicesIndex, coming: Iterable[Coming]
) -> Iterator[Device]:
    """Yield what the pods will get, in the order in which they are counted."""
    by_node: defaultdict[str, list[tuple[Holder, Claims]]] = defaultdict(list)
    for holder, node, claims in coming:
        by_node[node].append((holder, claims))
    foreseeing = Foreseeing(devices.rules)
    for name, pods in by_node.items():
        if name in nodes.index:
            found = devices.of(nodes.nodes[nodes.index[name]])
            for holder, ids in _one_by_one(found, pods, foreseeing):
                yield from _devices(holder, name, found, ids, devices.rules)


def _one_by_one(
    found: NodeDevices, pods: Iterable[tuple[Holder, Claims]], foreseeing: Foreseeing
) -> Iterator[tuple[Holder, frozenset[DeviceID]]]:
    """Yield what each of the pods on their way to a node will get."""
    before = found.in_use
    for holder, claims in pods:
        after = foreseeing.after_one(found, before, claims) or before
        yield holder, after.devices - before.devices
        before = after


def _devices(
    holder: Holder, name: str, found: NodeDevices, ids: frozenset[DeviceID], rules: Rules
) -> Iterator[Device]:
    for of_class, all_of_it in found.by_class(rules).items():
        yield from [(holder, name, class_resource(of_class), True)] * len(ids & all_of_it)


def _of_claims(
    nodes: NodeSnapshot, devices: NodeDevicesIndex, had: Mapping[DeviceID, Holder]
) -> Iterator[Device]:
    for node in nodes.nodes:
        found = devices.of(node)
        for of_class, ids in found.by_class(devices.rules).items():
            for each in ids & found.in_use.devices:
                yield had[each], node.name, class_resource(of_class), False


def _had(index: DeviceIndex, holders: Mapping[str, Holder]) -> Mapping[DeviceID, Holder]:
    """Return who has each device: the holder of the first pod that uses its claim.

    A share counts, too: of a device that is shared no more it takes all.
    """
    found = {key: _holder(claim, holders) for key, claim in index.claims.items()}
    return {
        taken.id if isinstance(taken, Share) else taken: found[key]
        for taken, key in index.taken.items()
    }


def _holder(claim: ResourceClaim, holders: Mapping[str, Holder]) -> Holder:
    users = (each for each in (claim.owner, *claim.reserved_for) if each in holders)
    uid = next(users, "")
    return holders[uid] if uid else Holder("ResourceClaim", claim.namespace, claim.name)
