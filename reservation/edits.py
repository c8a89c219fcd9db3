"""Derives placements from others: without nodes or slots, merged, or rebuilt from pins."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Sequence

from kube.codec.observed_pod import ObservedPod
from reservation.release_order import rebuilt, released_after
from reservation.slots import (
    SlotKind,
    Slots,
    is_released,
    kind_of,
    settled_pods,
    slots_of,
    taken_slots,
    vacant_slots,
)
from scheduling.model.amounts import Requests
from scheduling.model.placement import Assignment, Placement


def without_nodes(
    placement: Placement, pods: Iterable[ObservedPod], nodes: Container[str]
) -> Placement:
    """The placement without what is vacant on these nodes; what was taken there stays taken."""
    slots = slots_of(placement)
    for slot, count in vacant_slots(placement, pods).items():
        slots[slot] -= count if slot.node in nodes else 0
    return rebuilt(placement, slots)


def without_slots(placement: Placement, slots: Slots) -> Placement:
    """The placement without these places."""
    return rebuilt(placement, slots_of(placement) - slots)


def merged(first: Placement, second: Placement, pods: Iterable[ObservedPod] = ()) -> Placement:
    """Both placements as one: what was promised before, and what was decided now."""
    slots = slots_of(first) + slots_of(second)
    later = released_after(first, second, pods)
    return rebuilt(Placement(assignments=first.assignments + later.assignments), slots)


def with_homeless(
    placement: Placement, pods: Sequence[ObservedPod], stay: Container[str]
) -> Placement:
    """The placement with places for those of the released pods that `stay` and have none in it.

    A release may arrive after its slot was dropped. Such a pod would take the next place that is
    decided there for another pod, which nothing would then ask for again.
    """
    homeless = taken_slots(placement, pods)[1]
    places = placement_from_pins(pod for pod in homeless if pod.uid in stay)
    return placement if places is None else merged(placement, places, pods)


def placement_from_pins(pods: Iterable[ObservedPod]) -> Placement | None:
    """The placement that the released pods of a gang tell of, when its record is lost.

    A pod without pin was never placed, wherever it is.
    """
    return _placement((pod, pod.settled_on) for pod in settled_pods(pods) if is_released(pod))


def placement_from_nominations(pods: Iterable[ObservedPod]) -> Placement | None:
    """The places to which the gated pods of a gang are nominated."""
    gated = (pod for pod in pods if pod.gated and pod.alive and pod.nominated_to)
    return _placement((pod, pod.nominated_to) for pod in gated)


def _placement(places: Iterable[tuple[ObservedPod, str]]) -> Placement | None:
    found: defaultdict[SlotKind, Counter[str]] = defaultdict(Counter)
    requests: dict[SlotKind, Requests] = {}
    for pod, node in places:
        kind, shape = kind_of(pod), pod.member.shape if pod.member is not None else None
        if kind is not None and shape is not None:
            found[kind][node] += 1
            requests[kind] = shape.requests
    if not found:
        return None
    return Placement(
        assignments=tuple(
            Assignment(*kind, requests=requests[kind], nodes=tuple(sorted(found[kind].items())))
            for kind in sorted(found)
        )
    )
