"""The admission question about one gang, and its outcome: a placement, or a rejection."""

from dataclasses import dataclass, replace

from scheduling.diagnosis.causes import Cause
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.gang import PendingGang
from scheduling.model.placement import Placement
from scheduling.state.pod_index import ExistingPods


@dataclass(frozen=True, eq=False, slots=True)
class Question:
    """Can the gang be placed in the room? `steps` bounds the search.

    The gang's shapes say which domains its pods are held to. `existing` are the pods on nodes and
    those assumed there; None where no pod at all has inter-pod constraints.
    """

    gang: PendingGang
    room: FreeCapacity
    steps: int
    existing: ExistingPods | None = None

    def of(self, gang: PendingGang, steps: int) -> "Question":
        """Return the same question of a gang held to domains, or of a part of it."""
        return replace(self, gang=gang, steps=steps)


@dataclass(frozen=True, eq=False, slots=True)
class Untried:
    """A surplus was not tried, for no domain of the keys has room for one unit of it.

    What it lacks in the best of them is worked out only where that is news.
    """

    question: Question
    keys: tuple[str, ...]
    pod_sets: tuple[str, ...]
    """Those that are held to a domain."""


LeftOut = Cause | Untried | None
"""Why units of a surplus wait; None where there are none."""


@dataclass(frozen=True, eq=False, slots=True)
class Accepted:
    """The minimum is placed whole, with the `units` of the surplus that fit; `room` is left."""

    placement: Placement
    units: tuple[int, ...]
    room: FreeCapacity
    steps: int
    left_out: LeftOut = None


@dataclass(frozen=True, eq=False, slots=True)
class Rejected:
    """Nothing is placed."""

    cause: Cause
    steps: int = 0


Outcome = Accepted | Rejected


def places_any(outcome: Outcome) -> bool:
    """Say whether any pod is placed; a surplus alone is accepted also where none of it fits."""
    return isinstance(outcome, Accepted) and bool(outcome.placement.assignments)


@dataclass(slots=True)
class SearchSteps:
    """The steps that are left to all searches of a cycle together."""

    left: int

    def at_most(self, steps: int) -> int:
        """Return how many of some steps the next search may take."""
        return max(0, min(steps, self.left))

    def spend(self, steps: int) -> None:
        """Count the steps of a search."""
        self.left -= steps
