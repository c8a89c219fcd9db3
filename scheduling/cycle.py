"""Decides the waiting gangs in one cycle, each in the room and quota that those before it leave.

All of them see one picture of the nodes. `QueueOrder` says which gang is next and which are not
decided at all; `Blocking` says which of those that fit must leave the room to a blocked one.

A cycle may be given what the one before it found (`Memory`). A verdict follows from the gang, from
what existing pods mean to it (`Around`), and from the room at its place in the order. So a refusal
stands while the first two are equal and no node has gained room that one of its pods could use, and
in any case while sums over the nodes show that the gang cannot fit. The same gangs are admitted to
the same nodes as without a memory, except those whose search ran out of steps: kept refusals need
none. The numbers in a kept refusal are those of the cycle that gave it; where pods have inter-pod
constraints, so is its reason.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from scheduling.admission.gang import admit, why_left_out
from scheduling.admission.pods import surroundings
from scheduling.admission.question import Accepted, Outcome, Question, SearchSteps, Untried
from scheduling.admission.refusal_memory import (
    CERTAIN,
    Around,
    Kept,
    Memory,
    has_grown_for,
    is_for_the_same,
    reachable_groups,
)
from scheduling.admission.shared_disks import is_short_of_shared
from scheduling.backfill.blocking import Blocking
from scheduling.diagnosis.causes import Cause, SharedDisksCounted, groups_of
from scheduling.diagnosis.explain import explain
from scheduling.diagnosis.holders import with_holders
from scheduling.diagnosis.quota_refusals import over_quota, waits_behind
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.inter_pod_affinity import assumed_pods
from scheduling.filters.volumes.node_volume_limits import SharedDisks
from scheduling.filters.volumes.volume_binding import Volumes
from scheduling.model.amounts import Amounts
from scheduling.model.gang import GangKey, Group, PendingGang
from scheduling.model.placement import amounts_of
from scheduling.model.verdict import Admitted, Decision, Refusal
from scheduling.placement.independent import cannot_fit, demand_of
from scheduling.queueing.order import QueueOrder
from scheduling.queueing.queues import Queues, one_queue
from scheduling.queueing.told import BEHIND, Told
from scheduling.queueing.waiting import Line, requests_of
from scheduling.state.holder_index import Holders
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.pod_index import ExistingPods, PodIndex
from scheduling.state.volume_index import VolumeIndex

AGAIN = 1.0
"""After so many seconds the next gangs are told of moved numbers that this cycle did not tell."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What bounds a cycle, in steps of some 20 ns: a search can never block the loop."""

    search_steps: int = 4_000_000
    """What the exact search for one gang may take; then the gang is Undecided."""

    cycle_search_steps: int = 12_000_000
    """What all searches of a cycle may take together."""


def run_cycle(
    pending: Sequence[PendingGang],
    nodes: NodeSnapshot,
    settings: Settings | None = None,
    existing: ExistingPods | None = None,
    volumes: Volumes | None = None,
) -> tuple[Decision, ...]:
    """Decide gangs of the default queue, none of which is known from before."""
    return next_cycle(one_queue(pending), nodes, None, settings, existing, volumes=volumes)[0]


def next_cycle(
    queues: Queues,
    nodes: NodeSnapshot,
    memory: Memory | None,
    settings: Settings | None = None,
    existing: ExistingPods | None = None,
    holders: Holders | None = None,
    volumes: Volumes | None = None,
) -> tuple[tuple[Decision, ...], Memory]:
    """Decide every gang, but anew only those whose verdict may differ from the cycle before.

    Decisions are in the order in which they were made; those of gangs that wait for quota or behind
    another come last, and are left out where they are those of the cycle before. `existing` are
    the pods on nodes and those assumed there; they are asked only where some pod has inter-pod
    constraints, `volumes` only where some pod mounts a claim.
    """
    existing, volumes = existing or ExistingPods(PodIndex()), volumes or Volumes(VolumeIndex())
    cycle = _Cycle(queues, existing, holders, volumes, settings or Settings())
    return cycle.run(nodes, memory)


class _Cycle:
    """One cycle: what is on the nodes besides, and the steps that are left."""

    def __init__(
        self,
        queues: Queues,
        existing: ExistingPods,
        holders: Holders | None,
        volumes: Volumes,
        settings: Settings,
    ) -> None:
        self._queues, self._tree = queues, queues.waiting.tree
        self._order = QueueOrder(queues.waiting, queues.held, queues.cluster, queues.overdue)
        self._existing, self._holders, self._volumes = existing, holders, volumes
        self._left, self._most = SearchSteps(settings.cycle_search_steps), settings.search_steps
        self._is_constrained = self._has_same_nodes = self._took_room = False
        self._refused_before: Mapping[GangKey, Kept] = {}
        self._left_out_before: Mapping[GangKey, tuple[PendingGang, Refusal]] = {}
        self._refused: dict[GangKey, Kept] = {}
        self._left_out: dict[GangKey, tuple[PendingGang, Refusal]] = {}
        self._kept: set[GangKey] = set()
        self._told = Told.nothing(queues.waiting)

    def run(
        self, nodes: NodeSnapshot, memory: Memory | None
    ) -> tuple[tuple[Decision, ...], Memory]:
        """Decide all, each in the room and quota that those before it leave."""
        waiting = self._queues.waiting
        self._is_constrained = waiting.any_constrained or self._existing.constrain_others()
        is_as_left = memory is not None and _is_as_left(memory, nodes)
        if waiting.any_mounts:
            nodes = self._volumes.with_rows(nodes)
        room = self._recall(memory, nodes)
        existing = self._existing if self._is_constrained else None
        self._blocking = Blocking(self._queues, self._order, nodes, existing, self._left)
        decisions = []
        for gang in self._order:
            verdict, room = self._decide(gang, room)
            decisions.append(Decision(gang.key, verdict))
        decisions += self._held_back(memory.told if memory else None)
        is_same_room = is_as_left and not self._is_constrained and not self._took_room
        old = self._kept & memory.old if memory and is_same_room else self._kept
        found = Memory(
            room,
            self._refused,
            self._left_out,
            len(self._kept),
            frozenset(old),
            self._took_room,
            tuple(self._blocking.passed),
            self._told,
            min(self._blocking.asks_again_in, AGAIN if self._told.is_behind else inf),
        )
        return tuple(decisions), found

    def _recall(self, memory: Memory | None, nodes: NodeSnapshot) -> FreeCapacity:
        """Take over what the cycle before found; return the room that the nodes leave now."""
        if memory is None:
            return FreeCapacity.of(nodes)
        room = memory.room.moved_to(nodes)
        self._has_same_nodes = memory.room.columns.traits is nodes.traits
        self._refused_before = memory.refused
        if self._has_same_nodes:
            self._left_out_before = memory.left_out
        return room

    # ---- one gang

    def _decide(
        self, asked: PendingGang, room: FreeCapacity
    ) -> tuple[Admitted | Refusal, FreeCapacity]:
        """Return the verdict for a gang, and the room that it leaves."""
        gang = self._volumes.mounted(asked)
        room = room.for_priority(gang.pod_priority)
        shared = self._short_of_shared(asked, gang, room)
        kept = self._refused_before.get(gang.key)
        if kept and not (kept.is_certain and shared) and self._still_holds(kept, gang, room):
            self._refused[gang.key] = kept
            self._kept.add(gang.key)
            self._blocking.note(gang, kept.refusal)
            return kept.refusal, room
        delay = self._blocking.delay_as_before(gang)
        if delay is not None:
            return delay, room.for_next()
        steps = self._steps
        units = self._order.units_within_quota(gang)
        outcome = self._outcome(_with_units(gang, units), room, steps)
        if isinstance(outcome, Accepted):
            return self._accepted(gang, units, outcome, room)
        refusal = self._refusal(gang, room, outcome.cause, shared)
        self._refused[gang.key] = self._to_keep(gang, refusal, room, steps)
        self._blocking.note(gang, refusal)
        return refusal, room.for_next()

    def _accepted(
        self, gang: PendingGang, units: Sequence[int], outcome: Accepted, room: FreeCapacity
    ) -> tuple[Admitted | Refusal, FreeCapacity]:
        """Admit a gang that fits, unless it must leave the room to a blocked one."""
        delay = self._blocking.delay(_with_units(gang, units), outcome.placement, room)
        if delay is not None:
            return self._delayed(gang, units, delay, room)
        self._order.take(gang, amounts_of(outcome.placement))
        verdict = self._admitted(gang, outcome)
        placed = tuple(units[at] for at in verdict.units)
        left_out = verdict.left_out
        if left_out is None and len(units) < len(gang.surplus):
            left_out = self._surplus_over_quota(gang, units)
        return replace(verdict, units=placed, left_out=left_out), outcome.room.for_next()

    def _delayed(
        self, gang: PendingGang, units: Sequence[int], delay: Refusal, room: FreeCapacity
    ) -> tuple[Admitted | Refusal, FreeCapacity]:
        """Admit the minimum alone where only the surplus would keep a blocked gang waiting."""
        if gang.minimum and units:
            alone = replace(gang, surplus=())
            outcome = self._outcome(alone, room, self._steps)
            if isinstance(outcome, Accepted):
                verdict, room = self._accepted(alone, (), outcome, room)
                if isinstance(verdict, Admitted):
                    return replace(verdict, left_out=delay), room
                return verdict, room
        return delay, room.for_next()

    @property
    def _steps(self) -> int:
        """How many steps the next gang may take."""
        return self._left.at_most(self._most)

    def _outcome(self, gang: PendingGang, room: FreeCapacity, steps: int) -> Outcome:
        existing = self._existing if self._is_constrained else None
        outcome = admit(Question(gang, room, steps, existing))
        self._left.spend(outcome.steps)
        return outcome

    def _admitted(self, gang: PendingGang, outcome: Accepted) -> Admitted:
        """Assume the gang's pods on their nodes; return its verdict."""
        placement = outcome.placement
        self._volumes.assume(gang, placement)
        if self._is_constrained:
            self._existing.assume(assumed_pods(gang, placement))
        if self._holders is not None:
            self._holders.assume(gang.key, placement)
        self._took_room = self._took_room or bool(placement.assignments)
        left_out = outcome.left_out
        refusal = self._surplus_refusal(gang, left_out, outcome.room) if left_out else None
        return Admitted(placement, outcome.units, refusal)

    def _refusal(
        self, gang: PendingGang, room: FreeCapacity, cause: Cause, shared: SharedDisks
    ) -> Refusal:
        """Refuse a gang, for good only if it does not fit with shared disks counted once either."""
        refusal = explain(cause)
        if shared and refusal.reason in CERTAIN:
            return explain(SharedDisksCounted(tuple(shared)))
        return self._with_holders(refusal, groups_of(cause) or gang.minimum, room)

    def _surplus_refusal(
        self, gang: PendingGang, left_out: Cause | Untried, room: FreeCapacity
    ) -> Refusal:
        """Say why some of a surplus waits, as a cycle ago where gang and nodes are the same.

        So a thousand gangs that could grow are not explained a thousand times in each cycle.
        """
        asked, refusal = self._left_out_before.get(gang.key, (None, None))
        if refusal is not None and asked == gang:
            self._kept.add(gang.key)
        else:
            groups = [group for unit in gang.surplus for group in unit]
            refusal = self._with_holders(explain(why_left_out(left_out)), groups, room)
        self._left_out[gang.key] = gang, refusal
        return refusal

    def _with_holders(
        self, refusal: Refusal, groups: Iterable[Group], room: FreeCapacity
    ) -> Refusal:
        if self._holders is None:
            return refusal
        return with_holders(refusal, groups, room, self._holders)

    def _short_of_shared(
        self, asked: PendingGang, gang: PendingGang, room: FreeCapacity
    ) -> SharedDisks:
        """Return the disks that may keep a gang out only because each pod is counted for them."""
        if gang is asked:  # it mounts nothing
            return {}
        shared = self._volumes.shared_disks(asked)
        return shared if shared and is_short_of_shared(gang.minimum, shared, room) else {}

    # ---- quota

    def _held_back(self, told: Told | None) -> Iterator[Decision]:
        """Refuse the gangs that were not decided, those for which that is news."""
        undecided, waiting = self._order.undecided(), self._queues.waiting
        if told is None or told.waiting is not waiting:
            told = Told.nothing(waiting)
        news, self._told = told.news(undecided)
        columns, explained = waiting.columns, dict[Hashable, Refusal]()  # many ask for the same
        for at in news.tolist():
            row, position = int(columns.queue[at]), int(columns.position[at])
            line = waiting.line(self._tree.names[row])
            is_behind = undecided.why[at] == BEHIND
            kind = row, b"" if is_behind else columns.demands[:, at].tobytes()
            if kind not in explained:
                first = line.gangs[int(undecided.ends[row])] if is_behind else None
                explained[kind] = self._refused_undecided(line, columns.demands[:, at], first)
            yield Decision(line.gangs[position].key, explained[kind])

    def _refused_undecided(self, line: Line, demand: Amounts, first: PendingGang | None) -> Refusal:
        """Refuse for want of quota, or behind a blocked gang."""
        queue = line.queue.name
        return waits_behind(first.key, queue) if first else self._over_quota(queue, demand)

    def _surplus_over_quota(self, gang: PendingGang, units: Sequence[int]) -> Refusal:
        """Say which quota keeps the next unit of a surplus waiting."""
        at = next(at for at in range(len(gang.surplus)) if at not in units)
        return self._over_quota(gang.queue, self._tree.requests(requests_of(gang.surplus[at])))

    def _over_quota(self, queue: str, demand: Amounts) -> Refusal:
        used, available = self._order.used(queue), self._order.available(queue)
        return over_quota(self._tree, queue, demand, used, available)

    # ---- refusals of the cycle before

    def _to_keep(self, gang: PendingGang, refusal: Refusal, room: FreeCapacity, steps: int) -> Kept:
        demand, around = demand_of(gang.minimum), self._around(gang, room)
        return Kept(gang, demand, around, reachable_groups(gang, room), refusal, steps)

    def _still_holds(self, kept: Kept, gang: PendingGang, room: FreeCapacity) -> bool:
        """Say whether the refusal is what deciding anew would say, in other numbers at most.

        What inter-pod constraints and domains mean also follows from nodes that have no room.
        """
        if kept.gang is not gang and kept.gang != gang:
            return False
        if not self._has_same_nodes and not is_for_the_same(kept, gang, room):
            return False
        if kept.is_certain and cannot_fit(kept.demand, room):
            return True
        return (
            (self._has_same_nodes or not (self._is_constrained or gang.topology or gang.sharing))
            and not has_grown_for(gang, room)
            and (kept.is_certain or self._steps <= kept.steps)
            and kept.around == self._around(gang, room)
        )

    def _around(self, gang: PendingGang, room: FreeCapacity) -> Around:
        existing = self._existing
        if not self._is_constrained:
            return None
        if not (gang.has_inter_pod_constraints or existing.constrain_others()):
            return None
        return surroundings(gang, existing, room.columns)


def _with_units(gang: PendingGang, units: Sequence[int]) -> PendingGang:
    """Return the gang with these units of its surplus."""
    if len(units) == len(gang.surplus):
        return gang
    return replace(gang, surplus=tuple(gang.surplus[at] for at in units))


def _is_as_left(memory: Memory, nodes: NodeSnapshot) -> bool:
    """Say whether every gang of the last cycle was judged in the room that these nodes leave."""
    return memory.room.columns is nodes and not memory.took
