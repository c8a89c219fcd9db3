"""Which of these nodes may the pod have, beside what is bound, nominated, passed and reserved?

- A pod of a gang passes one node: the one it is pinned to, where its gang's placement has a seat
  for it. A pin that Muster did not write leads to no seat.
- Any other pod passes where it fits beside everything. Where it would fit but for a reservation,
  evicting pods would not help, and the scheduler is told so.

What was passed a moment ago and is not yet seen bound is given as an argument (`Recall`), because
the scheduler already counts it. Texts are constants: one that changed between two attempts would
make the scheduler write the pod's condition, which wakes the pod for another attempt, and so on.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final

import numpy as np

from extender.lists import NodeList, places
from extender.snapshot import GuardedGang, Nomination, Seen, Snapshot, sitting
from kube.observed import Amounts, ObservedPod
from kube.slots import Slot, vacant_slots
from scheduling.columns import LIMIT, Columns, Mask, Positions, Traits
from scheduling.exclusive import is_exclusive
from scheduling.model import GangKey, Placement

RESERVED: Final = "reserved for a gang"
NO_SEAT: Final = "not a seat of its gang"
NO_ROOM: Final = "not enough room"
UNKNOWN: Final = "node not known yet"


@dataclass(frozen=True, slots=True)
class Passed:
    """A pod that was passed and may be on its way to one of these nodes.

    Kept are only nodes with reserved room (`at` in `traits`); for a pod of a gang its seat.
    """

    uid: str
    amounts: Amounts
    traits: Traits
    at: Positions
    seat: ObservedPod | None = None

    def positions(self, traits: Traits) -> Positions:
        """Where these nodes stand among the nodes of now."""
        if traits is self.traits:
            return self.at
        names = (self.traits.names[i] for i in self.at)
        known = (traits.index[name] for name in names if name in traits.index)
        return np.fromiter(known, dtype=np.intp)


@dataclass(frozen=True, slots=True)
class Recall:
    """What was passed and is not seen bound.

    `complete` is False where somebody else may have passed more (a predecessor, another
    replica): then no pod but a gang's own gets reserved nodes.
    """

    passed: tuple[Passed, ...] = ()
    complete: bool = True


NOTHING_PASSED = Recall()


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
    fits, free = _verdicts(asked, snapshot, recall)
    at = nodes.at(traits)
    passed = free[at]
    if passed.all():
        return Filtered(nodes, {}, {}, _remembered(asked, snapshot, at))
    names = nodes.names
    left = NodeList(list(compress(names, passed.tolist())), traits, at[passed])
    known, roomy = at >= 0, fits[at]
    return Filtered(
        left,
        _told(names, known & ~roomy, NO_ROOM),
        _told(names, roomy & ~passed, RESERVED) | _told(names, ~known, UNKNOWN),
        _remembered(asked, snapshot, at[passed]),
    )


def _verdicts(asked: Seen, snapshot: Snapshot, recall: Recall) -> tuple[Mask, Mask]:
    """Over all nodes: where the pod fits beside pods, and where beside reservations too.

    One place more than there are nodes: position -1 stands for a node that is not known.
    """
    nominated = list(_nominated(asked, snapshot))
    fits = _fitting(snapshot.bound, asked.pod.used, nominated)
    on_the_way = [
        (each.positions(snapshot.bound.traits), each.amounts)
        for each in recall.passed
        if each.seat is None and each.uid != asked.pod.uid
    ]
    free = fits & _fitting(snapshot.guarded, asked.pod.used, nominated + on_the_way)
    if not recall.complete:
        free &= ~snapshot.reserved
    return _with_unknown(fits), _with_unknown(free)


def _with_unknown(mask: Mask) -> Mask:
    return np.append(mask, False)


def _told(names: Sequence[str], mask: Mask, text: str) -> dict[str, str]:
    return dict.fromkeys((names[i] for i in np.flatnonzero(mask).tolist()), text)


def _remembered(asked: Seen, snapshot: Snapshot, at: Positions) -> Passed | None:
    near = at[snapshot.reserved[at]] if len(at) else at
    if not len(near):
        return None
    return Passed(asked.pod.uid, asked.pod.used, snapshot.bound.traits, near)


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
    if not _fits_seat(asked, node, seat, snapshot):
        return Filtered(NodeList([]), {node: NO_ROOM}, refused, None)
    at = places([node], snapshot.bound.traits)
    passed = Passed(asked.pod.uid, asked.pod.used, snapshot.bound.traits, at, asked.pod)
    return Filtered(NodeList([node]), {}, refused, passed)


def seat_of(
    pod: ObservedPod, gang: GuardedGang, node: str, snapshot: Snapshot, recall: Recall
) -> Amounts | None:
    """What the gang was promised for this pod on this node; None where there is no seat for it."""
    if not node or pod.member is None or node not in gang.seats:
        return None
    here = gang.seats[node]
    others = [
        *sitting(snapshot.members, pod.member.gang, gang, node),
        *_going_there(pod, pod.member.gang, gang, node, recall),
    ]
    left = vacant_slots(here, others)
    taken = left - vacant_slots(here, [*others, pod])
    return next((_requests(here, slot) for slot in taken), None)


def _going_there(
    pod: ObservedPod, key: GangKey, gang: GuardedGang, node: str, recall: Recall
) -> Iterable[ObservedPod]:
    for each in recall.passed:
        member = each.seat.member if each.seat is not None else None
        if (
            each.seat is not None
            and member is not None
            and each.uid != pod.uid
            and (member.gang, member.cluster_uid, member.pinned) == (key, gang.cluster_uid, node)
        ):
            yield each.seat


def _requests(placement: Placement, slot: Slot) -> Amounts:
    kind = slot.kind
    return next(
        each.requests
        for each in placement.assignments
        if (each.pod_set, each.replica, each.shape) == kind
    )


def _fits_seat(asked: Seen, node: str, seat: Amounts, snapshot: Snapshot) -> bool:
    """In its seat a pod needs no more than that nobody sits there; a larger one needs the rest."""
    promised = dict(seat)
    at = snapshot.bound.index[node]
    if all(amount <= promised.get(resource, 0) for resource, amount in asked.pod.used):
        return bool(_fitting(snapshot.bound, asked.pod.used, ())[at])
    here = np.array([at], dtype=np.intp)
    given_back = tuple((resource, -amount) for resource, amount in seat)
    return bool(_fitting(snapshot.guarded, asked.pod.used, [(here, given_back)])[at])


# ---- arithmetic


def _nominated(asked: Seen, snapshot: Snapshot) -> Iterable[tuple[Positions, Amounts]]:
    index = snapshot.bound.index
    for each in snapshot.nominations:
        at = index.get(each.node)
        if at is not None and _counts(each, asked, snapshot):
            yield np.array([at], dtype=np.intp), each.amounts


def nominated_on(node: str, asked: Seen, snapshot: Snapshot) -> Iterable[Amounts]:
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


def _fitting(
    columns: Columns, requests: Amounts, taken: Sequence[tuple[Positions, Amounts]]
) -> Mask:
    """Return where there is room for one pod once this is taken too.

    What is not asked for is not looked at, even where it is overcommitted (NodeResourcesFit).
    """
    mask = np.ones(len(columns.names), dtype=np.bool_)
    for resource, amount in requests:
        row = columns.row.get(resource)
        if amount <= 0 or (row is None and is_exclusive(resource)):
            continue  # a port or disk that no gang asks for is the scheduler's own matter
        if row is None:
            return np.zeros(len(columns.names), dtype=np.bool_)
        free = columns.free[row]
        others = [(at, dict(amounts).get(resource, 0)) for at, amounts in taken]
        if any(other for _, other in others):
            free = free.copy()
        for at, other in others:
            if other:
                free[at] -= min(other, LIMIT)
        mask &= free >= min(amount, LIMIT)
    return mask
