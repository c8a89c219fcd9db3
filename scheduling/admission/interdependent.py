"""Admits a gang whose own pods constrain each other (affinity, anti-affinity, spread).

As any other: its minimum whole or not at all, then as much of the surplus as fits, unit by unit.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import groupby

import numpy as np

from scheduling.admission.ruling import Ruling
from scheduling.diagnosis import refusals
from scheduling.filters.free_capacity import Distribution, FreeCapacity
from scheduling.filters.inter_pod_affinity import InternalConstraints, Neighbours
from scheduling.model.amounts import Amounts
from scheduling.model.gang import Group, PendingGang
from scheduling.model.placement import Placement
from scheduling.model.pod import PodShape
from scheduling.model.verdict import Admitted, Refusal
from scheduling.placement.assignments import Assignments
from scheduling.placement.exact_search import OutOfSteps
from scheduling.placement.interdependent.search import NoWay, Ordered, place_interdependent

MANY_AT_ONCE = 8
"""Which share of the steps left an attempt to place several units at once may take."""


def decide_interdependent(
    gang: PendingGang, found: Neighbours, room: FreeCapacity, steps: int
) -> Ruling:
    """Decide a gang whose groups have the bounds of `found` in their shapes."""
    attempt = _Attempt(found, found.internal_constraints, room, steps)
    outcome = attempt.place(gang.minimum)
    if isinstance(outcome, NoWay) and found.internal_constraints != found.as_they_came:
        return _told_why(gang, found, room, steps, attempt.spent)
    if not isinstance(outcome, Ordered):
        return Ruling(_refused(gang.minimum, found, outcome, room), room, outcome.steps)
    placed, refused = _with_surplus(gang.surplus, attempt)
    verdict = Admitted(attempt.placement(), tuple(placed))
    why_not = None
    if refused is not None:
        unit, outcome = refused
        why_not = partial(_refused, unit, found, outcome, attempt.room)
    return Ruling(verdict, attempt.room, attempt.spent, why_not=why_not)


def _with_surplus(
    units: Sequence[tuple[Group, ...]], attempt: "_Attempt"
) -> tuple[list[int], tuple[tuple[Group, ...], NoWay | OutOfSteps] | None]:
    """Place units one after the other as long as they fit, equal neighbours at once if they do.

    Return the positions of those placed, and a unit that was not with what became of it. One that
    was refused once is not tried again.
    """
    placed: list[int] = []
    refused: tuple[tuple[Group, ...], NoWay | OutOfSteps] | None = None
    hopeless: set[tuple[Group, ...]] = set()
    for unit, run in groupby(range(len(units)), key=units.__getitem__):
        waiting = list(run)
        several = 0 if unit in hopeless else len(waiting)
        while waiting and several:
            share = MANY_AT_ONCE if several > 1 else 1
            outcome = attempt.place(unit * several, share)
            if isinstance(outcome, Ordered):
                placed, waiting = placed + waiting[:several], waiting[several:]
                several = min(several, len(waiting))
            else:
                several, refused = several // 2, (unit, outcome)
        if waiting:
            hopeless.add(unit)
    return placed, refused if len(placed) < len(units) else None


def _told_why(
    gang: PendingGang, found: Neighbours, room: FreeCapacity, steps: int, spent: int
) -> Ruling:
    """Refuse a gang that cannot be released pinned: is there a way as its pods came?"""
    unpinned = _Attempt(found, found.as_they_came, room, steps - spent)
    outcome = unpinned.place(gang.minimum)
    if isinstance(outcome, Ordered):
        refusal = refusals.only_unpinned(gang.groups())
    else:
        refusal = _refused(gang.minimum, found, outcome, room)
    return Ruling(refusal, room, spent + unpinned.spent)


def _refused(
    groups: tuple[Group, ...], found: Neighbours, outcome: NoWay | OutOfSteps, room: FreeCapacity
) -> Refusal:
    if isinstance(outcome, OutOfSteps):
        return refusals.undecided(groups, room)
    sets = (pod_set for pod_set, _ in found.units)
    lacks = dict(zip(zip(sets, found.shapes, strict=True), outcome.lacks, strict=True))
    return refusals.no_way(groups, lacks, room)


class _Attempt:
    """What was placed so far, and the room that is left."""

    def __init__(
        self,
        found: Neighbours,
        internal_constraints: InternalConstraints,
        room: FreeCapacity,
        steps: int,
    ) -> None:
        self._found = found
        self._internal_constraints = internal_constraints
        self._steps = steps
        self._standing: Amounts = np.zeros(
            (len(found.units), len(room.columns.names)), dtype=np.int64
        )
        self._turns = self._standing
        self._assignments = Assignments(room.columns)
        self.room = room
        self.spent = 0

    def place(self, groups: Sequence[Group], share: int = 1) -> Ordered | NoWay | OutOfSteps:
        """Place all of the groups beside what stands, or none, in a share of the steps left."""
        shapes = self._found.shapes
        counts = [sum(g.count for g in self._of_unit(at, groups)) for at in range(len(shapes))]
        left = (self._steps - self.spent) // share
        outcome = place_interdependent(
            shapes, counts, self._internal_constraints, self.room, self._standing, left
        )
        self.spent += outcome.steps
        if isinstance(outcome, Ordered):
            self._turns = outcome.turns
            for at, spread in enumerate(outcome.spreads):
                self._take(at, self._of_unit(at, groups), counts[at], spread)
        return outcome

    def placement(self) -> Placement:
        """Return where all that was placed goes, and in which turn it is released."""
        units = zip((pod_set for pod_set, _ in self._found.units), self._found.shapes, strict=True)
        row = {unit: at for at, unit in enumerate(units)}
        index = self.room.columns.index

        def turn_of(pod_set: str, shape: PodShape, node: str) -> int:
            return int(self._turns[row[pod_set, shape], index[node]])

        return self._assignments.placement(turn_of)

    def _of_unit(self, at: int, groups: Iterable[Group]) -> list[Group]:
        unit = self._found.units[at][0], self._found.shapes[at]
        return [group for group in groups if (group.pod_set, group.shape) == unit]

    def _take(self, at: int, groups: list[Group], count: int, spread: Distribution) -> None:
        if not count:
            return
        shape = self._found.shapes[at]
        self._assignments.hand_out(groups, ((shape, count),), (spread,))
        self.room = self.room.without(shape, spread)
        self._standing[at, spread.nodes] += spread.pods
