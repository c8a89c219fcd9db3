"""Filters nodes: bound, nominated, passed and reserved pods leave room for this one.

- A pod of a gang passes one node: the one it is pinned to, where its gang's placement has a seat
  for it. A pin that Muster did not write leads to no seat.
- Any other pod passes where it fits beside everything. Where it would fit but for a reservation,
  evicting pods would not help, and the scheduler is told so.

What was passed before and is not yet seen bound is given as an argument (`Recall`), because the
scheduler already counts it. Texts are constants: one that changed between two attempts would
make the scheduler write the pod's condition, which wakes the pod for another attempt, and so on.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final

import numpy as np

from extender.memory.in_flight_room import NOTHING_PASSED, Passed, Recall
from extender.snapshot import GuardedGang, Nomination, Seen, Snapshot, sitting
from extender.wire.node_lists import NodeList, places
from kube.codec.observed_pod import ObservedPod
from reservation.slots import Slot, vacant_slots
from scheduling.filters.node_ports import left
from scheduling.model.amounts import LIMIT, Amounts, Mask, Positions, Requests
from scheduling.model.gang import GangKey
from scheduling.model.host_ports import is_port
from scheduling.model.placement import Placement
from scheduling.state.node_snapshot import NodeAttributes, NodeSnapshot

RESERVED: Final = "reserved for a gang"
NO_SEAT: Final = "not a seat of its gang"
NO_ROOM: Final = "not enough room"
UNKNOWN: Final = "node not known yet"


@dataclass(frozen=True, slots=True)
class Filtered:
    """The answer, and what has to be remembered of it."""

    left: NodeList
    failed: Mapping[str, str]
    unresolvable: Mapping[str, str]
    remember: Passed | None

    @property
    def passed(self) -> Sequence[str]:
        """The names of the nodes that are left."""
        return self.left.names


def filter_nodes(
    asked: Seen, nodes: NodeList, snapshot: Snapshot, recall: Recall = NOTHING_PASSED
) -> Filtered:
    """Judge the nodes for a pod."""
    gang = snapshot.gang_of(asked.pod)
    if gang is not None:
        return _for_a_member(asked, gang, nodes.names, snapshot, recall)
    return _for_others(asked, nodes, snapshot, recall)


# ---- pods of no gang


def _for_others(asked: Seen, nodes: NodeList, snapshot: Snapshot, recall: Recall) -> Filtered:
    traits = snapshot.bound.traits
    at, requests = nodes.at(traits), judged(asked.pod, snapshot)
    passed = _passing(asked, requests, at, snapshot, recall)
    if passed.all():
        return Filtered(nodes, {}, {}, _remembered(asked, traits, at))
    left, refused = nodes.picked(passed), nodes.picked(~passed)
    failed, unresolvable = _refused(asked, requests, refused, snapshot)
    return Filtered(left, failed, unresolvable, _remembered(asked, traits, left.at(traits)))


def _passing(
    asked: Seen, requests: Requests, at: Positions, snapshot: Snapshot, recall: Recall
) -> Mask:
    """Say of each of the positions whether the pod passes; never where no node is known (-1).

    Pods on their way count where room is reserved; elsewhere the scheduler sees to it itself.
    """
    if not snapshot.bound.names:
        return np.zeros(len(at), dtype=np.bool_)
    taken = _nominated(asked, at, snapshot)
    passing = _fitting(snapshot.guarded, requests, at, taken)
    passing &= at >= 0
    near = np.flatnonzero(passing & snapshot.reserved[at])
    if len(near):
        passing[near] = _beside_others(asked, requests, at[near], snapshot, recall)
    return passing


def _beside_others(
    asked: Seen, requests: Requests, at: Positions, snapshot: Snapshot, recall: Recall
) -> Mask:
    """Say at which positions there is room beside pods on their way; nowhere while in doubt."""
    if not recall.complete:
        return np.zeros(len(at), dtype=np.bool_)
    taken = _nominated(asked, at, snapshot)
    for resource, amounts in _underway(requests, at, snapshot, recall):
        taken[resource] = taken.get(resource, 0) + amounts
    return _fitting(snapshot.guarded, requests, at, taken)


def _refused(
    asked: Seen, requests: Requests, refused: NodeList, snapshot: Snapshot
) -> tuple[dict[str, str], dict[str, str]]:
    """Say of refused nodes what stands against them: those that failed, those for good."""
    names, at = refused.names, refused.at(snapshot.bound.traits)
    known = at >= 0
    there = at[known]
    roomy = known.copy()
    roomy[known] = _fitting(snapshot.bound, requests, there, _nominated(asked, there, snapshot))
    reserved, full = _told(names, known & roomy, RESERVED), _told(names, known & ~roomy, NO_ROOM)
    return full, reserved | _told(names, ~known, UNKNOWN)


def _told(names: Sequence[str], where: Mask, text: str) -> dict[str, str]:
    return dict.fromkeys(compress(names, where.tolist()), text)


def _remembered(asked: Seen, traits: NodeAttributes, at: Positions) -> Passed | None:
    return Passed(asked.pod.uid, asked.pod.used, traits, at) if len(at) else None


# ---- pods of a gang


def _for_a_member(
    asked: Seen, gang: GuardedGang, names: Sequence[str], snapshot: Snapshot, recall: Recall
) -> Filtered:
    node = asked.pod.member.pinned if asked.pod.member else ""
    seat = seat_of(asked.pod, gang, node, snapshot, recall)
    refused = dict.fromkeys(names, NO_SEAT)
    if seat is None or node not in refused or node not in snapshot.bound.index:
        return Filtered(NodeList([]), {}, refused, None)
    del refused[node]
    if not _fits_seat(asked, node, seat, snapshot, recall):
        return Filtered(NodeList([]), {node: NO_ROOM}, refused, None)
    at, beyond = places([node], snapshot.bound.traits), _beyond(seat, asked.pod.used)
    passed = Passed(asked.pod.uid, beyond, snapshot.bound.traits, at, asked.pod)
    return Filtered(NodeList([node]), {}, refused, passed)


def seat_of(
    pod: ObservedPod, gang: GuardedGang, node: str, snapshot: Snapshot, recall: Recall
) -> Requests | None:
    """What the gang was promised for this pod on this node; None where there is no seat for it."""
    if not node or pod.member is None or node not in gang.seats:
        return None
    here = gang.seats[node]
    others = [
        *sitting(snapshot.members, pod.member.gang, gang, node),
        *_going_there(pod.member.gang, gang, node, recall),
    ]
    left = vacant_slots(here, others)
    taken = left - vacant_slots(here, [*others, pod])
    return next((_requests(here, slot) for slot in taken), None)


def _going_there(
    key: GangKey, gang: GuardedGang, node: str, recall: Recall
) -> Iterable[ObservedPod]:
    """The pods of this very gang that are on their way to seats on the node, by name."""
    seats = recall.underway.seats_on(node)
    mine = (
        p
        for p in seats
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


def _beyond(seat: Requests, used: Requests) -> Requests:
    """What a pod takes that its seat does not keep for it."""
    promised = dict(seat)
    more = ((resource, amount - promised.get(resource, 0)) for resource, amount in used)
    return tuple((resource, amount) for resource, amount in more if amount > 0)


def _fits_seat(asked: Seen, node: str, seat: Requests, snapshot: Snapshot, recall: Recall) -> bool:
    """In its seat a pod needs no more than that nobody sits there; a larger one needs the rest."""
    at, requests = places([node], snapshot.bound.traits), judged(asked.pod, snapshot)
    if not _beyond(seat, asked.pod.used):
        return bool(_fitting(snapshot.bound, requests, at, {})[0])
    taken = dict(_underway(requests, at, snapshot, recall))
    for resource, amount in seat:
        taken[resource] = taken.get(resource, np.zeros(1, dtype=np.int64)) - amount
    return bool(_fitting(snapshot.guarded, requests, at, taken)[0])


# ---- arithmetic


def _nominated(asked: Seen, at: Positions, snapshot: Snapshot) -> dict[str, Amounts]:
    """What nominated pods take by resource at the positions, as far as it counts for this pod."""
    index, taken = snapshot.bound.index, dict[str, Amounts]()
    for each in snapshot.nominations:
        place = index.get(each.node)
        if place is not None and _counts(each, asked, snapshot):
            for resource, amount in each.amounts:
                column = taken.setdefault(resource, np.zeros(len(index), dtype=np.int64))
                column[place] = min(int(column[place]) + amount, LIMIT)  # all there can be
    return {resource: column[at] for resource, column in taken.items()}


def nominated_on(node: str, asked: Seen, snapshot: Snapshot) -> Iterable[Requests]:
    """What nominated pods take on one node, as far as it counts against this pod."""
    for each in snapshot.nominations:
        if each.node == node and _counts(each, asked, snapshot):
            yield each.amounts


def _counts(nomination: Nomination, asked: Seen, snapshot: Snapshot) -> bool:
    """As kube-scheduler counts them; but the room of a gang's pod is that of its seat."""
    if nomination.uid == asked.pod.uid or nomination.priority < asked.priority:
        return False
    seen = snapshot.pods.get(nomination.uid)
    return seen is None or snapshot.gang_of(seen.pod) is None


def _underway(
    requests: Requests, at: Positions, snapshot: Snapshot, recall: Recall
) -> Iterable[tuple[str, Amounts]]:
    """What passed pods may take of what is asked for, by resource at the positions."""
    for resource, _ in requests:
        taken = recall.underway.taken(resource, snapshot.bound.traits, at)
        if taken is not None:
            yield resource, taken


def judged(pod: ObservedPod, snapshot: Snapshot) -> Requests:
    """What a pod takes that is looked at here: host ports only where a gang was promised them."""
    return tuple(
        (resource, amount)
        for resource, amount in pod.used
        if amount > 0 and (not is_port(resource) or resource in snapshot.ports)
    )


def _free(columns: NodeSnapshot, resource: str, at: Positions) -> Amounts | None:
    """What is free of a resource at the positions, to be written; None where no node has any."""
    if is_port(resource):
        return left(resource, columns.ports, columns.index)[at]
    row = columns.row.get(resource)
    return None if row is None else columns.free[row][at]


def _fitting(
    columns: NodeSnapshot, requests: Requests, at: Positions, taken: Mapping[str, Amounts]
) -> Mask:
    """Return at which of the positions there is room for one pod once this is taken there too.

    What is not asked for is not looked at, even where it is overcommitted (NodeResourcesFit).
    """
    mask = np.ones(len(at), dtype=np.bool_)
    for resource, amount in requests:
        free = _free(columns, resource, at)
        if free is None:
            return np.zeros(len(at), dtype=np.bool_)
        if resource in taken:
            free -= taken[resource]
        mask &= free >= min(amount, LIMIT)
    return mask
