"""Decides all waiting gangs in one cycle, in order, each in what those before it leave.

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

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from scheduling.admission.gang import (
    decided,
    decided_in_company,
    decided_in_domains,
    has_inter_pod_constraints,
)
from scheduling.admission.refusal_memory import (
    CERTAIN,
    Around,
    Kept,
    Memory,
    has_grown_for,
    is_for_the_same,
    reachable_groups,
)
from scheduling.admission.ruling import Ruling
from scheduling.admission.shared_disks import is_short_of_shared
from scheduling.diagnosis import holders as holder_shares
from scheduling.diagnosis import refusals
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.inter_pod_affinity import AwaitedError, ToldApartError, neighbours
from scheduling.filters.volumes.node_volume_limits import SharedDisks
from scheduling.filters.volumes.volume_binding import Volumes
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.verdict import Admitted, Decision, Refusal, Verdict
from scheduling.placement.independent import cannot_fit, demand_of
from scheduling.queue_sort import in_order
from scheduling.state.holder_index import Holders
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.pod_index import ExistingPods, PodIndex
from scheduling.state.volume_index import VolumeIndex


@dataclass(frozen=True, slots=True)
class Settings:
    """What bounds a cycle, in steps of some 20 ns: a search can never block the loop."""

    search_steps: int = 4_000_000
    """What the exact search for one gang may take; then the gang is Undecided."""

    cycle_search_steps: int = 12_000_000
    """What all searches of a cycle may take together."""


def run_cycle(
    pending: Sequence[PendingGang],
    columns: NodeSnapshot,
    settings: Settings | None = None,
    company: ExistingPods | None = None,
    volumes: Volumes | None = None,
) -> tuple[Decision, ...]:
    """Decide every gang against what those before it have left; return it in that order.

    `company` is who stands on the nodes already, or has room there; it is asked only where
    somebody minds. `volumes` is asked only where somebody mounts a claim.
    """
    return next_cycle(pending, columns, None, settings, company, volumes=volumes)[0]


def next_cycle(
    pending: Sequence[PendingGang],
    columns: NodeSnapshot,
    memory: Memory | None,
    settings: Settings | None = None,
    company: ExistingPods | None = None,
    holders: Holders | None = None,
    volumes: Volumes | None = None,
) -> tuple[tuple[Decision, ...], Memory]:
    """Decide every gang as `run_cycle` does, but look only at what a change could have turned."""
    company, volumes = company or ExistingPods(PodIndex()), volumes or Volumes(VolumeIndex())
    cycle = _Cycle(company, holders, volumes, settings or Settings())
    return cycle.run(pending, columns, memory)


class _Cycle:
    """One cycle: who and what is around, and the steps that are left."""

    def __init__(
        self, company: ExistingPods, holders: Holders | None, volumes: Volumes, settings: Settings
    ) -> None:
        self._company, self._holders, self._volumes = company, holders, volumes
        self._left, self._most = settings.cycle_search_steps, settings.search_steps
        self._minded = self._same_nodes = self._took = False
        self._left_out: dict[GangKey, tuple[PendingGang, Refusal]] = {}
        self._known: Mapping[GangKey, tuple[PendingGang, Refusal]] = {}
        self._kept: set[GangKey] = set()

    def run(
        self, pending: Sequence[PendingGang], columns: NodeSnapshot, memory: Memory | None
    ) -> tuple[tuple[Decision, ...], Memory]:
        """Decide all, each in the room that those before it leave."""
        self._minded = _somebody_minds(pending, self._company)
        unchanged = memory is not None and _is_as_left(memory, columns) and not self._minded
        if _somebody_mounts(pending):
            columns = self._volumes.with_rows(columns)
        room = memory.room.moved_to(columns) if memory else FreeCapacity.of(columns)
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

    def _decided(self, gang: PendingGang, room: FreeCapacity, steps: int) -> Ruling:
        decide = partial(decided_in_company, self._company) if self._minded else decided
        ruling = decided_in_domains(gang, room, steps, decide)
        self._left -= ruling.steps
        if self._holders is not None:
            ruling = replace(ruling, verdict=_with_holders(gang, ruling, self._holders))
        if not isinstance(ruling.verdict, Admitted) or ruling.why_not is None:
            return ruling
        left_out = self._why_not(gang, ruling.room, ruling.why_not)
        return replace(ruling, verdict=replace(ruling.verdict, left_out=left_out))

    def _why_not(
        self, gang: PendingGang, room: FreeCapacity, explained: Callable[[], Refusal]
    ) -> Refusal:
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
                refusal = holder_shares.with_holders(refusal, groups, room, self._holders)
        self._left_out[gang.key] = gang, refusal
        return refusal

    def _short_of_shared(
        self, asked: PendingGang, gang: PendingGang, room: FreeCapacity
    ) -> SharedDisks:
        """Return the disks that may keep a gang out only because each pod is counted for them."""
        if gang is asked:  # it mounts nothing
            return {}
        shared = self._volumes.shared_disks(asked)
        return shared if shared and is_short_of_shared(gang.minimum, shared, room) else {}

    def _to_keep(self, gang: PendingGang, refusal: Refusal, room: FreeCapacity, steps: int) -> Kept:
        demand, around = demand_of(gang.minimum), self._around(gang, room)
        return Kept(gang, demand, around, reachable_groups(gang, room), refusal, steps)

    def _still_holds(self, same: Kept, gang: PendingGang, room: FreeCapacity) -> bool:
        """Say whether the refusal is what deciding anew would say, in other numbers at most.

        What company and domains mean also follows from nodes that have no room.
        """
        if same.gang is not gang and same.gang != gang:
            return False
        if not self._same_nodes and not is_for_the_same(same, gang, room):
            return False
        if same.is_certain and cannot_fit(same.demand, room):
            return True
        return (
            (self._same_nodes or not (self._minded or gang.topology or gang.sharing))
            and not has_grown_for(gang, room)
            and (same.is_certain or self._steps <= same.steps)
            and same.around == self._around(gang, room)
        )

    def _around(self, gang: PendingGang, room: FreeCapacity) -> Around:
        if not self._minded or not (has_inter_pod_constraints(gang) or self._company.is_minded()):
            return None
        try:
            return neighbours(gang, self._company, room.columns)
        except ToldApartError as problem:
            return str(problem)
        except AwaitedError:
            return AwaitedError.__name__


def _is_as_left(memory: Memory, columns: NodeSnapshot) -> bool:
    """Say whether every gang of the last cycle was judged in the room that these columns leave."""
    return memory.room.columns is columns and not memory.took


def _unless_shared(ruling: Ruling, shared: SharedDisks) -> Ruling:
    """Refuse nothing for good that may fit if shared disks are counted as nodes attach them."""
    if not shared or not isinstance(ruling.verdict, Refusal):
        return ruling
    if ruling.verdict.reason not in CERTAIN:
        return ruling
    return replace(ruling, verdict=refusals.counted_too_often(shared))


def _with_holders(gang: PendingGang, ruling: Ruling, holders: Holders) -> Verdict:
    """Say in a refusal who holds the room; who is admitted is one of them from now on."""
    match ruling.verdict:
        case Refusal() as refusal:
            groups = ruling.about or gang.minimum
            return holder_shares.with_holders(refusal, groups, ruling.room, holders)
        case Admitted(placement=placement):
            holders.promise(gang.key, placement)
    return ruling.verdict


def _somebody_mounts(pending: Iterable[PendingGang]) -> bool:
    return any(group.shape.volumes for gang in pending for group in gang.groups())


def _somebody_minds(pending: Iterable[PendingGang], company: ExistingPods) -> bool:
    return company.is_minded() or any(has_inter_pod_constraints(gang) for gang in pending)
