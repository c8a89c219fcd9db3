"""Decides which part of a placement may be released now: wave after wave.

The pods of a wave are released once all pods of earlier waves are bound; most placements have one
wave. Gangs that were placed as one number their waves together. Only this module reads the waves of
a placement, all others ask it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from kube.codec.observed_pod import ObservedPod
from reservation.slots import Slot, SlotKind, Slots, bound, kind_in, slots_of, vacant_slots
from scheduling.model.placement import Placement
from scheduling.state.bounded_cache import while_alive

NONE_DUE: Final = 1 << 20
"""Comes after every wave: that of a placement all of whose slots have bound pods."""


def waves_of(placement: Placement) -> Mapping[Slot, int]:
    """The wave of each slot; empty where there is only one.

    What lets one pod of a kind in on a node lets in the others: a slot has its earliest wave.
    """
    return _waves(placement) if any(each.wave for each in placement.assignments) else {}


@while_alive
def _waves(placement: Placement) -> Mapping[Slot, int]:
    found: dict[Slot, int] = {}
    for assignment in sorted(placement.assignments, key=lambda each: each.wave):
        for node, _ in assignment.nodes:
            found.setdefault(Slot(kind_in(assignment), node), assignment.wave)
    return found


# ---- what may be released


def held_back(
    placement: Placement, pods: Iterable[ObservedPod], due_beside: int = NONE_DUE
) -> frozenset[Slot]:
    """The slots whose pods are not released yet: those of waves after the one that is due.

    `due_beside` is the first that is, of gangs that were placed with this one.
    """
    waves = waves_of(placement)
    if not waves:
        return frozenset()
    due = min(wave_due(placement, pods), due_beside)
    return frozenset(slot for slot, wave in waves.items() if wave > due)


def wave_due(placement: Placement, pods: Iterable[ObservedPod]) -> int:
    """The first wave of which not every slot has a bound pod."""
    return min(first_unbound(placement, pods), _last(placement)) if waves_of(placement) else 0


def first_unbound(placement: Placement, pods: Iterable[ObservedPod]) -> int:
    """The same; NONE_DUE where every slot has one."""
    waves, unbound = waves_of(placement), vacant_slots(placement, bound(pods))
    return min((waves.get(slot, 0) for slot in unbound), default=NONE_DUE)


def is_ordered(placement: Placement) -> bool:
    """Whether some pods are released only after others are bound."""
    return bool(_last(placement))


def order_in_words(placement: Placement) -> str:
    """What a message adds on the order of release; nothing of a single wave."""
    last = _last(placement)
    return f" in {last + 1} waves" if last else ""


def _last(placement: Placement) -> int:
    return max(waves_of(placement).values(), default=0)


# ---- placements made of others


def rebuilt(placement: Placement, slots: Mapping[Slot, int]) -> Placement:
    """Make a placement of slots; each keeps its wave."""
    nodes: defaultdict[tuple[SlotKind, int], dict[str, int]] = defaultdict(dict)
    waves = waves_of(placement)
    for slot, count in slots.items():
        if count > 0:
            nodes[slot.kind, waves.get(slot, 0)][slot.node] = count
    kinds = {kind_in(a): a for a in placement.assignments}
    return Placement(
        assignments=tuple(
            replace(kinds[kind], nodes=tuple(sorted(nodes[kind, wave].items())), wave=wave)
            for kind, wave in sorted(nodes)
        )
    )


def without_passed(placement: Placement, pods: Iterable[ObservedPod]) -> Placement:
    """The placement without vacant slots of waves before the last that a pod was released in."""
    pods, waves = list(pods), waves_of(placement)
    taken: Slots | tuple[()] = slots_of(placement) - vacant_slots(placement, pods) if waves else ()
    reached = max((waves[slot] for slot in taken), default=0)
    return _without_vacant(placement, pods, reached)


def without_waiting(placement: Placement, pods: Iterable[ObservedPod]) -> Placement:
    """The placement without its vacant slots, where it has several waves."""
    return _without_vacant(placement, pods, _last(placement) + 1)


def _without_vacant(placement: Placement, pods: Iterable[ObservedPod], before: int) -> Placement:
    """The placement without vacant slots of waves before this one."""
    waves = waves_of(placement)
    vacant = vacant_slots(placement, pods) if waves else Counter[Slot]()
    gone = Counter({slot: count for slot, count in vacant.items() if waves[slot] < before})
    return rebuilt(placement, slots_of(placement) - gone) if gone else placement


def released_after(first: Placement, second: Placement, pods: Iterable[ObservedPod]) -> Placement:
    """The second placement, to be released with the first where that has one wave.

    Else it comes with the last wave or, as long as pods of that are not bound, after it: nothing
    may come between two waves.
    """
    last = _last(first)
    if not last:
        return second
    offset = last + bool(vacant_slots(first, bound(pods)))
    return Placement(tuple(replace(each, wave=each.wave + offset) for each in second.assignments))
