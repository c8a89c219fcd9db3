"""Holds the whole state of the coordinator: observed facts and decisions of the leader."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from coordinator.cluster.bind_refusals import Refusals
from coordinator.cluster.cache import ClusterCache
from coordinator.gang.attempts import Attempts
from coordinator.gang.ending import Orphans
from coordinator.gang.held_start.foresight import Foresee, foresee
from coordinator.gang.held_start.quota_turns import QuotaTurns
from coordinator.gang.nominations import Guard, Pace
from coordinator.gang.pods.left_nominations import Left
from coordinator.gang.priority import AllowedClasses
from coordinator.gang.start_window import Window
from coordinator.gang.view import GangView
from coordinator.messages.clock import Patience
from coordinator.queues.ages import Ages
from coordinator.queues.fair_share import FairShareLedger
from coordinator.queues.learned_durations import DurationLedger
from coordinator.queues.node_quota import NodeQuota
from coordinator.queues.queue_usage import QuotaLedger
from coordinator.queues.registry import BUILT_IN, Outward, QueueRegistry
from coordinator.queues.reports import QueueReports
from coordinator.queues.waiting_limit import WaitingLimit
from coordinator.record.renewals import Renewals
from coordinator.record.stray_gates import StrayGates
from coordinator.record.unknown_keys import UnknownKeys
from coordinator.record.urgency import QUIET_DELAY
from coordinator.state.agenda import Agenda
from coordinator.state.gang_counts import GangCounts
from coordinator.state.joined_gangs import JoinedGangs
from coordinator.state.room.orphan_reservations import OrphanReservations
from coordinator.state.room.reserved_room import ReservedRoom
from coordinator.state.room.submitter_room import SubmitterRoom
from coordinator.state.verdict_counts import VerdictCounts
from kube.codec.budget import Budget
from kube.codec.profiles.scheduler_profiles import STOCK, Profiles
from scheduling.admission.refusal_memory import Memory
from scheduling.diagnosis.holes import GpuPools
from scheduling.model.gang import GangKey
from scheduling.model.placement import Placement
from scheduling.model.preemption import GangPart
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.queueing.waiting import WaitingGangs

NEVER = float("-inf")


@dataclass(slots=True)
class Resumption:
    """The resumption of one RayJob: the version of it that was resumed, and what failed."""

    version: str = ""
    attempts: Attempts = field(default_factory=Attempts)


@dataclass(slots=True)
class Trial:
    """What is to end for a waiting gang."""

    chosen: Mapping[GangKey, tuple[str, ...]]
    """Of each gang the replicas, none where all of it is."""
    plans: Mapping[GangKey, Placement]
    """Where the waiting gang will be then, and those that start together with it."""
    asked: set[str] = field(default_factory=set)
    """The namespaces whose disruption budgets are being read, or were."""
    budgets: dict[str, tuple[Budget, ...]] = field(default_factory=dict)
    """Those that were read, by namespace."""
    unread: dict[str, str] = field(default_factory=dict)
    """Why those of others were not, by namespace."""


ECHO_SECONDS = 1.0
"""For which the watch is waited for after a write to a GangOffer."""


@dataclass(slots=True)
class OfferProgress:
    """What the leader knows of one GangOffer beyond what is written."""

    offered_at: float | None = None
    """Since when its room is offered (monotonic seconds); None where another leader did that."""
    started_at: float | None = None
    """Since when it is seen as Started."""
    told_at: float = 0.0
    """When it was last written what its gang lacks."""
    object_uid: str = ""
    """The uid of what was created for it first; empty while nothing was."""
    term: int = 0
    """The newest of its manager's leaders that was read."""
    writing: bool = False
    replaced: str = ""
    """The version that the last write was to change."""
    echo_by: float = 0.0
    """Until when the watch is waited for after it: the next write tests the version."""
    deleted: str = ""
    """The uid of what was created for it, once its deletion was asked for."""
    attempts: Attempts = field(default_factory=Attempts)
    accepted_after: int | None = None
    """How many requests for the Lease of its manager were sent before it was seen accepted."""
    stopped: set[str] = field(default_factory=set)
    """The uids of pods and RayClusters that were deleted since its gang may run no longer."""

    def begin(self, replaced: str, now: float) -> None:
        """Note a write that is under way; `replaced` is empty where it changes something else."""
        self.writing, self.replaced, self.echo_by = True, replaced, now + ECHO_SECONDS

    def waits_for_echo(self, version: str, now: float) -> bool:
        """Whether the watch has not told yet what the last write changed."""
        return version == self.replaced and now < self.echo_by


@dataclass(slots=True)
class ManagerLease:
    """What the leader knows of the Lease of one manager whose gangs stop here without it."""

    copied: float | None = None
    """The newest stamp that the manager has read, None while that is not known."""
    read_at: float = 0.0
    """When that one was read first."""
    sent: int = 0
    """How many requests were sent, one after the other."""
    answered: int = 0
    """The last of them that was answered."""
    lost_after: int = 0
    """The fewest seconds without the manager until a gang stops; 0 where none was accepted."""
    due: float = NEVER
    under_way: bool = False
    attempts: Attempts = field(default_factory=Attempts)

    @property
    def next_at(self) -> float | None:
        """When it is read or stamped next; None while it is."""
        return None if self.under_way else max(self.due, self.attempts.not_before)


@dataclass
class Term:
    """What a leader knows beyond what is observed; thrown away when its term ends."""

    epoch: int = 0
    """0 while this replica does not lead."""
    inherited: frozenset[str] = frozenset()
    """The uids of the pods that an earlier leader has seen gated, and may be releasing."""
    views: dict[GangKey, GangView] = field(default_factory=dict)
    refusals: Refusals = field(default_factory=Refusals)
    window: Window = field(default_factory=Window)
    orphans: Orphans = field(default_factory=Orphans)
    trials: dict[GangKey, Trial] = field(default_factory=dict)
    """Of the gangs that others are to be stopped for."""
    resumptions: dict[str, Resumption] = field(default_factory=dict)
    """Of the RayJobs, by uid, that Muster suspended."""
    misnominated: dict[GangKey, frozenset[str]] = field(default_factory=dict)
    """By gang the nodes on which nothing is released until nominations to them are taken back."""
    left: dict[GangKey, Left] = field(default_factory=dict)
    """By gang the nominated pods whose RayCluster is gone."""
    offers: dict[str, OfferProgress] = field(default_factory=dict)
    """By uid."""
    manager_leases: dict[str, ManagerLease] = field(default_factory=dict)
    """By manager."""
    pace: Pace = field(default_factory=Pace)
    """That of nominations."""
    forbidden_until: float = NEVER
    """Until then no nomination is written, for that is forbidden."""
    counts: GangCounts = field(default_factory=GangCounts)
    """What metrics tell of the gangs."""

    def forbidden_ended(self, now: float) -> bool:
        """Whether the time without nominations is over since the last call."""
        over = NEVER < self.forbidden_until <= now
        if over:
            self.forbidden_until = NEVER
        return over


@dataclass
class Cycles:
    """What one cycle leaves to the next."""

    memory: Memory | None = None
    renewals: Renewals = field(default_factory=Renewals)
    quiet: float = QUIET_DELAY
    """The time between writes that only move numbers of a waiting gang."""
    admissions: int = 0
    """How many placements were decided."""
    waiting: WaitingGangs = field(default_factory=lambda: WaitingGangs(QuotaTree([BUILT_IN])))
    """The gangs that the last one was asked about."""
    joined: JoinedGangs = field(default_factory=JoinedGangs)
    """Those of them that are asked for as one."""
    ages: Ages = field(default_factory=Ages)
    """Which of them have aged."""
    looked_at: set[GangKey] = field(default_factory=set)
    """The gangs that may ask for something else since then."""
    avoided: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    """The nodes that pods avoided, by namespace and shape."""
    parts: dict[GangKey, tuple[GangPart, ...]] = field(default_factory=dict)
    """What could be taken from gangs that were not looked at since."""
    verdicts: VerdictCounts = field(default_factory=VerdictCounts)
    """Counts those of all terms."""


@dataclass
class Known:
    """Everything the coordinator knows."""

    patience: Patience = field(default_factory=Patience)
    allowed: AllowedClasses = field(default_factory=AllowedClasses)
    cache: ClusterCache = field(default_factory=ClusterCache)
    unknown_keys: UnknownKeys = field(default_factory=UnknownKeys)
    stray_gates: StrayGates = field(default_factory=StrayGates)
    queues: QueueRegistry = field(default_factory=QueueRegistry)
    followed: Outward = field(default_factory=Outward)
    """What gangs were last told of the queues."""
    quota: QuotaLedger = field(default_factory=QuotaLedger)
    fair: FairShareLedger = field(default_factory=FairShareLedger)
    learned: DurationLedger = field(default_factory=DurationLedger)
    reports: QueueReports = field(default_factory=QueueReports)
    waiting_limit: WaitingLimit = field(default_factory=WaitingLimit)
    agenda: Agenda = field(default_factory=Agenda)
    cycles: Cycles = field(default_factory=Cycles)
    term: Term = field(default_factory=Term)
    blind: set[str] = field(default_factory=set)
    """The watches that are down."""
    came_at: float = NEVER
    """When a gated pod of any gang came last."""
    foresee: Foresee = foresee
    profiles: Profiles = field(default_factory=lambda: STOCK)
    guard: Guard = Guard.NONE
    scheduler: str = ""
    """The holder of kube-scheduler's Lease."""
    gpu_pools: GpuPools = field(default_factory=GpuPools)
    """What metrics take for GPUs."""
    lap: Callable[[str], None] = field(default=lambda _: None)
    """Is told when a part of `handle` is done, by name: there is no clock here."""
    room: ReservedRoom = field(init=False)
    orphan_reservations: OrphanReservations = field(init=False)
    submitter_room: SubmitterRoom = field(init=False)
    turns: QuotaTurns = field(init=False)
    node_quota: NodeQuota = field(init=False)

    def __post_init__(self) -> None:
        self.room = ReservedRoom(self.cache)
        self.orphan_reservations = OrphanReservations(self.cache, self.room)
        self.submitter_room = SubmitterRoom(self.cache, self.room)
        self.turns = QuotaTurns(self.cache)
        self.node_quota = NodeQuota(self.quota, self.queues)

    @property
    def views(self) -> dict[GangKey, GangView]:
        """The views of this term."""
        return self.term.views

    @property
    def next_wake(self) -> float | None:
        """When time alone will have something to be done."""
        return min(self._ends(), default=None)

    def _ends(self) -> Iterator[float]:
        yield from self.agenda.wake_at.values()
        yield from (at for at in (self.agenda.lines.next_at,) if at is not None)
        alone = (
            self.agenda.turn_at,
            self.agenda.refresh_at,
            self.term.refusals.next_end,
            self.term.window.next_end,
        )
        yield from (at for at in alone if at is not None)
        leases = (each.next_at for each in self.term.manager_leases.values())
        yield from (at for at in leases if at is not None)
        for each in self.term.resumptions.values():
            if each.attempts.not_before > NEVER:
                yield each.attempts.not_before
        if self.term.forbidden_until > NEVER:
            yield self.term.forbidden_until
        if not self.blind:
            yield from (at for at in (self.reports.next_at, self.fair.next_at) if at is not None)
