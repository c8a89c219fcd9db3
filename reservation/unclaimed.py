"""Drops the vacant slots that no pod will come for."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from kube.codec.observed_pod import ObservedPod
from reservation.release_order import rebuilt
from reservation.replicas import Replica, named_replicas
from reservation.slots import (
    SlotKind,
    Slots,
    assign,
    kind_of,
    slot_of,
    slots_of,
    take_slot,
    vacant_slots,
)
from scheduling.model.placement import Placement


def without_unclaimed(
    placement: Placement,
    pods: Sequence[ObservedPod],
    counts: Mapping[str, int],
    hosts: Mapping[str, int],
    kept: Mapping[str, str],
) -> Placement:
    """Return the placement without vacant slots that no pod will come for.

    Pods of a changed template need another kind of slot than the pods before them. Where these and
    all other pods are as many as wanted (`counts`, by pod set), the vacant slots of the old kind
    are of no use, and would pass for room of the new pods. `hosts` and `kept` are as elsewhere
    here.
    """
    left = vacant_slots(placement, pods)
    gated = [pod for pod in pods if pod.gated and pod.alive]
    if not left or not _kinds(gated) - _by_kind(left):
        return placement
    given = assign(gated, left, kept)
    for pod in gated:
        take_slot(left, slot_of(pod, given.get(pod.uid, "")))
    strangers = _strangers(placement, [pod for pod in gated if pod.uid not in given], hosts)
    if not strangers or not +left:
        return placement
    here = (pod.member for pod in pods if pod.alive and (pod.uid in given or not pod.gated))
    present = strangers + Counter(member.pod_set for member in here if member is not None)
    return _given_up(placement, left, present, counts)


def _strangers(
    placement: Placement, waiting: Sequence[ObservedPod], hosts: Mapping[str, int]
) -> Counter[str]:
    """How many pods of each set none of its slots is for; replicas count when they are whole."""
    makes: defaultdict[Replica, Counter[str]] = defaultdict(Counter)
    for kind, count in _kinds(waiting).items():
        single = hosts.get(kind.pod_set, 1) == 1
        makes[kind.pod_set, "" if single else kind.replica][kind.shape] += count
    known = [(pod_set, make) for (pod_set, _), make in named_replicas(placement).items()]
    strangers: Counter[str] = Counter()
    for (pod_set, name), make in makes.items():
        whole = hosts.get(pod_set, 1)
        if not name:
            strangers[pod_set] += make.total() // whole * whole
        elif make.total() == whole and (pod_set, make) not in known:
            strangers[pod_set] += whole
    return +strangers


def _kinds(pods: Iterable[ObservedPod]) -> Counter[SlotKind]:
    return Counter(kind for pod in pods if (kind := kind_of(pod)) is not None)


def _by_kind(slots: Slots) -> Counter[SlotKind]:
    found: Counter[SlotKind] = Counter()
    for slot, count in slots.items():
        found[slot.kind] += count
    return found


def _given_up(
    placement: Placement,
    left: Slots,
    present: Mapping[str, int],
    counts: Mapping[str, int],
) -> Placement:
    slots, over = slots_of(placement), Counter(present)
    for slot, count in left.items():
        over[slot.kind.pod_set] += count
    over.subtract(counts)
    over = +over
    for slot in sorted(+left, reverse=True):
        give_up = min(left[slot], over[slot.kind.pod_set])
        slots[slot] -= give_up
        over[slot.kind.pod_set] -= give_up
    return rebuilt(placement, slots)
