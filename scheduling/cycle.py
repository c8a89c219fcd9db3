"""Which of the waiting gangs start now, and where?

One cycle, on one picture of the nodes. The built-in queue is best effort: a gang that does not
fit is refused with its reason and does not block those behind it.

A cycle may be told what the one before it found (`Memory`). A gang stays refused while one of its
shapes, asked for `n` times, fits less than `n` times into the room at its turn: that is certain,
and takes one look at a kept sum. Who is admitted, and where, is the same as without a memory; the
numbers in a refusal that was kept are those of the cycle that gave it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import assert_never

from scheduling import explain
from scheduling.assign import Assignments
from scheduling.columns import Columns
from scheduling.company import Company, CompanyTable
from scheduling.domains import Decide
from scheduling.fit import NoFit, Placed, Undecided, demand_of, place
from scheduling.holders import Holders
from scheduling.model import GangKey, Group, PendingGang, PodShape
from scheduling.neighbours import AwaitedError, ToldApartError, neighbours, promised
from scheduling.ordering import in_order
from scheduling.replicas import decide_by_replica
from scheduling.room import Room
from scheduling.search import Demand
from scheduling.storage import StorageTable
from scheduling.together import Turn, decide_bonded
from scheduling.topology import decide_together
from scheduling.verdict import Admitted, Decision, Reason, Refusal, Verdict
from scheduling.volumes import Volumes


@dataclass(frozen=True, slots=True)
class Settings:
    """What bounds a cycle, in steps of some 20 ns: a search can never block the loop."""

    search_steps: int = 4_000_000
    """What the exact search for one gang may take; then the gang is Undecided."""

    cycle_search_steps: int = 12_000_000
    """What all searches of a cycle may take together."""


@dataclass(frozen=True, eq=False, slots=True)
class Kept:
    """A refusal, and the shape that alone does not fit as often as the gang asks for it."""

    gang: PendingGang
    refusal: Refusal
    shape: PodShape
    count: int


@dataclass(frozen=True, eq=False, slots=True)
class Memory:
    """What a cycle leaves to the next: who was refused for one shape alone, and the room.

    `kept` says how many of the refusals were taken over from the cycle before.
    """

    room: Room
    refused: Mapping[GangKey, Kept]
    kept: int


def run_cycle(
    pending: Sequence[PendingGang],
    columns: Columns,
    settings: Settings | None = None,
    company: Company | None = None,
    volumes: Volumes | None = None,
) -> tuple[Decision, ...]:
    """Decide every gang against what those before it have left; return it in that order.

    `company` is who stands on the nodes already, or has room there; it is asked only where
    somebody minds. `volumes` is asked only where somebody mounts a claim.
    """
    return next_cycle(pending, columns, None, settings, company, volumes=volumes)[0]


def next_cycle(
    pending: Sequence[PendingGang],
    columns: Columns,
    memory: Memory | None,
    settings: Settings | None = None,
    company: Company | None = None,
    holders: Holders | None = None,
    volumes: Volumes | None = None,
) -> tuple[tuple[Decision, ...], Memory]:
    """Decide every gang as `run_cycle` does, but look only at what a change could have turned."""
    settings, company = settings or Settings(), company or Company(CompanyTable())
    volumes = volumes or Volumes(StorageTable())
    if _somebody_mounts(pending):
        columns = volumes.with_limits(columns)
    before = memory if memory and memory.room.columns.traits is columns.traits else None
    start = room = before.room.moved_to(columns) if before else Room.of(columns)
    known = before.refused if before else {}
    steps, kept = settings.cycle_search_steps, 0
    decide = (
        partial(_decided_in_company, company) if _somebody_minds(pending, company) else _decided
    )
    decisions, refused = [], {}
    for gang in map(volumes.mounted, in_order(pending)):
        room = room.facing(gang.pod_priority)
        same = known.get(gang.key)
        if same and room.total(same.shape) < same.count and same.gang == gang:
            decisions.append(Decision(gang.key, same.refusal))
            refused[gang.key] = same
            kept += 1
            continue
        turn = _decided_in_domains(gang, room, min(steps, settings.search_steps), decide)
        if holders:
            turn = replace(turn, verdict=_with_holders(gang, turn, holders))
        decisions.append(Decision(gang.key, turn.verdict))
        room, steps = turn.room, steps - turn.steps
        if isinstance(turn.verdict, Admitted):
            volumes.promise(gang, turn.verdict.placement)
        lack = _lack(gang, turn)
        if lack:
            refused[gang.key] = lack
    return tuple(decisions), Memory(start, refused, kept)


def _with_holders(gang: PendingGang, turn: Turn, holders: Holders) -> Verdict:
    """Say in a refusal who holds the room; who is admitted is one of them from now on.

    Where the pods belong in one domain the numbers are of that one, and holders are not told of.
    """
    match turn.verdict:
        case Refusal() as refusal if gang.topology is None:
            return explain.with_holders(refusal, gang.minimum, turn.room, holders)
        case Admitted(placement=placement):
            holders.promise(gang.key, placement)
    return turn.verdict


def _lack(gang: PendingGang, turn: Turn) -> Kept | None:
    """Return what makes the refusal certain at a glance, if anything does."""
    if not isinstance(turn.verdict, Refusal) or turn.verdict.reason == Reason.UNSUPPORTED:
        return None
    for shape, count in demand_of(gang.minimum):
        if turn.room.total(shape) < count:
            return Kept(gang, turn.verdict, shape, count)
    return None


def _somebody_mounts(pending: Iterable[PendingGang]) -> bool:
    return any(group.shape.volumes for gang in pending for group in gang.groups())


def _somebody_minds(pending: Iterable[PendingGang], company: Company) -> bool:
    return company.is_minded() or any(_minds(gang) for gang in pending)


def _minds(gang: PendingGang) -> bool:
    shapes = (group.shape for group in gang.groups())
    return any(shape.near or shape.apart or shape.spread for shape in shapes)


def _decided_in_domains(gang: PendingGang, room: Room, steps: int, decide: Decide) -> Turn:
    """Choose the domain of the gang, in it those of its replicas, and place it there."""
    refusal = explain.too_many_kinds(gang)
    if refusal is not None:
        return Turn(refusal, room)
    if gang.topology is None:
        return decide(gang, room, steps)
    return decide_together(gang, room, steps, partial(decide_by_replica, decide=decide))


def _decided_in_company(company: Company, gang: PendingGang, room: Room, steps: int) -> Turn:
    """Decide one gang with what pods mean to each other, and let it be company to the next."""
    if _minds(gang) or company.is_minded():
        turn = _decided_among(gang, room, steps, company)
    else:
        turn = _decided(gang, room, steps)
    if isinstance(turn.verdict, Admitted):
        company.promise(promised(gang, turn.verdict.placement))
    return turn


def _decided_among(gang: PendingGang, room: Room, steps: int, company: Company) -> Turn:
    try:
        found = neighbours(gang, company, room.columns)
    except ToldApartError as problem:
        return Turn(Refusal(Reason.UNSUPPORTED, f"not supported by Muster; {problem}"), room)
    except AwaitedError:
        return Turn(explain.awaiting(), room)
    bound = found.bound(gang)
    if found.bonds and explain.unsupported(gang.groups()) is None:
        return decide_bonded(bound, found, room, steps)
    return _decided(bound, room, steps)


def _decided(gang: PendingGang, room: Room, steps: int) -> Turn:
    """Decide one gang: its minimum whole or not at all, then as much surplus as fits."""
    # 1. A gang with a constraint that is not modelled is never placed.
    refusal = explain.unsupported(gang.groups())
    if refusal is not None:
        return Turn(refusal, room)
    # 2. Its minimum fits as a whole, or it is refused with the reason.
    demand = demand_of(gang.minimum)
    outcome = place(demand, room, steps)
    if not isinstance(outcome, Placed):
        return Turn(_refused(gang.minimum, outcome, room), room, outcome.steps)
    # 3. Then units of the surplus, each whole.
    assignments = Assignments(room.columns)
    assignments.hand_out(gang.minimum, demand, outcome.spreads)
    surplus = _with_surplus(gang.surplus, outcome.room, assignments, steps - outcome.steps)
    # 4. All of it together is the gang's placement.
    verdict = Admitted(assignments.placement(), surplus.units)
    return Turn(verdict, surplus.room, outcome.steps + surplus.steps)


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
