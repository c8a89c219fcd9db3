"""Admits the pods of a gang on nodes: the minimum, then the surplus.

Gangs whose own pods do not constrain each other take the simple search; what existing pods mean to
them is a restriction of nodes in their shapes. All others take the search for interdependent pods.
"""

from scheduling.admission.claiming import ClaimingPods
from scheduling.admission.independent import IndependentPods
from scheduling.admission.interdependent import InterdependentPods
from scheduling.admission.question import Accepted, Outcome, Question, Rejected
from scheduling.admission.surplus import place_surplus
from scheduling.diagnosis.causes import AwaitsBinding, DevicesUnforeseen, EqualPodsDiffer
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.inter_pod_affinity import (
    GangConstraints,
    PartlySelectedError,
    WaitForBindingError,
    gang_constraints,
)
from scheduling.model.gang import PendingGang
from scheduling.placement.independent import cannot_fit, demand_of
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.pod_index import ExistingPods

CLAIMS_AND_CONSTRAINTS = (
    "resourceClaims of pods that have affinity or topology spread constraints among themselves "
    "(leave one of the two out)"
)

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
        return _independent(gang, room, steps)
    found = surroundings(gang, existing, room.columns)
    if not isinstance(found, GangConstraints):
        return Rejected(found)
    bound = found.applied_to(gang)
    # What does not fit by sums does not fit under constraints either, and is explained sooner.
    if not found.internal_constraints or cannot_fit(demand_of(bound.minimum), room):
        return _independent(bound, room, steps)
    if gang.claims_devices:
        return Rejected(DevicesUnforeseen(CLAIMS_AND_CONSTRAINTS))
    return InterdependentPods(bound, found, room, steps)


def _independent(gang: PendingGang, room: FreeCapacity, steps: int) -> IndependentPods:
    return (ClaimingPods if gang.claims_devices else IndependentPods)(gang, room, steps)


def _is_constrained(gang: PendingGang, existing: ExistingPods, room: FreeCapacity) -> bool:
    """Say whether inter-pod constraints matter; spread constraints do where there is room."""
    if existing.constrain_others() or _has_affinity(gang):
        return True
    return gang.has_inter_pod_constraints and not cannot_fit(demand_of(gang.minimum), room)
