"""Admits a gang whose own pods do not constrain each other: by shapes alone."""

from collections.abc import Hashable, Sequence

from scheduling.admission.surplus import Stopped, Unit
from scheduling.diagnosis.causes import Cause, DoesNotFit, SearchEnded
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.gang import Group, PendingGang
from scheduling.model.placement import Placement
from scheduling.placement.assignments import Assignments
from scheduling.placement.exact_search import Demand
from scheduling.placement.independent import NoFit, Placed, demand_of, place


class IndependentPods:
    """The pods of a gang that do not constrain each other, as far as they are placed."""

    def __init__(self, gang: PendingGang, room: FreeCapacity, steps: int) -> None:
        self.gang, self.room = gang, room
        self.spent = 0
        self._steps = steps
        self._assignments = Assignments(room.columns)

    def placement(self) -> Placement:
        """Return where all that was placed goes."""
        return self._assignments.placement()

    def place_minimum(self) -> Cause | None:
        """Place the minimum; return what stops it, None where it is placed."""
        minimum = self.gang.minimum
        return self._place(minimum, demand_of(minimum))

    def place(self, units: Sequence[Unit]) -> Cause | None:
        """Place units of equal demand, all or none; return what stops them."""
        demand = tuple((shape, count * len(units)) for shape, count in demand_of(units[0]))
        return self._place(tuple(group for unit in units for group in unit), demand)

    def _place(self, groups: tuple[Group, ...], demand: Demand) -> Cause | None:
        outcome = self._searched(groups, demand)
        if not isinstance(outcome, Placed):
            return outcome
        self._assignments.hand_out(groups, demand, outcome.distributions)
        self.room = outcome.room
        return None

    def _searched(self, groups: tuple[Group, ...], demand: Demand) -> "Placed | Cause":
        """Return where the demand has room, or what stops it."""
        outcome = place(demand, self.room, self._steps - self.spent)
        self.spent += outcome.steps
        if isinstance(outcome, Placed):
            return outcome
        return (DoesNotFit if isinstance(outcome, NoFit) else SearchEnded)(groups, self.room)

    def kind(self, unit: Unit) -> Hashable:
        """Return the demand: units of equal demand fit equally often."""
        return demand_of(unit)

    def at_once(self, unit: Unit, most: int, /) -> int:
        """Return all that fit where one shape decides that."""
        demand = demand_of(unit)
        if len(demand) != 1:
            return 1
        [(shape, count)] = demand
        return max(1, min(most, self.room.total(shape) // count))

    def left_out(self, placed: Sequence[int], stopped: Stopped) -> Cause:
        """Return why the units wait that were not placed."""
        done = {*placed}
        waiting = [unit for at, unit in enumerate(self.gang.surplus) if at not in done]
        rest = tuple(group for unit in waiting for group in unit)
        if isinstance(stopped.cause, DoesNotFit):
            return DoesNotFit(rest, self.room, waiting[-1])
        return SearchEnded(rest, self.room)
