"""Which of the waiting gangs start now, and where?

One cycle, on one picture of the nodes. The built-in queue is best effort: a gang that does not
fit is refused with its reason and does not block those behind it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import assert_never

from scheduling import explain
from scheduling.assign import Assignments
from scheduling.columns import Columns
from scheduling.fit import NoFit, Placed, Undecided, demand_of, place
from scheduling.model import Group, PendingGang
from scheduling.ordering import in_order
from scheduling.room import Room
from scheduling.search import Demand
from scheduling.verdict import Admitted, Decision, Refusal, Verdict


@dataclass(frozen=True, slots=True)
class Settings:
    """What bounds a cycle, in steps of some 20 ns: a search can never block the loop."""

    search_steps: int = 4_000_000
    """What the exact search for one gang may take; then the gang is Undecided."""

    cycle_search_steps: int = 12_000_000
    """What all searches of a cycle may take together."""


def run_cycle(
    pending: Sequence[PendingGang], columns: Columns, settings: Settings | None = None
) -> tuple[Decision, ...]:
    """Decide every gang against what those before it have left; return it in that order."""
    settings = settings or Settings()
    room, steps = Room.of(columns), settings.cycle_search_steps
    decisions = []
    for gang in in_order(pending):
        turn = _decided(gang, room, min(steps, settings.search_steps))
        decisions.append(Decision(gang.key, turn.verdict))
        room, steps = turn.room, steps - turn.steps
    return tuple(decisions)


@dataclass(frozen=True, eq=False, slots=True)
class _Turn:
    """The verdict for one gang, the room left after it, and the steps it took."""

    verdict: Verdict
    room: Room
    steps: int = 0


def _decided(gang: PendingGang, room: Room, steps: int) -> _Turn:
    """Decide one gang: its minimum whole or not at all, then as much surplus as fits."""
    # 1. A gang with a constraint that is not modelled is never placed.
    groups = (*gang.minimum, *(group for unit in gang.surplus for group in unit))
    refusal = explain.unsupported(groups)
    if refusal is not None:
        return _Turn(refusal, room)
    # 2. Its minimum fits as a whole, or it is refused with the reason.
    demand = demand_of(gang.minimum)
    outcome = place(demand, room, steps)
    if not isinstance(outcome, Placed):
        return _Turn(_refused(gang.minimum, outcome, room), room, outcome.steps)
    # 3. Then units of the surplus, each whole.
    assignments = Assignments(room.columns)
    assignments.hand_out(gang.minimum, demand, outcome.spreads)
    surplus = _with_surplus(gang.surplus, outcome.room, assignments, steps - outcome.steps)
    # 4. All of it together is the gang's placement.
    verdict = Admitted(assignments.placement(), surplus.units)
    return _Turn(verdict, surplus.room, outcome.steps + surplus.steps)


def _refused(groups: tuple[Group, ...], outcome: NoFit | Undecided, room: Room) -> Refusal:
    """Explain an outcome, once for equal gangs in the same room."""
    match outcome:
        case NoFit():
            return room.remembered(("no fit", groups), lambda: explain.no_fit(groups, room))
        case Undecided():
            return room.remembered(("undecided", groups), lambda: explain.undecided(groups, room))
        case other:
            assert_never(other)


@dataclass(frozen=True, eq=False, slots=True)
class _Surplus:
    """The units of the surplus that were placed, the room left, and the steps it took."""

    units: tuple[int, ...]
    room: Room
    steps: int


def _with_surplus(
    units: Sequence[tuple[Group, ...]], room: Room, assignments: Assignments, steps: int
) -> _Surplus:
    """Place units one after the other as long as they fit; equal neighbours are placed at once."""
    placed: list[int] = []
    spent = 0
    numbered = [(demand_of(unit), at) for at, unit in enumerate(units)]
    for demand, run in groupby(numbered, key=lambda pair: pair[0]):
        waiting = [at for _, at in run]
        while waiting:
            several = _several(demand, len(waiting), room)
            outcome = place(_times(demand, several), room, steps - spent)
            spent += outcome.steps
            if not isinstance(outcome, Placed):
                break
            now, waiting = waiting[:several], waiting[several:]
            groups = [group for at in now for group in units[at]]
            assignments.hand_out(groups, _times(demand, several), outcome.spreads)
            room, placed = outcome.room, [*placed, *now]
    return _Surplus(tuple(placed), room, spent)


def _several(demand: Demand, most: int, room: Room) -> int:
    """Return how many equal units to place at once: all that fit where one shape decides that."""
    if len(demand) != 1:
        return 1
    [(shape, count)] = demand
    return max(1, min(most, room.total(shape) // count))


def _times(demand: Demand, factor: int) -> Demand:
    return tuple((shape, count * factor) for shape, count in demand)
