"""Keeps the slots of a multi-host replica together: they are moved, cut and dropped as a whole."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kube.codec.observed_pod import ObservedPod
from reservation.release_order import rebuilt
from reservation.slots import (
    Slot,
    SlotKind,
    Slots,
    kind_of,
    promised,
    slots_of,
    taken_slots,
    vacant_slots,
)
from scheduling.model.placement import Placement
from scheduling.state.bounded_cache import while_alive

Replica = tuple[str, str]
"""Pod set and name; the name is empty where a replica is one pod."""


def trim(
    placement: Placement,
    pods: Sequence[ObservedPod],
    counts: Mapping[str, int],
    sent: Mapping[str, str],
) -> Placement:
    """Give up vacant slots of pod sets that have more slots than they may have pods.

    `counts` (pod set -> pods wanted) follows the RayCluster: scaling down ends reservations, of
    replicas that are gone first. What a pod that is being deleted holds is none of its pods' any
    more: the next one may be there beside it. `sent` (uid -> node, empty where that is not known)
    are gated pods whose release may still arrive: their slots are kept until it has, or cannot any
    more.
    """
    total = _by_pod_set(promised(placement))
    if all(count <= counts.get(pod_set, 0) for pod_set, count in total.items()):
        return placement
    slots, vacant, there = slots_of(placement), vacant_slots(placement, pods), _replicas_of(pods)
    left_soon = vacant_slots(placement, (pod for pod in pods if pod.alive))
    total -= _by_pod_set(left_soon - vacant)
    vacant -= slots_on_the_way(sent, pods, vacant)
    for slot in sorted(vacant, key=lambda slot: (slot.kind[:2] not in there, slot), reverse=True):
        pod_set = slot.kind.pod_set
        give_up = max(0, min(vacant[slot], total[pod_set] - counts.get(pod_set, 0)))
        slots[slot] -= give_up
        total[pod_set] -= give_up
    return rebuilt(placement, slots)


def _by_pod_set(slots: Mapping[Slot, int]) -> Counter[str]:
    total: Counter[str] = Counter()
    for slot, count in slots.items():
        total[slot.kind.pod_set] += count
    return total


def slots_on_the_way(sent: Mapping[str, str], pods: Sequence[ObservedPod], vacant: Slots) -> Slots:
    """The slots that these pods may be on their way to; all of its kind where that is not known."""
    kept: Slots = Counter()
    for pod in pods if sent else ():
        kind, node = kind_of(pod), sent.get(pod.uid)
        if kind is None or node is None or not (pod.gated and pod.alive):
            continue
        if node:
            kept[Slot(kind, node)] += 1
        else:
            kept |= Counter({slot: n for slot, n in vacant.items() if slot.kind == kind})
    return kept


def _replicas_of(pods: Iterable[ObservedPod]) -> set[Replica]:
    """The replicas of which there is a pod."""
    members = (pod.member for pod in pods if not pod.terminal)
    return {(member.pod_set, member.replica) for member in members if member is not None}


def without_halves(
    placement: Placement,
    pods: Sequence[ObservedPod],
    hosts: Mapping[str, int],
    sent: Mapping[str, str],
) -> Placement:
    """The placement without what is vacant of replicas that have lost slots.

    A replica is whole or nothing: KubeRay deletes what is left of one, so no pod comes for the
    slots that are left. A pod that was released under a placement that is gone needs no slot.
    `hosts` (pod set -> pods of a replica) says when it is whole; where that is one, a name that
    pods may bear means nothing. `sent` is as in `trim`.
    """
    named = named_replicas(placement)
    if not named:
        return placement
    vacant, homeless = taken_slots(placement, pods)
    there = Counter(each.member and (each.member.pod_set, each.member.replica) for each in homeless)
    sizes = {
        each: (make.total() + there[each], hosts.get(each[0], 1)) for each, make in named.items()
    }
    halves = {each for each, (slots, whole) in sizes.items() if whole > 1 and slots != whole}
    if not halves:
        return placement
    slots, on_the_way = slots_of(placement), slots_on_the_way(sent, pods, vacant)
    for slot, count in (vacant - on_the_way).items():
        slots[slot] -= count if slot.kind[:2] in halves else 0
    return rebuilt(placement, slots)


def handed_on(placement: Placement, pods: Sequence[ObservedPod]) -> Placement:
    """The placement with the slots of replicas that are gone in the names of their successors.

    A replica that lost a pod is made again as a whole, under a new name. It takes the slots of one
    of the same make that has no pod any more, in order of name.
    """
    named = named_replicas(placement)
    if not named:
        return placement
    there = _replicas_of(pods)
    orphans = {each: make for each, make in named.items() if each not in there}
    kinds = (kind_of(pod) for pod in pods if orphans and pod.gated and pod.alive)
    new = _by_replica((kind, 1) for kind in kinds if kind is not None and kind[:2] not in named)
    heirs = {}
    for (pod_set, name), make in sorted(new.items()):
        alike = (each for each in orphans if each[0] == pod_set and orphans[each] == make)
        orphan = min(alike, default=None)
        if orphan is not None:
            del orphans[orphan]
            heirs[orphan] = name
    return _renamed(placement, heirs)


@while_alive
def named_replicas(placement: Placement) -> Mapping[Replica, Counter[str]]:
    """The replicas of several pods that a placement names."""
    return _by_replica((slot.kind, count) for slot, count in promised(placement).items())


def _by_replica(counted: Iterable[tuple[SlotKind, int]]) -> dict[Replica, Counter[str]]:
    """How many pods of which shapes each replica has that has a name."""
    found: defaultdict[Replica, Counter[str]] = defaultdict(Counter)
    for kind, count in counted:
        if kind.replica:
            found[kind.pod_set, kind.replica][kind.shape] += count
    return dict(found)


def _renamed(placement: Placement, heirs: Mapping[Replica, str]) -> Placement:
    if not heirs:
        return placement
    names = ((each, heirs.get((each.pod_set, each.replica))) for each in placement.assignments)
    renamed = (replace(each, replica=name) if name else each for each, name in names)
    return Placement.of(renamed)
