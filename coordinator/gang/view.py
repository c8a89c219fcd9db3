"""Holds what the leader knows of one gang beyond what can be observed, in parts by their writers.

Made when a term starts, thrown away when it ends: everything in it is either read off the
Gang's record or lost without harm. A decided placement that is not yet written is here
(`survey.durable` False) and nowhere else, and no pod is released on it.

Each part names the modules that write it; every other module only reads it.
"""

from dataclasses import dataclass, field

from coordinator.gang.demand import Demand, NotReady, Settled, is_gathered
from coordinator.gang.eviction.endings import Eviction
from coordinator.gang.held_start.phases import Phase
from coordinator.gang.held_start.quota_stakes import QuotaStake
from coordinator.gang.held_start.start import HeldStart
from coordinator.gang.node_requests import NodeRequestState
from coordinator.gang.pods.expected_changes import ExpectedChanges
from coordinator.gang.pods.nominating import Nominating
from coordinator.gang.pods.pod_sets import Standing
from coordinator.gang.pods.pod_writes import PodWrites, forget
from coordinator.gang.pods.repairs import Repairs
from coordinator.gang.record import Record
from coordinator.gang.setbacks.below_minimum import Breaks
from coordinator.gang.setbacks.late_starts import LateStarts
from coordinator.gang.setbacks.refused_releases import Refused, RefusedReleases
from coordinator.gang.terms import NOT_READ, Understood
from coordinator.gang.together import ALONE, Membership, PlacedSet
from coordinator.messages.clock import Deadlines
from coordinator.record.event_budget import EventBudget
from coordinator.record.logged_decisions import LoggedDecisions
from kube.objects.ray import RayOwner
from reservation.slots import Reserved
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.placement import Placement
from scheduling.model.verdict import Refusal


@dataclass(slots=True)
class Reservation:
    """The placement of the gang, and the room that it keeps.

    The placement is written by `run_cycle`, by `reconcile.opening`, and by the steps of `reconcile`
    that take slots away; `reserved` by `reserved_room`, `queue` also by `reconcile.terms`,
    the rest by `run_cycle` and `opening`.
    """

    placement: Placement | None = None
    epoch: int = 0
    """The term that decided the placement; it is part of what the record holds."""
    queue: str = ""
    """The queue whose quota the gang holds, also part of the record; empty while it holds none."""
    decided: int = 0
    """Placements so far: while it is 0, no release can be on its way."""
    admitted_as: int = 0
    """The number of the last placement among those of all gangs."""
    closed: int = 0
    """The last attempt on another cluster that is known to be closed, also part of the record."""
    admitted_at: float | None = None
    """When the gang got a placement while it had none, in seconds since 1970."""
    together: PlacedSet = ALONE
    """With which others it was placed at once, also part of the record."""
    minimums: dict[str, int] = field(default_factory=dict)
    """How many pods of each pod set had to start at once when it began, or fewer since; empty where
    that is only in the record. Also written by `reconcile.terms`."""
    reserved: Reserved = field(default_factory=Reserved)


@dataclass(slots=True)
class Survey:
    """Where the pods of the gang stand. Written by `reconcile.surveying`."""

    standing: Standing = ()
    outside: dict[str, int] = field(default_factory=dict)
    """Gated pods of pod sets that the terms do not have, by name of the set."""
    ready: int = 0
    """Pods that are ready, also where there are no terms."""
    durable: bool = False
    """The record holds this very placement."""
    ran: bool = False
    """The whole minimum was ready at once under this placement, or before the opt-in."""


@dataclass(slots=True)
class Queueing:
    """What the gang asks of a cycle, written by `reconcile.demand`, and the last cycle's answer.

    The answer (`refusal`, `left_out`, `position`) is written by `run_cycle`, and cleared where the
    gang asks for nothing any more.
    """

    asked: Demand = field(default_factory=Settled)
    unmade: NotReady | None = None
    """What KubeRay says of pods that it cannot create."""
    unclaimed: bool = False
    """Whether pods of the minimum wait for claims of devices, and are as good as not created."""
    refusal: Refusal | None = None
    left_out: Refusal | None = None
    """Why the surplus waits that the last cycle was asked for."""
    planned: Placement | None = None
    """Where the gang will be once what ends already has ended; until the first cycle of a term
    as the record says, or where its pods were nominated. Nothing is released on it."""
    position: int = 0


@dataclass(slots=True)
class GangView:
    """The leader's view of one gang."""

    key: GangKey
    cluster_uid: str
    since: float
    """When it was opened (monotonic seconds)."""
    understood: Understood = NOT_READ
    reservation: Reservation = field(default_factory=Reservation)
    survey: Survey = field(default_factory=Survey)
    queueing: Queueing = field(default_factory=Queueing)
    pod_writes: PodWrites = field(default_factory=PodWrites)
    nominating: Nominating = field(default_factory=Nominating)
    repairs: Repairs = field(default_factory=Repairs)
    release_refused: Refused | None = None
    refused_releases: RefusedReleases = field(default_factory=RefusedReleases)
    """That it gave its room back for it; both are written as `late_starts` is."""
    eviction: Eviction = field(default_factory=Eviction)
    late_starts: LateStarts | None = None
    """Starts in a row that were late; written by `reconcile.setbacks` and `reconcile.opening`."""
    breaks: Breaks | None = None
    """How often it was stopped for a part that was lost for good; written by the same."""
    deadlines: Deadlines = field(default_factory=Deadlines)
    """Those that a clock which is set does not move."""
    held: HeldStart = field(default_factory=HeldStart)
    not_held: str = ""
    """Why it is not held though it is to be; written by `reconcile.held_start`."""
    quota_stake: QuotaStake = field(default_factory=QuotaStake)
    together: Membership = field(default_factory=Membership)
    node_request: NodeRequestState = field(default_factory=NodeRequestState)
    record: Record = field(default_factory=Record)
    expected_changes: ExpectedChanges = field(default_factory=ExpectedChanges)
    """The steps that its pods have before them."""
    events: EventBudget = field(default_factory=EventBudget)
    """What its user was told by Events."""
    logged: LoggedDecisions = field(default_factory=LoggedDecisions)
    """What is in the log."""
    unknown_keys: str = ""
    """What the RayCluster says under muster.dev/ that has no meaning."""
    owner: RayOwner | None = None
    """What made it; written by `reconcile.owner_deadlines`."""
    looked_at: bool = False
    """Before, it is not known here what it asks for."""
    out_since: float | None = None
    """When an opt-out was first seen."""

    @property
    def released_any(self) -> bool:
        """Whether a pod of the gang is released, or may be."""
        settled = any(pod_set.settled for pod_set in self.survey.standing)
        writes = self.pod_writes
        return settled or bool((writes.inflight | writes.targets.keys()) - writes.leaving)

    @property
    def gives_up(self) -> bool:
        """Whether it gives its placement up, for a release is refused."""
        return self.release_refused is not None and self.release_refused.gives_up

    @property
    def expects_pods(self) -> bool:
        """Whether the RayCluster was resumed and pods of the minimum, or claims, are to come."""
        if self.held.phase is not Phase.RESUMED or self.released_any:
            return False
        lacks = any(each.exist < each.terms.minimum for each in self.survey.standing)
        return lacks or bool(self.repairs.devices.unclaimed)

    @property
    def is_gathered(self) -> bool:
        """Whether every pod of the minimum exists, with all its claims of devices."""
        standing = self.survey.standing
        unclaimed = self.queueing.unclaimed or self.repairs.devices.unclaimed
        return bool(standing) and is_gathered(standing) and not unclaimed

    @property
    def waits_for_room(self) -> bool:
        """Whether the gang neither has a placement nor runs without one, nor is at its end."""
        runs = self.survey.ran or self.understood.terminating
        return self.reservation.placement is None and not runs and not self.is_finished

    @property
    def waits_stopped(self) -> bool:
        """Whether it was stopped whole, and has no placement since."""
        is_placed = self.reservation.placement is not None
        return self.eviction.last is not None and self.eviction.whole is None and not is_placed

    @property
    def is_finished(self) -> bool:
        """Whether what the gang was for has ended: it counts nowhere."""
        return isinstance(self.queueing.asked, NotReady) and self.queueing.asked.is_final

    @property
    def question(self) -> PendingGang | None:
        """What the gang asks of a cycle, once there is a record that can hold the answer."""
        asked = self.queueing.asked
        if self.record.gang is None or not isinstance(asked, PendingGang):
            return None
        return asked

    @property
    def asks_for_minimum(self) -> bool:
        """Whether the gang asks a cycle for room for its minimum, or for what it lost of that."""
        asked = self.queueing.asked
        return isinstance(asked, PendingGang) and bool(asked.minimum)

    @property
    def joins(self) -> bool:
        """Whether all members of its group ask, and are decided as one."""
        return self.together.asks is not None and self.together.asks is self.queueing.asked

    def forget_pods(self, alive: set[str]) -> None:
        """Drop what is known of pods that are gone."""
        self.pod_writes.forget_pods(alive)
        self.nominating.forget_pods(alive)
        forget(alive, self.repairs.stuck_since)
        self.logged.forget_pods(alive)
