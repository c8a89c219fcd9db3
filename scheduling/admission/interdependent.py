"""Admits a gang whose own pods constrain each other (affinity, anti-affinity, spread).

As with any other gang, the minimum is placed whole or not at all, then as many units of the surplus
as fit beside it.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from scheduling.admission.surplus import Stopped, Unit
from scheduling.diagnosis.causes import Cause, FitsUnpinned, NoWay, SearchEnded
from scheduling.filters.free_capacity import Distribution, FreeCapacity
from scheduling.filters.gang_affinity import InternalConstraints
from scheduling.filters.inter_pod_affinity import GangConstraints
from scheduling.model.amounts import Amounts
from scheduling.model.gang import Group, PendingGang
from scheduling.model.placement import Placement
from scheduling.model.pod import PodShape
from scheduling.placement.assignments import Assignments
from scheduling.placement.exact_search import OutOfSteps
from scheduling.placement.interdependent import search
from scheduling.placement.interdependent.search import Ordered, place_interdependent
from scheduling.placement.release_waves import plan_release_waves

MANY_AT_ONCE = 8
"""Which share of the steps left an attempt to place several units at once may take."""


class InterdependentPods:
    """The pods of a gang with their constraints (`found`), as far as they are placed."""

    def __init__(
        self, gang: PendingGang, found: GangConstraints, room: FreeCapacity, steps: int
    ) -> None:
        self.gang, self.room = gang, room
        self.spent = 0
        self._found, self._steps = found, steps
        self._standing: Amounts = np.zeros(
            (len(found.groups), len(room.columns.names)), dtype=np.int64
        )
        self._rounds = self._standing
        self._assignments = Assignments(room.columns)

    def placement(self) -> Placement:
        """Return where all that was placed goes, and in which wave it is released."""
        units = zip((pod_set for pod_set, _ in self._found.groups), self._found.shapes, strict=True)
        row = {unit: at for at, unit in enumerate(units)}
        index = self.room.columns.index

        def round_of(pod_set: str, shape: PodShape, node: str) -> int:
            return int(self._rounds[row[pod_set, shape], index[node]])

        return self._assignments.placement(round_of)

    # ---- the minimum and units of the surplus

    def place_minimum(self) -> Cause | None:
        """Place the minimum; return what stops it, None where it is placed."""
        found, minimum = self._found, self.gang.minimum
        cause = self._place(minimum, found.internal_constraints)
        if isinstance(cause, NoWay) and found.internal_constraints != found.as_they_came:
            cause = self._place(minimum, found.as_they_came) or FitsUnpinned((*self.gang.groups(),))
        return cause

    def place(self, units: Sequence[Unit]) -> Cause | None:
        """Place equal units beside what stands, all or none; return what stops them."""
        share = MANY_AT_ONCE if len(units) > 1 else 1
        groups = tuple(group for unit in units for group in unit)
        return self._place(groups, self._found.internal_constraints, share)

    def kind(self, unit: Unit) -> Hashable:
        """Return the unit: the constraints of other pod sets may differ."""
        return unit

    def at_once(self, _: Unit, most: int) -> int:
        """Return all of them: if they do not fit, half as many are tried."""
        return most

    def left_out(self, _: Sequence[int], stopped: Stopped) -> Cause:
        """Return why the last unit that failed is not placed, beside all that are."""
        assert isinstance(stopped.cause, NoWay | SearchEnded)
        return replace(stopped.cause, groups=stopped.unit, room=self.room)

    # ---- one attempt

    def _place(
        self, groups: tuple[Group, ...], constraints: InternalConstraints, share: int = 1
    ) -> Cause | None:
        """Place all of the groups beside what stands, or none, in a share of the steps left."""
        shapes = self._found.shapes
        counts = [sum(g.count for g in self._of_unit(at, groups)) for at in range(len(shapes))]
        steps = (self._steps - self.spent) // share
        outcome = place_interdependent(
            shapes, counts, constraints, self.room, self._standing, steps, plan_release_waves
        )
        self.spent += outcome.steps
        if not isinstance(outcome, Ordered):
            return self._cause(groups, outcome)
        self._rounds = outcome.order.of
        for at, spread in enumerate(outcome.distributions):
            self._take(at, self._of_unit(at, groups), counts[at], spread)
        return None

    def _cause(self, groups: tuple[Group, ...], outcome: search.NoWay | OutOfSteps) -> Cause:
        if isinstance(outcome, OutOfSteps):
            return SearchEnded(groups, self.room)
        units = zip((pod_set for pod_set, _ in self._found.groups), self._found.shapes, strict=True)
        return NoWay(groups, dict(zip(units, outcome.lacks, strict=True)), self.room)

    def _of_unit(self, at: int, groups: Iterable[Group]) -> list[Group]:
        unit = self._found.groups[at][0], self._found.shapes[at]
        return [group for group in groups if (group.pod_set, group.shape) == unit]

    def _take(self, at: int, groups: list[Group], count: int, spread: Distribution) -> None:
        if not count:
            return
        shape = self._found.shapes[at]
        self._assignments.hand_out(groups, ((shape, count),), (spread,))
        self.room = self.room.without(shape, spread)
        self._standing[at, spread.nodes] += spread.pods
