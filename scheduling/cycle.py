"""Which of the waiting gangs start now, and where?

One cycle, on one picture of the nodes. The built-in queue is best effort: a gang that does not
fit is refused with its reason and does not block those behind it.

A cycle may be told what the one before it found (`Memory`). A verdict follows from the gang, from
what the pods around mean to it (`Around`), and from the room at its turn. So a gang stays refused
while the first two are equal and no node has got room that one of its pods could use, and at any
rate while sums over the nodes show that it cannot fit. Who is admitted, and
where, is the same as without a memory, but for gangs that had to wait for the steps of a search:
those that are refused still need none. The numbers in a refusal that was kept are those of the
cycle that gave it; where pods mind company, so is its reason.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import assert_never

from scheduling import explain
from scheduling.assign import Assignments
from scheduling.attach import SharedDisks, is_short_of_shared
from scheduling.columns import Columns
from scheduling.company import Company, CompanyTable
from scheduling.domains import Decide
from scheduling.feasibility import is_feasible_somewhere
from scheduling.fit import NoFit, Placed, Undecided, cannot_fit, demand_of, place
from scheduling.holders import Holders
from scheduling.model import GangKey, Group, PendingGang, PodShape
from scheduling.neighbours import (
    AwaitedError,
    Neighbours,
    ToldApartError,
    neighbours,
    promised,
)
from scheduling.never import never
from scheduling.ordering import in_order
from scheduling.replicas import decide_by_replica
from scheduling.room import Room
from scheduling.search import Demand
from scheduling.storage import StorageTable
from scheduling.together import Ruling, decide_bonded
from scheduling.topology import decide_sharing, decide_together
from scheduling.verdict import Admitted, Decision, Reason, Refusal, Verdict
from scheduling.volumes import Volumes


@dataclass(frozen=True, slots=True)
class Settings:
    """What bounds a cycle, in steps of some 20 ns: a search can never block the loop."""

    search_steps: int = 4_000_000
    """What the exact search for one gang may take; then the gang is Undecided."""

    cycle_search_steps: int = 12_000_000
    """What all searches of a cycle may take together."""


CERTAIN = (Reason.INSUFFICIENT_RESOURCES, Reason.NEVER_FITS, Reason.NO_FEASIBLE_NODE)
"""Why a gang does not fit; every other reason says that this was not found out."""

Around = Neighbours | str | None
"""What the pods around mean to a gang, all of it, or why that cannot be said; None if nothing.

Whatever a verdict takes from outside belongs in here or, as volumes do, into the shapes of the
gang that is compared, or a refusal would outlive it.
"""


@dataclass(frozen=True, eq=False, slots=True)
class Kept:
    """A refusal with all that it follows from but the room, and the steps it might take.

    `reachable` says per group whether any node is feasible for it: why a gang does not fit follows
    from that, and from whether the nodes could hold it if they were empty.
    """

    gang: PendingGang
    demand: Demand
    around: Around
    reachable: tuple[bool, ...]
    refusal: Refusal
    steps: int

    @property
    def is_certain(self) -> bool:
        """Say whether the gang did not fit, and no search was given up."""
        return self.refusal.reason in CERTAIN


@dataclass(frozen=True, eq=False, slots=True)
class Memory:
    """What a cycle leaves to the next: the refusals, and the room after all gangs.

    `left_out` are the gangs of whose surplus something waits, with the reason. `kept` says how many
    of the refusals and reasons were taken over from the cycle before, and `old` which of them may
    have other numbers by now. `took` says that a gang was given room: if that is free again in the
    next cycle, more is left than the refusals say.
    """

    room: Room
    refused: Mapping[GangKey, Kept]
    left_out: Mapping[GangKey, tuple[PendingGang, Refusal]]
    kept: int
    old: frozenset[GangKey] = frozenset()
    took: bool = False

    def waiting(self) -> Iterator[GangKey]:
        """Yield the gangs that something is known of, in the order they were decided in."""
        yield from self.refused
        yield from self.left_out

    def without(self, gangs: Collection[GangKey]) -> "Memory":
        """Return it without what is known of some gangs, so that they are decided anew."""
        if not gangs:
            return self
        refused = {key: kept for key, kept in self.refused.items() if key not in gangs}
        left_out = {key: kept for key, kept in self.left_out.items() if key not in gangs}
        return replace(self, refused=refused, left_out=left_out)


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
    company, volumes = company or Company(CompanyTable()), volumes or Volumes(StorageTable())
    cycle = _Cycle(company, holders, volumes, settings or Settings())
    return cycle.run(pending, columns, memory)


class _Cycle:
    """One cycle: who and what is around, and the steps that are left."""

    def __init__(
        self, company: Company, holders: Holders | None, volumes: Volumes, settings: Settings
    ) -> None:
        self._company, self._holders, self._volumes = company, holders, volumes
        self._left, self._most = settings.cycle_search_steps, settings.search_steps
        self._minded = self._same_nodes = self._took = False
        self._left_out: dict[GangKey, tuple[PendingGang, Refusal]] = {}
        self._known: Mapping[GangKey, tuple[PendingGang, Refusal]] = {}
        self._kept: set[GangKey] = set()

    def run(
        self, pending: Sequence[PendingGang], columns: Columns, memory: Memory | None
    ) -> tuple[tuple[Decision, ...], Memory]:
        """Decide all, each in the room that those before it leave."""
        self._minded = _somebody_minds(pending, self._company)
        unchanged = memory is not None and _is_as_left(memory, columns) and not self._minded
        if _somebody_mounts(pending):
            columns = self._volumes.with_rows(columns)
        room = memory.room.moved_to(columns) if memory else Room.of(columns)
        known = memory.refused if memory else {}
        self._same_nodes = bool(memory and memory.room.columns.traits is columns.traits)
        self._known = memory.left_out if memory and self._same_nodes else {}
        decisions, refused = [], {}
        for asked in in_order(pending):
            gang = self._volumes.mounted(asked)
            room = room.facing(gang.pod_priority)
            same = known.get(gang.key)
            shared = self._short_of_shared(asked, gang, room)
            if same and not (same.is_certain and shared) and self._still_holds(same, gang, room):
                decisions.append(Decision(gang.key, same.refusal))
                refused[gang.key] = same
                self._kept.add(gang.key)
                continue
            steps = self._steps
            ruling = _unless_shared(self._decided(gang, room, steps), shared)
            decisions.append(Decision(gang.key, ruling.verdict))
            room = ruling.room.for_next()
            match ruling.verdict:
                case Admitted(placement):
                    self._volumes.promise(gang, placement)
                    self._took = self._took or bool(placement.assignments)
                case Refusal() as refusal:
                    refused[gang.key] = self._to_keep(gang, refusal, room, steps)
        if memory and unchanged and not self._took:
            old = frozenset(self._kept & memory.old)
        else:
            old = frozenset(self._kept)
        kept = len(self._kept)
        return tuple(decisions), Memory(room, refused, self._left_out, kept, old, self._took)

    @property
    def _steps(self) -> int:
        """How many steps the next gang may take."""
        return min(self._left, self._most)

    def _decided(self, gang: PendingGang, room: Room, steps: int) -> Ruling:
        decide = partial(_decided_in_company, self._company) if self._minded else _decided
        ruling = _decided_in_domains(gang, room, steps, decide)
        self._left -= ruling.steps
        if self._holders is not None:
            ruling = replace(ruling, verdict=_with_holders(gang, ruling, self._holders))
        if not isinstance(ruling.verdict, Admitted) or ruling.why_not is None:
            return ruling
        left_out = self._why_not(gang, ruling.room, ruling.why_not)
        return replace(ruling, verdict=replace(ruling.verdict, left_out=left_out))

    def _why_not(self, gang: PendingGang, room: Room, explained: Callable[[], Refusal]) -> Refusal:
        """Say why some of a surplus waits, as a cycle ago where gang and nodes are the same.

        So a thousand gangs that could grow are not explained a thousand times in each cycle.
        """
        asked, refusal = self._known.get(gang.key, (None, None))
        if refusal is not None and asked == gang:
            self._kept.add(gang.key)
        else:
            refusal = explained()
            if self._holders is not None:
                groups = [group for unit in gang.surplus for group in unit]
                refusal = explain.with_holders(refusal, groups, room, self._holders)
        self._left_out[gang.key] = gang, refusal
        return refusal

    def _short_of_shared(self, asked: PendingGang, gang: PendingGang, room: Room) -> SharedDisks:
        """Return the disks that may keep a gang out only because each pod is counted for them."""
        if gang is asked:  # it mounts nothing
            return {}
        shared = self._volumes.shared_disks(asked)
        return shared if shared and is_short_of_shared(gang.minimum, shared, room) else {}

    def _to_keep(self, gang: PendingGang, refusal: Refusal, room: Room, steps: int) -> Kept:
        demand, around = demand_of(gang.minimum), self._around(gang, room)
        return Kept(gang, demand, around, _reachable(gang, room), refusal, steps)

    def _still_holds(self, same: Kept, gang: PendingGang, room: Room) -> bool:
        """Say whether the refusal is what deciding anew would say, in other numbers at most.

        What company and domains mean also follows from nodes that have no room.
        """
        if same.gang is not gang and same.gang != gang:
            return False
        if not self._same_nodes and not _is_for_the_same(same, gang, room):
            return False
        if same.is_certain and cannot_fit(same.demand, room):
            return True
        return (
            (self._same_nodes or not (self._minded or gang.topology or gang.sharing))
            and not _has_grown_for(gang, room)
            and (same.is_certain or self._steps <= same.steps)
            and same.around == self._around(gang, room)
        )

    def _around(self, gang: PendingGang, room: Room) -> Around:
        if not self._minded or not (_minds(gang) or self._company.is_minded()):
            return None
        try:
            return neighbours(gang, self._company, room.columns)
        except ToldApartError as problem:
            return str(problem)
        except AwaitedError:
            return AwaitedError.__name__


def _is_as_left(memory: Memory, columns: Columns) -> bool:
    """Say whether every gang of the last cycle was judged in the room that these columns leave."""
    return memory.room.columns is columns and not memory.took


def _is_for_the_same(same: Kept, gang: PendingGang, room: Room) -> bool:
    """Say whether other nodes leave the reason what it is, if the gang still does not fit."""
    if same.reachable != _reachable(gang, room):
        return False
    was_never = same.refusal.reason is Reason.NEVER_FITS
    return was_never == bool(never(same.demand, room.columns))


def _reachable(gang: PendingGang, room: Room) -> tuple[bool, ...]:
    return tuple(is_feasible_somewhere(group.shape, room.columns) for group in gang.minimum)


def _has_grown_for(gang: PendingGang, room: Room) -> bool:
    """Say whether a pod of the gang could go where there is more room than a cycle ago."""
    return any(_has_grown(group.shape, room) for group in gang.minimum)


def _has_grown(shape: PodShape, room: Room) -> bool:
    return room.remembered(
        ("has grown", shape.fitting), lambda: bool(room.counts(shape)[room.grown].any())
    )


def _unless_shared(ruling: Ruling, shared: SharedDisks) -> Ruling:
    """Refuse nothing for good that may fit if shared disks are counted as nodes attach them."""
    if not shared or not isinstance(ruling.verdict, Refusal):
        return ruling
    if ruling.verdict.reason not in CERTAIN:
        return ruling
    return replace(ruling, verdict=explain.counted_too_often(shared))


def _with_holders(gang: PendingGang, ruling: Ruling, holders: Holders) -> Verdict:
    """Say in a refusal who holds the room; who is admitted is one of them from now on."""
    match ruling.verdict:
        case Refusal() as refusal:
            groups = ruling.about or gang.minimum
            return explain.with_holders(refusal, groups, ruling.room, holders)
        case Admitted(placement=placement):
            holders.promise(gang.key, placement)
    return ruling.verdict


def _somebody_mounts(pending: Iterable[PendingGang]) -> bool:
    return any(group.shape.volumes for gang in pending for group in gang.groups())


def _somebody_minds(pending: Iterable[PendingGang], company: Company) -> bool:
    return company.is_minded() or any(_minds(gang) for gang in pending)


def _minds(gang: PendingGang) -> bool:
    return _minds_affinity(gang) or any(group.shape.spread for group in gang.groups())


def _minds_affinity(gang: PendingGang) -> bool:
    return any(group.shape.near or group.shape.apart for group in gang.groups())


def _decided_in_domains(gang: PendingGang, room: Room, steps: int, decide: Decide) -> Ruling:
    """Choose the domain of the gang, in it those of its replicas, and place it there."""
    refusal = explain.too_many_kinds(gang) or explain.too_many_ports(gang)
    if refusal is not None:
        return Ruling(refusal, room)
    decide = partial(decide_sharing, decide=decide)
    if gang.topology is None:
        return decide(gang, room, steps)
    return decide_together(gang, room, steps, partial(decide_by_replica, decide=decide))


def _decided_in_company(company: Company, gang: PendingGang, room: Room, steps: int) -> Ruling:
    """Decide one gang with what pods mean to each other, and let it be company to the next.

    Spread constraints only matter where there is room.
    """
    barred = company.is_minded() or _minds_affinity(gang)
    if barred or (_minds(gang) and not cannot_fit(demand_of(gang.minimum), room)):
        ruling = _decided_among(gang, room, steps, company)
    else:
        ruling = _decided(gang, room, steps)
    if isinstance(ruling.verdict, Admitted):
        company.promise(promised(gang, ruling.verdict.placement))
    return ruling


def _decided_among(gang: PendingGang, room: Room, steps: int, company: Company) -> Ruling:
    try:
        found = neighbours(gang, company, room.columns)
    except ToldApartError as problem:
        return Ruling(Refusal(Reason.UNSUPPORTED, f"not supported by Muster; {problem}"), room)
    except AwaitedError:
        return Ruling(explain.awaiting(), room)
    bound = found.bound(gang)
    if not found.bonds or explain.unsupported(gang.groups()):
        return _decided(bound, room, steps)
    if cannot_fit(demand_of(bound.minimum), room):  # then it does not with its bonds either
        return _decided(bound, room, steps)
    return decide_bonded(bound, found, room, steps)


def _decided(gang: PendingGang, room: Room, steps: int) -> Ruling:
    """Decide one gang: its minimum whole or not at all, then as much surplus as fits."""
    # 1. A gang with a constraint that is not modelled is never placed.
    refusal = explain.unsupported(gang.groups())
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
    """The units of the surplus that were placed, the room left, and the steps it took.

    `stopped` is what became of the last unit that was not placed; None where all were.
    """

    units: tuple[int, ...]
    room: Room
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
            ("no fit", rest, waiting[-1]), lambda: explain.no_fit(rest, room, waiting[-1])
        )
    return _refused(rest, surplus.stopped, room)


def _with_surplus(
    units: Sequence[tuple[Group, ...]], room: Room, assignments: Assignments, steps: int
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


def _several(demand: Demand, most: int, room: Room) -> int:
    """Return how many equal units to place at once: all that fit where one shape decides that."""
    if len(demand) != 1:
        return 1
    [(shape, count)] = demand
    return max(1, min(most, room.total(shape) // count))


def _times(demand: Demand, factor: int) -> Demand:
    return tuple((shape, count * factor) for shape, count in demand)
