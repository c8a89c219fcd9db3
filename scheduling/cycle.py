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

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from scheduling.admission.question import SearchSteps
from scheduling.admission.refusal_memory import Memory
from scheduling.backfill.blocking import Blocking
from scheduling.backfill.empty_nodes import EmptyNodes
from scheduling.backfill.outlook import Cluster
from scheduling.decision.answers import Answers
from scheduling.decision.gang import GangDecision
from scheduling.decision.kept_refusals import KeptRefusals
from scheduling.decision.preemption_pass import PreemptionPass
from scheduling.decision.reasons import RefusalReasons
from scheduling.decision.search import GangSearch
from scheduling.decision.undecided import Undecided
from scheduling.devices.node_index import DeviceFacts
from scheduling.devices.room import DeviceRoom
from scheduling.diagnosis.preemption_refusals import preempting
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.volumes.volume_binding import Volumes
from scheduling.model.gang import PendingGang
from scheduling.model.verdict import Admitted, Decision, Reason, Verdict
from scheduling.preemption.holds import Holds
from scheduling.preemption.victims import Preempting
from scheduling.queueing.order import QueueOrder
from scheduling.queueing.queues import Queues, one_queue
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


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What is known of nodes beside how much they have and what of it is free.

    `holders` say who has what, where messages name them. `daemons` is what pods use that are on
    their node whatever it holds; it is asked only where a blocked gang may be one that can never
    fit. `devices` are given where some pod claims any.
    """

    holders: Holders | None = None
    daemons: DaemonUsage = field(default_factory=DaemonUsage)
    devices: DeviceFacts | None = None


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
    volumes: Volumes | None = None,
    facts: NodeFacts | None = None,
) -> tuple[tuple[Decision, ...], Memory]:
    """Decide every gang, but anew only those whose verdict may differ from the cycle before.

    Decisions are in the order in which they were made; those of gangs that wait for quota or behind
    another come last, and are left out where they are those of the cycle before. `existing` are
    the pods on nodes and those assumed there; they are asked only where some pod has inter-pod
    constraints, `volumes` only where some pod mounts a claim.
    """
    existing, volumes = existing or ExistingPods(PodIndex()), volumes or Volumes(VolumeIndex())
    facts = facts or NodeFacts()
    is_as_left = memory is not None and memory.room.columns is nodes and not memory.took
    if queues.waiting.any_mounts:
        nodes = volumes.with_rows(nodes)
    search = _search(queues, existing, volumes, settings or Settings())
    holds = Holds(memory.preemptions if memory else (), queues, nodes)
    reasons = RefusalReasons(volumes, holds, facts.holders)
    cycle = _Cycle(queues, nodes, memory, search, holds, reasons, facts.daemons)
    room = memory.room.moved_to(nodes) if memory else FreeCapacity.of(nodes)
    if facts.devices is not None:
        before = memory.room.devices if memory else None
        room = room.with_devices(DeviceRoom.of(facts.devices, before))
    decisions, room = cycle.run(room)
    return decisions, cycle.found(room, memory, is_as_left=is_as_left)


def _search(
    queues: Queues, existing: ExistingPods, volumes: Volumes, settings: Settings
) -> GangSearch:
    is_constrained = queues.waiting.any_constrained or existing.constrain_others()
    budget = SearchSteps(settings.cycle_search_steps)
    per_gang = settings.search_steps
    return GangSearch(existing, volumes, budget, per_gang, is_constrained=is_constrained)


class _Cycle:
    """One cycle: the queues, with the quota and room promised to gangs, and who decides what."""

    def __init__(
        self,
        queues: Queues,
        nodes: NodeSnapshot,
        memory: Memory | None,
        search: GangSearch,
        holds: Holds,
        reasons: RefusalReasons,
        daemons: DaemonUsage,
    ) -> None:
        waiting, tree, held = queues.waiting, queues.waiting.tree, holds.held(queues.held)
        failed, had_turn = (memory.failed_attempts, memory.had_turn) if memory else (None, ())
        self._holds, self._search, self._kept = holds, search, KeptRefusals(memory, nodes, search)
        self._preempting = Preempting(queues, nodes, holds, failed, had_turn)
        level = self._preempting.borrowing_level
        self._order = order = QueueOrder(
            waiting, held, queues.cluster, queues.overdue, level, queues.fair
        )
        when_empty = memory.when_empty if memory and self._kept.has_same_nodes else None
        self._empty = EmptyNodes(nodes, daemons, search.budget, when_empty)
        cluster = Cluster(nodes, search.constraints, tree, search.budget)
        promised = memory.promised_starts if memory else {}
        self._blocking = Blocking(queues, order, cluster, self._empty, promised)
        self._answers = Answers(order)
        self._preemption = PreemptionPass(
            holds, self._preempting, order, self._blocking, search, tree.preempting
        )
        self._decision = GangDecision(
            tree, order, self._blocking, self._preemption, search, self._kept, reasons
        )
        self._undecided = Undecided(waiting, order, self._preempting, memory)
        self._is_to_ask_soon = False

    def run(self, room: FreeCapacity) -> tuple[tuple[Decision, ...], FreeCapacity]:
        """Decide all, each in the room and quota that those before it leave."""
        answers, rank = self._answers, self._order.rank
        # 1. No gang gets room that is held for another one.
        room = self._holds.taken_from(room).grown_at(self._holds.freed)
        # 2. Those that it is held for are decided first, each with its own.
        for gang in tuple(self._holds.gangs()):
            room = self._decide_promised(gang, room)
        # 3. Gangs that wait for quota, and might stop running ones, get their rank among the rest.
        self._order.begin()
        found = self._preemption.waiting_for_quota(answers, room)
        over_quota = sorted(found, key=rank, reverse=True)
        # 4. The order hands out one gang after another that quota covers.
        for gang in self._order:
            # 5. Room is made first for those over quota that come before it.
            while over_quota and rank(over_quota[-1]) < rank(gang):
                room = self._preemption.try_room(over_quota.pop(), room, answers)
            # 6. Then it is decided in the room that is left.
            if gang.key not in answers:
                verdict, room = self._decision.decide(gang, room)
                answers.add(gang, verdict)
        # 7. Room is made for those over quota that come last, or that lost their quota meanwhile.
        for gang in (*reversed(over_quota), *self._preemption.waiting_for_quota(answers, room)):
            room = self._preemption.try_room(gang, room, answers)
        # 8. Those that were not decided are refused, where that is news.
        return (*answers.decisions, *self._undecided.refusals(room)), room

    def _decide_promised(self, gang: PendingGang, room: FreeCapacity) -> FreeCapacity:
        """Decide a gang that room was held for, in that room; what it needs no more is free."""
        promised, answers = self._preemption.promised, self._answers
        parts = self._holds.waits_for(gang.key)
        if parts:
            answers.settle(gang, preempting(parts))
            self._order.block(gang)
            return room
        hold = self._holds.end(gang.key)
        promised.add(gang.key)
        self._order.give_back(gang.queue, hold.counted)
        room = hold.back_in(room)
        if self._order.covers(gang):
            verdict, room = self._decision.decide(gang, room)
            answers.settle(gang, verdict)
        else:
            room = self._preemption.try_room(gang, room, answers)
        if gang.key not in answers or not _is_settled(answers.decisions[-1].verdict):
            promised.discard(gang.key)
            if gang.key in self._holds.asked:
                return self._preemption.hold(gang, hold.preemption, room)
            self._is_to_ask_soon = True  # what was held is free now, also for quota
        if hold.preemption.plan not in (each.plan for each in self._holds.preemptions()):
            room = room.grown_at(hold.nodes)
        return room

    def found(self, room: FreeCapacity, memory: Memory | None, *, is_as_left: bool) -> Memory:
        """Return what the next cycle need not find again.

        `is_as_left` says that this cycle began in the room that the one before it left.
        """
        kept, preemptions = self._kept, self._holds.preemptions()
        took_room = self._decision.took_room or preemptions != (
            memory.preemptions if memory else ()
        )
        is_same_room = is_as_left and self._search.constraints is None and not took_room
        old = kept.taken_over & memory.old if memory and is_same_room else kept.taken_over
        return Memory(
            room=self._holds.put_back(room),
            refused=kept.refused,
            left_out=kept.left_out,
            kept=len(kept.taken_over),
            old=frozenset(old),
            took=took_room,
            passed=tuple(self._blocking.passed),
            refresh=self._undecided.refresh,
            asks_again_in=min(self._asks_again_in(room), self._blocking.asks_again_in),
            preemptions=preemptions,
            failed_attempts=self._preempting.failed_attempts(),
            had_turn=self._preempting.turns.done(),
            when_empty=self._empty.answers,
            never_fitting=self._undecided.never_fitting,
            promised_starts=self._blocking.promised,
        )

    def _asks_again_in(self, room: FreeCapacity) -> float:
        is_open = self._preemption.is_open or self._preempting.is_to_ask_again()
        is_open |= self._kept.gets_further(room)
        return SOON if self._is_to_ask_soon or is_open or self._undecided.is_behind else inf


def _is_settled(verdict: Verdict) -> bool:
    return isinstance(verdict, Admitted) or verdict.reason is Reason.PREEMPTING
