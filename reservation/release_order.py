"""Which part of a placement may be released now, where only some orders of binding succeed."""

from collections.abc import Iterable, Mapping

from kube.codec.observed_pod import ObservedPod
from reservation.slots import Slot, bound, kind_in, slots_of, vacant_slots
from scheduling.model.placement import Placement
from scheduling.state.bounded_cache import while_alive


def turns_of(placement: Placement) -> Mapping[Slot, int]:
    """The turn of each place; empty where there is only one.

    What lets one pod of a kind in on a node lets in the others: a place has its earliest turn.
    """
    return _turns(placement) if any(each.turn for each in placement.assignments) else {}


@while_alive
def _turns(placement: Placement) -> Mapping[Slot, int]:
    found: dict[Slot, int] = {}
    for assignment in sorted(placement.assignments, key=lambda each: each.turn):
        for node, _ in assignment.nodes:
            found.setdefault(Slot(kind_in(assignment), node), assignment.turn)
    return found


def turn_count(placement: Placement) -> int:
    """How many turns the pods are released in."""
    return max(turns_of(placement).values(), default=0) + 1


def turn_due(placement: Placement, pods: Iterable[ObservedPod]) -> int:
    """The first turn of which not every place has a bound pod; later ones wait for it."""
    turns = turns_of(placement)
    unbound = vacant_slots(placement, bound(pods)) if turns else ()
    return min((turns[slot] for slot in unbound), default=turn_count(placement) - 1)


def turn_reached(placement: Placement, pods: Iterable[ObservedPod]) -> int:
    """The last turn of which a pod was released."""
    turns = turns_of(placement)
    taken = slots_of(placement) - vacant_slots(placement, pods) if turns else ()
    return max((turns[slot] for slot in taken), default=0)
