"""Keeps the nodes with room beside bound, nominated, passed and reserved pods (verb `filter`).

- A pod of a gang passes one node: the one it is pinned to, where its gang's placement has a slot
  for it. A pin that Muster did not write leads to no slot.
- An extended resource of which a node lists none is not counted there: its devices give it, which
  kube-scheduler has judged.
- Any other pod passes where it fits beside all of them, and leaves gangs the devices that they are
  to get by claim (`extender/devices/guard.py`). Where it would fit but for a reservation, evicting
  pods would not help, and the answer says so (FailedAndUnresolvable).

Passed pods that are not seen bound yet are an argument (`InFlight`), because kube-scheduler counts
them already. Texts are constants: a text that changed between two attempts would make the scheduler
write the pod's condition, which wakes the pod for another attempt, and so on.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final

import numpy as np

from extender.devices.guard import may_take_devices
from extender.memory.in_flight_room import NONE_IN_FLIGHT, InFlight, PassedPod
from extender.snapshot import GuardedGang, Nomination, Snapshot, WatchedPod, bound_members
from extender.wire.node_lists import NodeList, places
from kube.codec.observed_pod import ObservedPod
from reservation.slots import Slot, vacant_slots
from scheduling.filters.node_ports import left
from scheduling.model.amounts import LIMIT, Amounts, Mask, Positions, Requests, is_extended
from scheduling.model.gang import GangKey
from scheduling.model.placement import Placement
from scheduling.model.shape.host_ports import is_port
from scheduling.state.node_snapshot import NodeSnapshot

RESERVED: Final = "reserved for a gang"
NO_SLOT: Final = "not a slot of its gang"
NO_ROOM: Final = "not enough room"
DEVICES: Final = "devices reserved for a gang"
UNKNOWN: Final = "node not known yet"


@dataclass(frozen=True, slots=True)
class Filtered:
    """The answer, and the pod to be remembered as passed."""

    left: NodeList
    failed: Mapping[str, str]
    unresolvable: Mapping[str, str]
    remember: PassedPod | None

    @property
    def passed(self) -> Sequence[str]:
        """The names of the nodes that are left."""
        return self.left.names


def filter_nodes(
    asked: WatchedPod, nodes: NodeList, snapshot: Snapshot, in_flight: InFlight = NONE_IN_FLIGHT
) -> Filtered:
    """Judge the nodes for a pod."""
    gang = snapshot.gang_of(asked.pod)
    if gang is not None:
        return _for_a_member(asked, gang, nodes.names, snapshot, in_flight)
    return _for_others(asked, nodes, snapshot, in_flight)


# ---- pods of no gang


def _for_others(
    asked: WatchedPod, nodes: NodeList, snapshot: Snapshot, in_flight: InFlight
) -> Filtered:
    traits = snapshot.bound.traits
    at, requests = nodes.at(traits), judged(asked.pod, snapshot)
    roomy = _passes(asked, requests, at, snapshot, in_flight)
    passed = roomy & ~devices_kept(asked, at, roomy, snapshot, in_flight)
    if passed.all():
        return Filtered(nodes, {}, {}, _remembered(asked, at, snapshot.bound))
    left, refused = nodes.picked(passed), nodes.picked(~roomy)
    failed, unresolvable = _refused(asked, requests, refused, snapshot)
    kept = roomy & ~passed
    if kept.any():
        unresolvable |= _told(nodes.names, kept, DEVICES)
    return Filtered(left, failed, unresolvable, _remembered(asked, left.at(traits), snapshot.bound))


def devices_kept(
    asked: WatchedPod, at: Positions, where: Mask, snapshot: Snapshot, in_flight: InFlight
) -> Mask:
    """Say at which positions, of some, devices are kept from the pod; nearly always at none."""
    kept = np.zeros(len(at), dtype=np.bool_)
    if may_take_devices(asked.pod) and snapshot.devices.coming:
        traits, there = snapshot.bound.traits, at[where]
        passed = tuple(in_flight.room.claiming(traits, there)) if in_flight.complete else None
        kept[where] = snapshot.devices.kept_from(asked.pod, traits.nodes, there, passed)
    return kept


def _passes(
    asked: WatchedPod, requests: Requests, at: Positions, snapshot: Snapshot, in_flight: InFlight
) -> Mask:
    """Say for each position whether the pod passes; never for an unknown node (-1).

    In-flight pods count where room is reserved; elsewhere kube-scheduler counts them itself.
    """
    if not snapshot.bound.names:
        return np.zeros(len(at), dtype=np.bool_)
    taken = _nominated(asked, at, snapshot)
    passes = _fitting(snapshot.guarded, requests, at, taken)
    passes &= at >= 0
    near = np.flatnonzero(passes & snapshot.reserved[at])
    if len(near):
        passes[near] = _beside_others(asked, requests, at[near], snapshot, in_flight)
    return passes


def _beside_others(
    asked: WatchedPod, requests: Requests, at: Positions, snapshot: Snapshot, in_flight: InFlight
) -> Mask:
    """Say at which positions there is room beside in-flight pods; nowhere while in doubt."""
    if not in_flight.complete:
        return np.zeros(len(at), dtype=np.bool_)
    taken = _nominated(asked, at, snapshot)
    for resource, amounts in _in_flight_amounts(requests, at, snapshot, in_flight):
        taken[resource] = taken.get(resource, 0) + amounts
    return _fitting(snapshot.guarded, requests, at, taken)


def _refused(
    asked: WatchedPod, requests: Requests, refused: NodeList, snapshot: Snapshot
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the text of each refused node: FailedNodes, FailedAndUnresolvableNodes."""
    names, at = refused.names, refused.at(snapshot.bound.traits)
    known = at >= 0
    there = at[known]
    roomy = known.copy()
    roomy[known] = _fitting(snapshot.bound, requests, there, _nominated(asked, there, snapshot))
    reserved, full = _told(names, known & roomy, RESERVED), _told(names, known & ~roomy, NO_ROOM)
    return full, reserved | _told(names, ~known, UNKNOWN)


def _told(names: Sequence[str], where: Mask, text: str) -> dict[str, str]:
    return dict.fromkeys(compress(names, where.tolist()), text)


def _remembered(asked: WatchedPod, at: Positions, columns: NodeSnapshot) -> PassedPod | None:
    if not len(at):
        return None
    claiming = _claiming(asked.pod, at, columns)
    return PassedPod(asked.pod.uid, asked.pod.used, columns.traits, at, claiming=claiming)


def _claiming(pod: ObservedPod, at: Positions, columns: NodeSnapshot) -> ObservedPod | None:
    """Return the pod if it may take devices on one of these nodes."""
    given = (resource for resource, amount in pod.used if amount > 0 and is_extended(resource))
    lacks = any(bool(_none_listed(columns, resource, at).any()) for resource in given)
    return pod if pod.claims or lacks else None


def _none_listed(columns: NodeSnapshot, resource: str, at: Positions) -> Mask:
    """Say at which positions no unit of a resource is listed: devices give it there."""
    row = columns.row.get(resource)
    if row is None:
        return np.ones(len(at), dtype=np.bool_)
    listed: Mask = columns.allocatable[row][at] > 0
    return ~listed


# ---- pods of a gang


def _for_a_member(
    asked: WatchedPod,
    gang: GuardedGang,
    names: Sequence[str],
    snapshot: Snapshot,
    in_flight: InFlight,
) -> Filtered:
    node = asked.pod.member.pinned if asked.pod.member else ""
    slot = slot_requests(asked.pod, gang, node, snapshot, in_flight)
    refused = dict.fromkeys(names, NO_SLOT)
    if slot is None or node not in refused or node not in snapshot.bound.index:
        return Filtered(NodeList([]), {}, refused, None)
    del refused[node]
    if not _fits_slot(asked, node, slot, snapshot, in_flight):
        return Filtered(NodeList([]), {node: NO_ROOM}, refused, None)
    at, beyond = places([node], snapshot.bound.traits), _beyond(slot, asked.pod.used)
    claiming = _claiming(asked.pod, at, snapshot.bound)
    passed = PassedPod(asked.pod.uid, beyond, snapshot.bound.traits, at, asked.pod, claiming)
    return Filtered(NodeList([node]), {}, refused, passed)


def slot_requests(
    pod: ObservedPod, gang: GuardedGang, node: str, snapshot: Snapshot, in_flight: InFlight
) -> Requests | None:
    """Return the requests of the slot for this pod on this node; None where there is none."""
    if not node or pod.member is None or node not in gang.slots:
        return None
    here = gang.slots[node]
    others = [
        *bound_members(snapshot.members, pod.member.gang, gang, node),
        *_members_on_their_way(pod.member.gang, gang, node, in_flight),
    ]
    left = vacant_slots(here, others)
    taken = left - vacant_slots(here, [*others, pod])
    return next((_requests(here, slot) for slot in taken), None)


def _members_on_their_way(
    key: GangKey, gang: GuardedGang, node: str, in_flight: InFlight
) -> Iterable[ObservedPod]:
    """The in-flight pods of this very gang that were passed for slots on the node, by name."""
    slots = in_flight.room.members_on(node)
    mine = (
        p
        for p in slots
        if p.member and (p.member.gang, p.member.cluster_uid) == (key, gang.cluster_uid)
    )
    return sorted(mine, key=lambda pod: pod.name)


def _requests(placement: Placement, slot: Slot) -> Requests:
    kind = slot.kind
    return next(
        each.requests
        for each in placement.assignments
        if (each.pod_set, each.replica, each.shape) == kind
    )


def _beyond(slot: Requests, used: Requests) -> Requests:
    """What a pod takes beyond what its slot keeps for it."""
    promised = dict(slot)
    more = ((resource, amount - promised.get(resource, 0)) for resource, amount in used)
    return tuple((resource, amount) for resource, amount in more if amount > 0)


def _fits_slot(
    asked: WatchedPod, node: str, slot: Requests, snapshot: Snapshot, in_flight: InFlight
) -> bool:
    """A pod fits its slot where bound pods leave room; a larger one needs the rest free as well."""
    at, requests = places([node], snapshot.bound.traits), judged(asked.pod, snapshot)
    if not _beyond(slot, asked.pod.used):
        return bool(_fitting(snapshot.bound, requests, at, {})[0])
    taken = dict(_in_flight_amounts(requests, at, snapshot, in_flight))
    for resource, amount in slot:
        taken[resource] = taken.get(resource, np.zeros(1, dtype=np.int64)) - amount
    return bool(_fitting(snapshot.guarded, requests, at, taken)[0])


# ---- arithmetic


def _nominated(asked: WatchedPod, at: Positions, snapshot: Snapshot) -> dict[str, Amounts]:
    """What nominated pods take by resource at the positions, as far as it counts for this pod."""
    index, taken = snapshot.bound.index, dict[str, Amounts]()
    for each in snapshot.nominations:
        place = index.get(each.node)
        if place is not None and _counts(each, asked, snapshot):
            for resource, amount in each.amounts:
                column = taken.setdefault(resource, np.zeros(len(index), dtype=np.int64))
                column[place] = min(int(column[place]) + amount, LIMIT)  # all there can be
    return {resource: column[at] for resource, column in taken.items()}


def nominated_on(node: str, asked: WatchedPod, snapshot: Snapshot) -> Iterable[Requests]:
    """What nominated pods take on one node, as far as it counts against this pod."""
    for each in snapshot.nominations:
        if each.node == node and _counts(each, asked, snapshot):
            yield each.amounts


def _counts(nomination: Nomination, asked: WatchedPod, snapshot: Snapshot) -> bool:
    """As kube-scheduler counts nominated pods; a gang's pod counts by its slot instead."""
    if nomination.uid == asked.pod.uid or nomination.priority < asked.priority:
        return False
    seen = snapshot.pods.get(nomination.uid)
    return seen is None or snapshot.gang_of(seen.pod) is None


def _in_flight_amounts(
    requests: Requests, at: Positions, snapshot: Snapshot, in_flight: InFlight
) -> Iterable[tuple[str, Amounts]]:
    """What in-flight pods may take of the requested resources, at the positions."""
    for resource, _ in requests:
        taken = in_flight.room.taken(resource, snapshot.bound.traits, at)
        if taken is not None:
            yield resource, taken


def judged(pod: ObservedPod, snapshot: Snapshot) -> Requests:
    """The requests that are checked here: of host ports only those that a gang was promised."""
    return tuple(
        (resource, amount)
        for resource, amount in pod.used
        if amount > 0 and (not is_port(resource) or resource in snapshot.ports)
    )


def _free(columns: NodeSnapshot, resource: str, at: Positions) -> Amounts | None:
    """Free amounts of a resource at the positions, as a copy; None where no node has any."""
    if is_port(resource):
        return left(resource, columns.ports, columns.index)[at]
    row = columns.row.get(resource)
    return None if row is None else columns.free[row][at]


def _fitting(
    columns: NodeSnapshot, requests: Requests, at: Positions, taken: Mapping[str, Amounts]
) -> Mask:
    """Return at which positions one pod fits once `taken` is taken there too.

    Resources without a request are not checked, even where they are overcommitted
    (NodeResourcesFit).
    """
    mask = np.ones(len(at), dtype=np.bool_)
    for resource, amount in requests:
        free = _free(columns, resource, at)
        if free is None:
            if is_extended(resource):
                continue
            return np.zeros(len(at), dtype=np.bool_)
        if resource in taken:
            free -= taken[resource]
        fits = free >= min(amount, LIMIT)
        if is_extended(resource):
            fits |= _none_listed(columns, resource, at)
        mask &= fits
    return mask
