"""Placements made of others: without nodes, slots or turns, merged, or read off pins."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace

from kube.codec.observed_pod import Amounts, ObservedPod
from reservation.release_order import turns_of
from reservation.slots import (
    Kind,
    Slot,
    Slots,
    bound,
    is_released,
    kind_in,
    kind_of,
    settled_pods,
    slots_of,
    vacant_slots,
)
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


def without_turns(placement: Placement, pods: Iterable[ObservedPod], before: int) -> Placement:
    """The placement without what is vacant of turns before this one."""
    turns = turns_of(placement)
    vacant = vacant_slots(placement, pods) if turns else Counter[Slot]()
    gone = Counter({slot: count for slot, count in vacant.items() if turns[slot] < before})
    return rebuilt(placement, slots_of(placement) - gone) if gone else placement


def merged(first: Placement, second: Placement, pods: Iterable[ObservedPod] = ()) -> Placement:
    """Both placements as one: what was promised before, and what was decided now.

    Where the first has turns, the second comes with its last or, as long as pods of it are not
    bound, after it: nothing may come between.
    """
    slots = slots_of(first) + slots_of(second)
    offset = _turn_for_more(first, pods)
    later = tuple(replace(each, turn=each.turn + offset) for each in second.assignments)
    return rebuilt(Placement(assignments=first.assignments + later), slots)


def _turn_for_more(placement: Placement, pods: Iterable[ObservedPod]) -> int:
    last = max(turns_of(placement).values(), default=0)
    if not last:
        return 0
    return last + bool(vacant_slots(placement, bound(pods)))


def rebuilt(placement: Placement, slots: Mapping[Slot, int]) -> Placement:
    """Make a placement of slots; each keeps its turn."""
    nodes: defaultdict[tuple[Kind, int], dict[str, int]] = defaultdict(dict)
    turns = turns_of(placement)
    for slot, count in slots.items():
        if count > 0:
            nodes[slot.kind, turns.get(slot, 0)][slot.node] = count
    kinds = {kind_in(a): a for a in placement.assignments}
    return Placement(
        assignments=tuple(
            replace(kinds[kind], nodes=tuple(sorted(nodes[kind, turn].items())), turn=turn)
            for kind, turn in sorted(nodes)
        )
    )


def placement_from_pins(pods: Iterable[ObservedPod]) -> Placement | None:
    """The placement that the released pods of a gang tell of, when its record is lost.

    A pod without pin was never placed, wherever it is.
    """
    found: defaultdict[Kind, Counter[str]] = defaultdict(Counter)
    requests: dict[Kind, Amounts] = {}
    for pod in settled_pods(pods):
        kind, shape = kind_of(pod), pod.member.shape if pod.member is not None else None
        if kind is not None and shape is not None and is_released(pod):
            found[kind][pod.settled_on] += 1
            requests[kind] = shape.requests
    if not found:
        return None
    return Placement(
        assignments=tuple(
            Assignment(*kind, requests=requests[kind], nodes=tuple(sorted(found[kind].items())))
            for kind in sorted(found)
        )
    )
