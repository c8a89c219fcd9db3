"""A placement: which pods of a gang go to which node, counted."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from scheduling.model.amounts import Requests
from scheduling.model.gang import SUBMITTER

NOWHERE = ""
"""In the place of a node: of pods that are on none, and take quota alone."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Where the pods of one shape (and replica) of a pod set go: node name -> number of pods.

    `requests` are those of the shape, so that the room stays reserved even when no pod of the
    shape exists for the moment. The pods are released in their `wave`: once all pods of the gang
    in earlier waves are bound.
    """

    pod_set: str
    replica: str
    shape: str
    requests: tuple[tuple[str, int], ...]
    nodes: tuple[tuple[str, int], ...]
    wave: int = 0


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Placement:
    """The assignments of a whole gang; written down, it is the gang's reservation.

    What is worked out of one is kept for as long as it lives (`bounded_cache.while_alive`).
    """

    assignments: tuple[Assignment, ...] = field(default=())

    @classmethod
    def of(cls, assignments: Iterable[Assignment]) -> "Placement":
        """Return the placement of these, sorted by name and by wave."""
        return cls(tuple(sorted(assignments, key=_place)))


def amounts_of(placement: Placement) -> Mapping[str, int]:
    """Return what all pods of the gang in a placement ask for together, by resource."""
    total: Counter[str] = Counter()
    for each in (one for one in placement.assignments if one.pod_set != SUBMITTER):
        pods = sum(count for _, count in each.nodes)
        for resource, amount in each.requests:
            total[resource] += amount * pods
    return total


def room_of(placement: Placement) -> Iterator[tuple[str, Requests]]:
    """Yield what the pods of a placement take together: nodes, one or more times, and amounts."""
    for placed in placement.assignments:
        for node, pods in placed.nodes:
            yield node, tuple((name, amount * pods) for name, amount in placed.requests)


def _place(each: Assignment) -> tuple[str, str, str, int]:
    return each.pod_set, each.replica, each.shape, each.wave
