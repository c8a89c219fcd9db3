"""Admits the pods of a gang on nodes: the minimum, then the surplus.

Gangs whose own pods do not constrain each other take the simple search; what existing pods mean to
them is a restriction of nodes in their shapes. All others take the search for interdependent pods.
"""

from collections.abc import Hashable, Sequence

from scheduling.admission.interdependent import InterdependentPods
from scheduling.admission.question import Accepted, Outcome, Question, Rejected
from scheduling.admission.surplus import Stopped, Unit, place_surplus
from scheduling.diagnosis.causes import (
    AwaitsBinding,
    Cause,
    DoesNotFit,
    EqualPodsDiffer,
    SearchEnded,
)
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.inter_pod_affinity import (
    GangConstraints,
    PartlySelectedError,
    WaitForBindingError,
    gang_constraints,
)
from scheduling.model.gang import Group, PendingGang
from scheduling.model.placement import Placement
from scheduling.placement.assignments import Assignments
from scheduling.placement.exact_search import Demand
from scheduling.placement.independent import NoFit, Placed, cannot_fit, demand_of, place
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.pod_index import ExistingPods

Surroundings = GangConstraints | EqualPodsDiffer | AwaitsBinding
"""What existing pods, and its own, mean to a gang; or why that cannot be said."""


def admit_pods(question: Question) -> Outcome:
    """Place the minimum whole or not at all, then as much of the surplus as fits."""
    pods = _pods_of(question)
    if isinstance(pods, Rejected):
        return pods
    cause = pods.place_minimum()
    if cause is not None:
        return Rejected(cause, pods.spent)
    surplus = place_surplus(pods.gang.surplus, pods)
    left_out = pods.left_out(surplus.units, surplus.stopped) if surplus.stopped else None
    return Accepted(pods.placement(), surplus.units, pods.room, pods.spent, left_out)


def surroundings(gang: PendingGang, existing: ExistingPods, nodes: NodeSnapshot) -> Surroundings:
    """Work out what existing pods, and its own, mean to a gang."""
    try:
        return gang_constraints(gang, existing, nodes)
    except PartlySelectedError as problem:
        return EqualPodsDiffer(str(problem))
    except WaitForBindingError:
        return AwaitsBinding()


def _has_affinity(gang: PendingGang) -> bool:
    return any(group.shape.affinity or group.shape.anti_affinity for group in gang.groups())


def _pods_of(question: Question) -> "IndependentPods | InterdependentPods | Rejected":
    """Return the pods by the search that they need."""
    gang, room, steps = question.gang, question.room, question.steps
    existing = question.existing
    if existing is None or not _is_constrained(gang, existing, room):
        return IndependentPods(gang, room, steps)
    found = surroundings(gang, existing, room.columns)
    if not isinstance(found, GangConstraints):
        return Rejected(found)
    bound = found.applied_to(gang)
    # What does not fit by sums does not fit under constraints either, and is explained sooner.
    if not found.internal_constraints or cannot_fit(demand_of(bound.minimum), room):
        return IndependentPods(bound, room, steps)
    return InterdependentPods(bound, found, room, steps)


def _is_constrained(gang: PendingGang, existing: ExistingPods, room: FreeCapacity) -> bool:
    """Say whether inter-pod constraints matter; spread constraints do where there is room."""
    if existing.constrain_others() or _has_affinity(gang):
        return True
    return gang.has_inter_pod_constraints and not cannot_fit(demand_of(gang.minimum), room)


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
        outcome = place(demand, self.room, self._steps - self.spent)
        self.spent += outcome.steps
        if not isinstance(outcome, Placed):
            cause = DoesNotFit if isinstance(outcome, NoFit) else SearchEnded
            return cause(groups, self.room)
        self._assignments.hand_out(groups, demand, outcome.distributions)
        self.room = outcome.room
        return None

    def kind(self, unit: Unit) -> Hashable:
        """Return the demand: units of equal demand fit equally often."""
        return demand_of(unit)

    def at_once(self, unit: Unit, most: int) -> int:
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
