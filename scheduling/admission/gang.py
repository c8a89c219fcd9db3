"""Admits one gang: its minimum whole or not at all, then as much surplus as fits.

The way of a gang: refused for its size, held to the domain of its topology, its replicas to
theirs, sharers of a claim to one node or domain; then placed with what pods mean to each other, or
without where none has affinity or spread constraints.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import assert_never

from scheduling.admission.gang_topology import decide_sharing, decide_together
from scheduling.admission.interdependent import decide_interdependent
from scheduling.admission.replica_topology import decide_by_replica
from scheduling.admission.ruling import Decide, Ruling
from scheduling.diagnosis import refusals
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.inter_pod_affinity import AwaitedError, ToldApartError, neighbours, promised
from scheduling.model.gang import Group, PendingGang
from scheduling.model.verdict import Admitted, Reason, Refusal
from scheduling.placement.assignments import Assignments
from scheduling.placement.exact_search import Demand
from scheduling.placement.independent import NoFit, Placed, Undecided, cannot_fit, demand_of, place
from scheduling.state.pod_index import ExistingPods


def has_inter_pod_constraints(gang: PendingGang) -> bool:
    """Say whether pods of the gang have affinity, anti-affinity or spread constraints."""
    return _has_inter_pod_affinity(gang) or any(group.shape.spread for group in gang.groups())


def _has_inter_pod_affinity(gang: PendingGang) -> bool:
    return any(group.shape.near or group.shape.apart for group in gang.groups())


def decided_in_domains(gang: PendingGang, room: FreeCapacity, steps: int, decide: Decide) -> Ruling:
    """Choose the domain of the gang, in it those of its replicas, and place it there."""
    refusal = refusals.too_many_kinds(gang) or refusals.too_many_ports(gang)
    if refusal is not None:
        return Ruling(refusal, room)
    decide = partial(decide_sharing, decide=decide)
    if gang.topology is None:
        return decide(gang, room, steps)
    return decide_together(gang, room, steps, partial(decide_by_replica, decide=decide))


def decided_in_company(
    company: ExistingPods, gang: PendingGang, room: FreeCapacity, steps: int
) -> Ruling:
    """Decide one gang with what pods mean to each other, and let it be company to the next.

    Spread constraints only matter where there is room.
    """
    barred = company.is_minded() or _has_inter_pod_affinity(gang)
    if barred or (
        has_inter_pod_constraints(gang) and not cannot_fit(demand_of(gang.minimum), room)
    ):
        ruling = _decided_among(gang, room, steps, company)
    else:
        ruling = decided(gang, room, steps)
    if isinstance(ruling.verdict, Admitted):
        company.promise(promised(gang, ruling.verdict.placement))
    return ruling


def _decided_among(
    gang: PendingGang, room: FreeCapacity, steps: int, company: ExistingPods
) -> Ruling:
    try:
        found = neighbours(gang, company, room.columns)
    except ToldApartError as problem:
        return Ruling(Refusal(Reason.UNSUPPORTED, f"not supported by Muster; {problem}"), room)
    except AwaitedError:
        return Ruling(refusals.awaiting(), room)
    bound = found.bound(gang)
    if not found.internal_constraints or refusals.unsupported(gang.groups()):
        return decided(bound, room, steps)
    if cannot_fit(demand_of(bound.minimum), room):  # then it does not with its bonds either
        return decided(bound, room, steps)
    return decide_interdependent(bound, found, room, steps)


def decided(gang: PendingGang, room: FreeCapacity, steps: int) -> Ruling:
    """Decide one gang: its minimum whole or not at all, then as much surplus as fits."""
    # 1. A gang with a constraint that is not modelled is never placed.
    refusal = refusals.unsupported(gang.groups())
    if refusal is not None:
        return Ruling(refusal, room)
    # 2. Its minimum fits as a whole, or it is refused with the reason.
    demand = demand_of(gang.minimum)
    outcome = place(demand, room, steps)
    if not isinstance(outcome, Placed):
        return Ruling(_refused(gang.minimum, outcome, room), room, outcome.steps)
    # 3. Then units of the surplus, each whole.
    assignments = Assignments(room.columns)
    assignments.hand_out(gang.minimum, demand, outcome.spreads)
    surplus = _with_surplus(gang.surplus, outcome.room, assignments, steps - outcome.steps)
    # 4. All of it together is the gang's placement.
    verdict = Admitted(assignments.placement(), surplus.units)
    why_not = None if surplus.stopped is None else partial(_left_out, gang.surplus, surplus)
    return Ruling(verdict, surplus.room, outcome.steps + surplus.steps, why_not=why_not)


def _refused(groups: tuple[Group, ...], outcome: NoFit | Undecided, room: FreeCapacity) -> Refusal:
    """Explain an outcome, once for equal gangs in the same room."""
    match outcome:
        case NoFit():
            return room.remembered(("no fit", groups), lambda: refusals.no_fit(groups, room))
        case Undecided():
            return room.remembered(("undecided", groups), lambda: refusals.undecided(groups, room))
        case other:
            assert_never(other)


@dataclass(frozen=True, eq=False, slots=True)
class _Surplus:
    """The units of the surplus that were placed, the room left, and the steps it took.

    `stopped` is what became of the last unit that was not placed; None where all were.
    """

    units: tuple[int, ...]
    room: FreeCapacity
    steps: int
    stopped: NoFit | Undecided | None = None


def _left_out(units: Sequence[tuple[Group, ...]], surplus: _Surplus) -> Refusal:
    """Explain why the units wait that were not placed."""
    assert surplus.stopped is not None
    placed, room = {*surplus.units}, surplus.room
    waiting = [unit for at, unit in enumerate(units) if at not in placed]
    rest = tuple(group for unit in waiting for group in unit)
    if isinstance(surplus.stopped, NoFit):
        return room.remembered(
            ("no fit", rest, waiting[-1]), lambda: refusals.no_fit(rest, room, waiting[-1])
        )
    return _refused(rest, surplus.stopped, room)


def _with_surplus(
    units: Sequence[tuple[Group, ...]], room: FreeCapacity, assignments: Assignments, steps: int
) -> _Surplus:
    """Place units one after the other as long as they fit; equal neighbours are placed at once."""
    placed: list[int] = []
    spent = 0
    stopped: NoFit | Undecided | None = None
    numbered = [(demand_of(unit), at) for at, unit in enumerate(units)]
    for demand, run in groupby(numbered, key=lambda pair: pair[0]):
        waiting = [at for _, at in run]
        while waiting:
            several = _several(demand, len(waiting), room)
            outcome = place(_times(demand, several), room, steps - spent)
            spent += outcome.steps
            if not isinstance(outcome, Placed):
                stopped = outcome
                break
            now, waiting = waiting[:several], waiting[several:]
            groups = [group for at in now for group in units[at]]
            assignments.hand_out(groups, _times(demand, several), outcome.spreads)
            room, placed = outcome.room, [*placed, *now]
    return _Surplus(tuple(placed), room, spent, stopped)


def _several(demand: Demand, most: int, room: FreeCapacity) -> int:
    """Return how many equal units to place at once: all that fit where one shape decides that."""
    if len(demand) != 1:
        return 1
    [(shape, count)] = demand
    return max(1, min(most, room.total(shape) // count))


def _times(demand: Demand, factor: int) -> Demand:
    return tuple((shape, count * factor) for shape, count in demand)
