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

import numpy as np

from scheduling.admission.gang import admit, why_left_out
from scheduling.admission.never_fitting import NeverFitting
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
from scheduling.backfill.empty_nodes import EmptyNodes
from scheduling.backfill.outlook import Cluster
from scheduling.diagnosis.causes import (
    Cause,
    SharedDisksCounted,
    VolumesUnforeseen,
    groups_of,
)
from scheduling.diagnosis.explain import explain
from scheduling.diagnosis.holders import with_holders
from scheduling.diagnosis.preemption_refusals import held_for, preempting, with_note
from scheduling.diagnosis.quota_refusals import over_quota, waits_behind
from scheduling.diagnosis.refusals import never
from scheduling.filters.feasibility import feasible
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.inter_pod_affinity import assumed_pods
from scheduling.filters.volumes.node_volume_limits import SharedDisks
from scheduling.filters.volumes.volume_binding import Volumes
from scheduling.model.amounts import Amounts, Positions
from scheduling.model.gang import GangKey, Group, PendingGang
from scheduling.model.placement import Placement, amounts_of
from scheduling.model.preemption import Preemption
from scheduling.model.verdict import Admitted, Decision, Reason, Refusal, Verdict
from scheduling.placement.independent import cannot_fit, demand_of
from scheduling.preemption.holds import Holds
from scheduling.preemption.preempting import NoPreemption, Preempting
from scheduling.preemption.search import Outlook
from scheduling.queueing.order import QueueOrder
from scheduling.queueing.queues import Queues, one_queue
from scheduling.queueing.refusal_refresh import (
    BEHIND,
    DECIDED,
    NEVER,
    QUOTA,
    RefusalRefresh,
    UndecidedGangs,
)
from scheduling.queueing.waiting import requests_of
from scheduling.state.daemon_usage import DaemonUsage
from scheduling.state.holder_index import Holders
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.pod_index import ExistingPods, PodIndex
from scheduling.state.volume_index import VolumeIndex

SOON = 1.0
"""Seconds until the next cycle, where this one left questions, or moved numbers, for it."""


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
    daemons: DaemonUsage | None = None,
) -> tuple[tuple[Decision, ...], Memory]:
    """Decide every gang, but anew only those whose verdict may differ from the cycle before.

    Decisions are in the order in which they were made; those of gangs that wait for quota or behind
    another come last, and are left out where they are those of the cycle before. `existing` are
    the pods on nodes and those assumed there; they are asked only where some pod has inter-pod
    constraints, `volumes` only where some pod mounts a claim, `daemons` only where a blocked gang
    may be one that can never fit.
    """
    existing, volumes = existing or ExistingPods(PodIndex()), volumes or Volumes(VolumeIndex())
    daemons = daemons or DaemonUsage()
    cycle = _Cycle(queues, existing, holders, volumes, settings or Settings(), daemons)
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
        daemons: DaemonUsage,
    ) -> None:
        self._queues, self._tree, self._daemons = queues, queues.waiting.tree, daemons
        self._existing, self._holders, self._volumes = existing, holders, volumes
        self._step_budget, self._steps_per_gang = (
            SearchSteps(settings.cycle_search_steps),
            settings.search_steps,
        )
        self._is_constrained = self._has_same_nodes = self._took_room = False
        self._refused_before: Mapping[GangKey, Kept] = {}
        self._left_out_before: Mapping[GangKey, tuple[PendingGang, Refusal]] = {}
        self._refused: dict[GangKey, Kept] = {}
        self._left_out: dict[GangKey, tuple[PendingGang, Refusal]] = {}
        self._kept: set[GangKey] = set()
        self._refresh = RefusalRefresh.nothing(queues.waiting)
        self._never = NeverFitting.nothing(queues.waiting)
        self._promised: set[GangKey] = set()
        self._answered: set[GangKey] = set()
        self._asks_again_in = inf

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
        self._begin(nodes, memory)
        decisions: list[Decision] = []
        room = self._holds.taken_from(room).grown_at(self._holds.freed)
        room = self._decide_promised(room, decisions)
        room = self._decide_others(room, decisions)
        decisions += self._held_back(memory, room)
        if self._preempting.is_to_ask_again():
            self._asks_again_in = min(self._asks_again_in, SOON)
        self._took_room |= self._holds.preemptions() != (memory.preemptions if memory else ())
        is_same_room = is_as_left and not self._is_constrained and not self._took_room
        old = self._kept & memory.old if memory and is_same_room else self._kept
        found = Memory(
            self._holds.put_back(room),
            self._refused,
            self._left_out,
            len(self._kept),
            frozenset(old),
            self._took_room,
            tuple(self._blocking.passed),
            self._refresh,
            min(self._asks_again_in, self._blocking.asks_again_in),
            self._holds.preemptions(),
            self._preempting.failed_attempts(),
            self._preempting.turns.done(),
            self._empty.answers,
            self._never,
            self._blocking.promised,
        )
        return tuple(decisions), found

    def _begin(self, nodes: NodeSnapshot, memory: Memory | None) -> None:
        """Line up the queues, with the quota and the room that were promised to gangs."""
        queues = self._queues
        self._holds = Holds(memory.preemptions if memory else (), queues, nodes)
        held = self._holds.held(queues.held)
        failed, had_turn = (memory.failed_attempts, memory.had_turn) if memory else (None, ())
        self._preempting = Preempting(queues, nodes, self._holds, failed, had_turn)
        level = self._preempting.borrowing_level
        self._order = QueueOrder(queues.waiting, held, queues.cluster, queues.overdue, level)
        when_empty = memory.when_empty if memory and self._has_same_nodes else None
        self._empty = EmptyNodes(nodes, self._daemons, self._step_budget, when_empty)
        cluster = Cluster(nodes, self._constraints, self._tree, self._step_budget)
        promised = memory.promised_starts if memory else {}
        self._blocking = Blocking(queues, self._order, cluster, self._empty, promised)

    @property
    def _constraints(self) -> ExistingPods | None:
        """The pods to be asked; None where no pod at all has inter-pod constraints."""
        return self._existing if self._is_constrained else None

    def _decide_others(self, room: FreeCapacity, decisions: list[Decision]) -> FreeCapacity:
        """Decide the gangs that were promised nothing, and try to make room for some more."""
        self._order.begin()
        waiting = sorted(self._waiting_for_quota(room), key=self._order.rank, reverse=True)
        for gang in self._order:
            while waiting and self._order.rank(waiting[-1]) < self._order.rank(gang):
                room = self._try_room(waiting.pop(), room, decisions)
            if gang.key not in self._answered:
                verdict, room = self._decide(gang, room)
                decisions.append(Decision(gang.key, verdict))
                self._answered.add(gang.key)
        for gang in (*reversed(waiting), *self._waiting_for_quota(room)):
            room = self._try_room(gang, room, decisions)
        return room

    def _answer(self, gang: PendingGang, verdict: Verdict, decisions: list[Decision]) -> None:
        """Answer a gang that the order has not handed out."""
        decisions.append(Decision(gang.key, verdict))
        self._answered.add(gang.key)
        self._order.settle(gang)

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
            return self._refused_room(gang, kept.refusal, room)
        delay = self._blocking.delay_as_before(gang)
        if delay is not None:
            return delay, room.for_next()
        steps = self._steps
        units = self._order.units_within_quota(gang)
        outcome = self._outcome(_with_units(gang, units), room, steps)
        if isinstance(outcome, Accepted):
            return self._accepted(gang, units, outcome, room)
        may_be_parted = gang.is_separable and gang.key not in self._promised
        part = self._part_that_fits(gang, room) if may_be_parted else None
        if part is not None:
            return self._accepted(*part, room)
        refusal = self._refusal(gang, room, outcome.cause, shared)
        self._refused[gang.key] = self._to_keep(gang, refusal, room, steps)
        return self._refused_room(gang, refusal, room.for_next())

    def _part_that_fits(
        self, gang: PendingGang, room: FreeCapacity
    ) -> tuple[PendingGang, Sequence[int], Accepted] | None:
        """Find the replicas of a minimum that fit without the others; None where none does."""
        replicas = tuple(gang.replicas())
        apart = replace(gang, minimum=(), surplus=replicas)
        found = self._outcome(apart, room, self._steps)
        if not isinstance(found, Accepted) or not found.units:
            return None
        part = gang.with_replicas(replicas[at] for at in found.units)
        again = self._outcome(part, room, self._steps)
        return (part, (), again) if isinstance(again, Accepted) else None

    def _accepted(
        self, gang: PendingGang, units: Sequence[int], outcome: Accepted, room: FreeCapacity
    ) -> tuple[Admitted | Refusal, FreeCapacity]:
        """Admit a gang that fits, unless it must leave the room to a blocked one."""
        if gang.key in self._promised:
            self._blocking.let_start(gang, outcome.placement)
        else:
            asked = _with_units(gang, units)
            broken = self._blocking.start(asked, outcome.placement, room)
            if broken is not None:
                other = self._on_other_nodes(asked, outcome.placement, room)
                if other is None:
                    return self._delayed(gang, units, self._blocking.delay(asked, broken), room)
                outcome = other
            self._blocking.note_start(asked)
        self._order.take(gang, amounts_of(outcome.placement))
        if outcome.placement.assignments:
            self._preempting.admitted(gang)
        verdict = self._admitted(gang, outcome)
        placed = tuple(units[at] for at in verdict.units)
        left_out = verdict.left_out
        if left_out is None and len(units) < len(gang.surplus):
            left_out = self._surplus_over_quota(gang, units)
        return replace(verdict, units=placed, left_out=left_out), outcome.room.for_next()

    def _on_other_nodes(
        self, gang: PendingGang, refused: Placement, room: FreeCapacity
    ) -> Accepted | None:
        """Place a gang where nothing is kept for a blocked one; None where that does not help."""
        kept = self._blocking.nodes_kept_from(gang)
        index = room.columns.index
        used = {index[node] for each in refused.assignments for node, _ in each.nodes}
        if used.isdisjoint(kept.tolist()):
            return None
        free = np.maximum(room.free[:, kept], 0)
        found = self._outcome(gang, room.changed_by(kept, -free), self._steps)
        if not isinstance(found, Accepted) or self._blocking.start(gang, found.placement, room):
            return None
        return replace(found, room=found.room.for_next().changed_by(kept, free))

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
        return self._step_budget.at_most(self._steps_per_gang)

    def _outcome(self, gang: PendingGang, room: FreeCapacity, steps: int) -> Outcome:
        outcome = admit(Question(gang, room, steps, self._constraints))
        self._step_budget.spend(outcome.steps)
        return outcome

    def _admitted(self, gang: PendingGang, outcome: Accepted) -> Admitted:
        """Assume the gang's pods on their nodes; return its verdict."""
        placement = outcome.placement
        self._assume(gang, placement)
        if self._holders is not None:
            self._holders.assume(gang.key, placement)
        self._took_room = self._took_room or bool(placement.assignments)
        left_out = outcome.left_out
        refusal = self._surplus_refusal(gang, left_out, outcome.room) if left_out else None
        return Admitted(placement, outcome.units, refusal)

    def _assume(self, gang: PendingGang, placement: Placement) -> None:
        """Count volumes and pods of a gang as if they were there."""
        self._volumes.assume(gang, placement)
        if self._is_constrained:
            self._existing.assume(assumed_pods(gang, placement))

    def _refusal(
        self, gang: PendingGang, room: FreeCapacity, cause: Cause, shared: SharedDisks
    ) -> Refusal:
        """Refuse a gang, for good only if no way to count its volumes would let it fit."""
        refusal = explain(cause)
        if shared and refusal.reason in CERTAIN:
            return explain(SharedDisksCounted(tuple(shared)))
        left_open = self._volumes.left_open(gang)
        if left_open and refusal.reason in CERTAIN:
            return explain(VolumesUnforeseen(left_open))
        refusal = self._with_holders(refusal, groups_of(cause) or gang.minimum, room)
        if refusal.reason is not Reason.INSUFFICIENT_RESOURCES:
            return refusal
        masks = (feasible(each.shape, room.columns) for each in gang.minimum)
        return with_note(refusal, held_for(self._holds.on(masks)))

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

    # ---- preemption

    def _decide_promised(self, room: FreeCapacity, decisions: list[Decision]) -> FreeCapacity:
        """Decide the gangs that were promised room first, each with its own."""
        for gang in tuple(self._holds.gangs()):
            hold = self._holds.end(gang.key)
            self._promised.add(gang.key)
            self._order.give_back(gang.queue, hold.counted)
            room = room.changed_by(hold.nodes, hold.amounts)
            if self._order.covers(gang):
                verdict, room = self._decide(gang, room)
                self._answer(gang, verdict, decisions)
            else:
                room = self._try_room(gang, room, decisions)
            if gang.key not in self._answered or not self._is_settled(decisions[-1].verdict):
                self._promised.discard(gang.key)
                self._asks_again_in = SOON  # what was held is free now, also for quota
            if hold.preemption.plan not in (each.plan for each in self._holds.preemptions()):
                room = room.grown_at(hold.nodes)
        return room

    def _is_settled(self, verdict: Verdict) -> bool:
        return isinstance(verdict, Admitted) or verdict.reason is Reason.PREEMPTING

    def _waiting_for_quota(self, room: FreeCapacity) -> Iterator[PendingGang]:
        """Yield gangs that wait for quota, and for which running ones might be stopped."""
        for gang in self._order.waiting_for_quota(self._tree.preempting):
            is_new = gang.key not in self._answered and self._preempting.may(gang)
            if is_new and not self._preempting.is_known_to_fail(gang, room):
                yield gang

    def _try_room(
        self, asked: PendingGang, room: FreeCapacity, decisions: list[Decision]
    ) -> FreeCapacity:
        """Make room for a gang that its quota does not cover; if there is none, say nothing."""
        if asked.key in self._answered or not self._preempting.may(asked):
            return room
        gang = self._volumes.mounted(asked)
        made, room = self._make_room(gang, room.for_priority(gang.pod_priority))
        if made is not None:
            self._answer(gang, made, decisions)
        return room

    def _refused_room(
        self, gang: PendingGang, refusal: Refusal, room: FreeCapacity
    ) -> tuple[Refusal, FreeCapacity]:
        """Make room for a gang that finds none, if its queue may; else it is blocked."""
        if refusal.reason is not Reason.INSUFFICIENT_RESOURCES or not self._preempting.may(gang):
            return self._blocked(gang, refusal, room), room
        made, room = self._make_room(gang, room)
        if made is not None:
            return made, room
        noted = with_note(refusal, self._preempting.note(gang.key))
        return self._blocked(gang, noted, room), room

    def _blocked(self, gang: PendingGang, refusal: Refusal, room: FreeCapacity) -> Refusal:
        """Let a refused gang hold back those behind it, unless it can never fit."""
        self._blocking.note(gang, refusal, room)
        return with_note(refusal, self._blocking.remark(gang))

    def _make_room(
        self, gang: PendingGang, room: FreeCapacity
    ) -> tuple[Refusal | None, FreeCapacity]:
        """Find what has to end for a gang; from then on its room and quota are held for it."""
        outlook = Outlook(room, self._holds.with_all(self._order.held), self._constraints)
        made = self._preempting.make_room(gang, outlook, self._steps)
        self._step_budget.spend(made.spent)
        if isinstance(made, NoPreemption):
            if made.is_open:
                self._asks_again_in = SOON
            return None, room
        if not self._may_start(gang, made.plan, room):
            return None, room
        hold = self._holds.add(gang, Preemption(gang.key, made.taken, made.plan))
        self._order.take_row(gang, hold.counted)
        self._order.block(gang)
        self._assume(gang, made.plan)
        self._preempting.took(made.parts)
        return preempting(made.parts), room.changed_by(hold.nodes, -hold.amounts)

    def _may_start(self, gang: PendingGang, plan: Placement, room: FreeCapacity) -> bool:
        """Say whether no blocked gang would start later for a gang where it is to be.

        What was promised already stands.
        """
        if gang.key in self._promised:
            self._blocking.let_start(gang, plan)
            return True
        return self._blocking.start(gang, plan, room) is None

    # ---- quota

    def _held_back(self, memory: Memory | None, room: FreeCapacity) -> Iterator[Decision]:
        """Refuse the gangs that were not decided, those for which that is news."""
        waiting = self._queues.waiting
        if memory and memory.refresh and memory.refresh.waiting is waiting:
            self._refresh = memory.refresh
        undecided = self._judged(self._order.undecided(), memory, room)
        due, self._refresh = self._refresh.due(undecided)
        if self._refresh.is_behind or self._never.is_behind:
            self._asks_again_in = min(self._asks_again_in, SOON)
        explained = dict[Hashable, Refusal | None]()  # many ask for the same
        again = np.union1d(self._with_other_notes(undecided), self._never.fresh)
        for at in np.union1d(due, again).tolist():
            kind, key = self._kind(undecided, at), waiting.at(at).key
            if kind not in explained:
                explained[kind] = self._refused_undecided(undecided, at, room)
            refusal = explained[kind]
            if refusal is not None:  # else it is to be judged again on other nodes, and told then
                yield Decision(key, with_note(refusal, self._preempting.note(key)))

    def _kind(self, undecided: UndecidedGangs, at: int) -> Hashable:
        """Return what the refusal of an undecided gang follows from."""
        columns, why = self._queues.waiting.columns, int(undecided.why[at])
        if why == NEVER:
            return why, self._queues.waiting.at(at).minimum
        asked = columns.demands[:, at].tobytes() if why == QUOTA else b""
        return why, int(columns.queue[at]), asked

    def _judged(
        self, undecided: UndecidedGangs, memory: Memory | None, room: FreeCapacity
    ) -> UndecidedGangs:
        """Find those that no nodes could hold; where nodes can be asked for, none is sought."""
        before = memory.never_fitting if memory else None
        if before is not None and before.waiting is self._queues.waiting:
            self._never = before
        queues = self._queues.waiting.columns.queue
        waits = (undecided.why != DECIDED) & ~self._tree.gets_nodes[queues]
        self._never = self._never.judge(waits, room.columns)
        never_fit = waits & self._never.of_columns()
        return replace(undecided, why=np.where(never_fit, NEVER, undecided.why))

    def _with_other_notes(self, undecided: UndecidedGangs) -> Positions:
        """Return the undecided gangs of which is to be said now why nothing is taken for them."""
        gangs = map(self._queues.waiting.gang, self._preempting.noted_anew())
        places = (self._order.place(gang) for gang in gangs if gang is not None)
        return np.array([at for at in places if undecided.why[at] != DECIDED], dtype=np.intp)

    def _refused_undecided(
        self, undecided: UndecidedGangs, at: int, room: FreeCapacity
    ) -> Refusal | None:
        """Refuse for want of nodes or of quota, or behind a blocked gang."""
        waiting = self._queues.waiting
        gang, why = waiting.at(at), undecided.why[at]
        if why == NEVER:
            return never(gang.minimum, room)
        if why == BEHIND:
            end = int(undecided.ends[waiting.columns.queue[at]])
            return waits_behind(waiting.line(gang.queue).gangs[end].key, gang.queue)
        return self._over_quota(gang.queue, waiting.columns.demands[:, at])

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
        if kept.is_certain and not gang.is_separable and cannot_fit(kept.demand, room):
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
