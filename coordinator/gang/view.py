"""Holds what the leader knows of one gang beyond what can be observed, in parts by their writers.

Made when a term starts, thrown away when it ends: everything in it is either read off the
Gang's record or lost without harm. A decided placement that is not yet written is here
(`survey.durable` False) and nowhere else, and no pod is released on it.

Each part names the modules that write it; every other module only reads it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from coordinator.gang.attempts import Attempts
from coordinator.gang.below_minimum import Breaks
from coordinator.gang.demand import Demand, NotReady, Settled
from coordinator.gang.eviction.endings import Eviction
from coordinator.gang.held_start.phases import Phase
from coordinator.gang.held_start.start import HeldStart
from coordinator.gang.late_starts import LateStarts
from coordinator.gang.node_requests import NodeCalls
from coordinator.gang.pods.adoption import Rounds
from coordinator.gang.pods.expected_changes import Course
from coordinator.gang.pods.kept_slots import Kept, Start
from coordinator.gang.pods.pod_sets import Standing
from coordinator.messages.actions import Regarding
from coordinator.messages.clock import Deadlines
from coordinator.record.event_budget import Telling
from coordinator.record.logged_decisions import Notes
from coordinator.record.urgency import Urgency
from kube.foreseen.namespace_quota import Charges
from kube.gang.source import GangSource
from kube.objects.gang import Gang
from kube.ray.gang_terms import GangTerms, Misconfigured
from reservation.slots import Reserved
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.placement import Placement
from scheduling.model.queue import DEFAULT_QUEUE
from scheduling.model.verdict import Refusal

MOST_IN_FLIGHT = 32
"""Nominations of one gang under way at one time; of a large gang more."""

PARTS = 8
"""The pods of a large gang are nominated in so many parts, and in twice as many looks at all of
them: a fixed number of pods at a time would take the more looks, the larger the gang is."""

NOWHERE = frozenset[str]()
"""No nodes."""

LONGEST_ASTRAY = 5.0
"""Seconds for which releases wait for the end of nominations that take their room."""


@dataclass(slots=True)
class Understood:
    """What the RayCluster asks for, as understood. Written by `reconcile.terms`.

    `said` is what was read last, and `read` the objects that it was read from. `terms` are those
    that the gang goes on with, None where there are none; `problem` says why the RayCluster's own
    cannot be used.
    """

    read: tuple[GangSource, *tuple[object, ...]] | None = None
    said: GangTerms | Misconfigured | None = None
    terms: GangTerms | None = None
    problem: str = ""
    queue: str = DEFAULT_QUEUE
    """Of the terms; without any, the one that the RayCluster asks for."""
    priority: int = 0
    has_quota: bool = False
    """Its queue holds it to a quota."""
    provisioned: bool = False
    """KubeRay says that all pods were ready once, and said so before Muster deleted any."""
    terminating: bool = False
    """The RayCluster is being deleted."""
    never_made: bool = False
    """KubeRay can or will create no pods for the RayCluster as it is."""
    head_lost: bool = False
    """The head is gone, and KubeRay makes no other for this RayCluster."""


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
    admitted_at: float | None = None
    """When the gang got a placement while it had none, in seconds since 1970."""
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
    refusal: Refusal | None = None
    left_out: Refusal | None = None
    """Why the surplus waits that the last cycle was asked for."""
    planned: Placement | None = None
    """Where the gang will be once what ends already has ended; until the first cycle of a term
    as the record says, or where its pods were nominated. Nothing is released on it."""
    position: int = 0


@dataclass(slots=True)
class PodWrites:
    """The writes to pods of the gang, by uid.

    Written by `reconcile.pod_writes`, which asks for them, and by `state.intake`, which hears how
    they ended.
    """

    targets: dict[str, str] = field(default_factory=dict)
    """Nodes of releases that were sent: the node of such a pod never changes without a fence."""
    fences: dict[str, str] = field(default_factory=dict)
    """The tokens that pods must carry before they are released."""
    inflight: set[str] = field(default_factory=set)
    """Pods with a patch or a deletion under way."""
    deleted: set[str] = field(default_factory=set)
    """Pods whose deletion was asked for and not refused; the watch will tell."""
    unsure: set[str] = field(default_factory=set)
    """Pods with a patch of unknown outcome: until another one is done it may still arrive."""
    leaving: set[str] = field(default_factory=set)
    """`deleted`, and those that are to be deleted as soon as may be; none is a member any more."""
    attempts: dict[str, Attempts] = field(default_factory=dict)
    withdrawn_since: float | None = None
    """No release of the gang was sent since then, and none is to arrive any more."""
    doubted_since: float | None = None
    """When the last release ended of which it is not known what became of it. One of an earlier
    leader ended before the view was opened. None: there was no such release."""

    def attempts_at(self, uid: str) -> Attempts:
        """The failed tries at a pod; made on first use."""
        return self.attempts.setdefault(uid, Attempts())

    def forget_pods(self, alive: set[str]) -> None:
        """Drop what is known of pods that are gone."""
        forget(alive, self.targets, self.fences, self.attempts)
        self.inflight &= alive
        self.unsure &= alive
        self.deleted &= alive


FIRST_MOVE_PAUSE = 1.0
LONGEST_MOVE_PAUSE = 15.0
CALM = 30.0
"""Seconds after which the earlier moves of a plan are forgotten."""


@dataclass(slots=True)
class PlanMoves:
    """The moves of a plan to other nodes, and until when its pods are not nominated there.

    A move costs two writes for each of its pods. So a plan that moves again and again is followed
    ever more seldom; what it leaves is taken back at once.
    """

    places: Counter[str] = field(default_factory=Counter)
    count: int = 0
    moved_at: float = float("-inf")
    until: float = float("-inf")

    def follow(self, places: Iterable[str], now: float) -> bool:
        """Note the node of each pod of the plan; say whether pods may be nominated there now."""
        before, self.places = self.places, Counter(places)
        if before - self.places:
            self.count = 1 if now >= self.moved_at + CALM else self.count + 1
            pause = FIRST_MOVE_PAUSE * 2.0 ** min(self.count - 1, 16)
            self.moved_at, self.until = now, now + min(LONGEST_MOVE_PAUSE, pause)
        return now >= self.until


@dataclass(slots=True)
class Nominating:
    """The writes of nominations. Written by `reconcile.pod_writes.nominations` and `intake`.

    `tries` are all that were asked for, with the time before which a pod is not written again,
    `aims` where those pods belong (uid -> node, empty for none), and `inflight` the writes that are
    under way (uid -> node), of which `taking_back` end a nomination; `most` of either may be, and
    `crowded` says that others wait for those. `held_up_since` is since when none of the gang was
    released, of which `released` pods are, and since when it is `in_line` for its turn or not;
    `next_at` is when time alone has something to be written. `astray` are the nodes to which pods
    are nominated that should not be, with the time until which nothing is released there.
    `planned_to` are the nodes to which pods are nominated for a plan, `withheld` those of the plan
    to which they are not, for gangs reserve room there; `moves` are those of the plan.
    """

    held_up_since: float | None = None
    released: int = 0
    in_line: bool = False
    inflight: dict[str, str] = field(default_factory=dict)
    taking_back: set[str] = field(default_factory=set)
    most: int = MOST_IN_FLIGHT
    tries: dict[str, Attempts] = field(default_factory=dict)
    aims: dict[str, str] = field(default_factory=dict)
    crowded: bool = False
    next_at: float | None = None
    astray: dict[str, float] = field(default_factory=dict)
    planned_to: frozenset[str] = NOWHERE
    withheld: frozenset[str] = NOWHERE
    moves: PlanMoves = field(default_factory=PlanMoves)

    def aim(self, uid: str, node: str) -> None:
        """Note where a pod belongs; where that changes, no write waits for what failed before."""
        if self.aims.get(uid) != node:
            self.aims[uid] = node
            self.tries.pop(uid, None)

    def ask(self, uid: str, node: str, now: float) -> None:
        """Note a write; where others undo it, the next one waits twice as long."""
        self.tries.setdefault(uid, Attempts()).failed(now, "")
        self.inflight[uid] = node
        if not node:
            self.taking_back.add(uid)

    def for_plan(self, planned_to: frozenset[str], withheld: frozenset[str]) -> None:
        """Note which nodes of a plan pods are nominated to, and which they are not."""
        self.planned_to, self.withheld = planned_to, withheld

    def mark_misnominated(self, nodes: frozenset[str], now: float) -> None:
        """Note the nodes to which pods are nominated that should not be."""
        self.astray = {node: self.astray.get(node, now + LONGEST_ASTRAY) for node in nodes}
        for until in (each for each in self.astray.values() if each > now):
            self.due_by(until)

    def blocked_nodes_at(self, now: float) -> frozenset[str]:
        """Return the nodes on which nothing is released for it now."""
        return frozenset(node for node, until in self.astray.items() if now < until)

    def due_by(self, at: float) -> None:
        """Note a moment at which something may be written."""
        self.next_at = at if self.next_at is None else min(self.next_at, at)

    def begin_writes(self, pods: int) -> None:
        """Begin to write to pods of a gang, of which there are so many."""
        self.most = max(MOST_IN_FLIGHT, pods // PARTS)
        self.crowded = False

    def may_write(self, uid: str, node: str, now: float) -> bool:
        """Whether there is room for a write, and its time has come; else it is noted when it has.

        No gang crowds out the writes of others. Nominations, which let others pass, hold up none
        that end one.
        """
        tried = self.tries.get(uid)
        if tried is not None and tried.not_before > now:
            self.due_by(tried.not_before)
            return False
        ending = len(self.taking_back)
        full = (len(self.inflight) - ending if node else ending) >= self.most
        self.crowded |= full
        return not full

    def ended(self, uid: str) -> bool:
        """Note the end of a write; say whether something may wait for it."""
        last_taken_back = self.taking_back == {uid}
        self.inflight.pop(uid, None)
        self.taking_back.discard(uid)
        few = len(self.inflight) <= self.most // 2
        return last_taken_back or not self.inflight or (self.crowded and few)

    def forget_pods(self, alive: set[str]) -> None:
        """Drop what is known of pods that are gone."""
        forget(alive, self.tries, self.aims, self.inflight)
        self.taking_back &= alive


@dataclass(slots=True)
class Unmade:
    """How many pods of the gang there are while some are missing, and since when so many.

    `woken`: KubeRay was asked since then to look again.
    """

    exist: int
    since: float
    woken: bool = False
    fits: bool = False
    """A ResourceQuota refused them, and has room for them now."""


@dataclass(slots=True)
class Repairs:
    """What goes wrong with pods of the gang, and since when.

    Written by `gang.repair`, `reconcile.pod_writes.deletions`, `reconcile.repair.lost_slots`,
    `reconcile.repair.missed_pods` and, where a part is lost for good, by `reconcile.below_minimum`.
    """

    stuck_since: dict[str, float] = field(default_factory=dict)
    torn_since: float | None = None
    lost_room: bool = False
    """Slots were dropped since their room was not there any more; others may have taken it."""
    rounds: Rounds = field(default_factory=Rounds)
    """When pods that Muster did not release may be deleted."""
    pod_removed: bool = False
    """Muster has deleted a pod of the gang, or an earlier leader may have."""
    unmade: Unmade | None = None
    bind_refusal: str = ""
    """What kube-scheduler said of late against a pod on its node."""
    settled: frozenset[str] | None = None
    """Pods that were released or bound at the last look; None: there was none yet."""
    kept: Kept = field(default_factory=Kept)
    """The slots of lost pods."""
    kept_text: str = ""
    had: dict[str, int] = field(default_factory=dict)
    """By pod set how many pods of its minimum a gang that ran has had: what it lacks is lost."""
    below_since: Start | None = None
    """When a gang that ran lost a part of its minimum that is not back on nodes."""
    below_text: str = ""
    """Says of one that lacks it for good that it goes on without, and why."""


@dataclass(slots=True)
class Retreat:
    """Gives the placement up because a release is refused. Written by `reconcile.repair.setbacks`.

    `refused_since`: a release is refused and nothing runs. `under_way`: the placement is given up
    once no release can arrive any more. `count` is how often that was, which the record holds; it
    is a setback until `until` (seconds since 1970). `text` says why the last time.
    """

    refused_since: float | None = None
    under_way: bool = False
    count: int = 0
    until: float = 0.0
    text: str = ""


@dataclass(slots=True)
class QuotaShare:
    """What ResourceQuotas count of the gang. Written by `reconcile.held_start.quota_stakes`."""

    text: str = ""
    """Says who has the quota that it lacks."""
    charges: Mapping[str, Charges] = field(default_factory=dict)
    """Of one pod, by pod set."""
    priority: int = 0
    """The lowest of the pods to come."""
    read: tuple[int, int] | None = None
    """The generation and the edition of the rules that this was worked out of."""


@dataclass(slots=True)
class Record:
    """The Gang object of the RayCluster, and the writes to it.

    Written by `reconcile.record.recording`, and by `intake`, which hears how a write ended.
    """

    gang: Gang | None = None
    outlived: str = ""
    """Says that the Gang of an earlier RayCluster of this name is deleted and still there."""
    written: dict[str, Any] = field(default_factory=dict)
    """The status that the record holds."""
    sent: dict[str, Any] = field(default_factory=dict)
    """The status that was written to it last."""
    writing: bool = False
    replacing: bool = False
    """A write that changes the placement in it is under way."""
    drops_held: bool = False
    """The API server has the Gangs' definition (CRD) of a release without held starts."""
    attempts: Attempts = field(default_factory=Attempts)
    urgency: Urgency = field(default_factory=Urgency)
    due: float | None = None
    """When the next write of it is due."""


@dataclass(slots=True)
class GangView:
    """The leader's view of one gang; `since` is when it was opened (monotonic seconds).

    `course` are the steps that its pods have before them, `telling` is what its user was told by
    Events, `notes` what is in the log, `unknown_keys` what the RayCluster says under muster.dev/
    that has no meaning. Before the gang was `looked_at`, it is not known here what it asks for.
    `out_since` is when an opt-out was first seen. `late` counts the starts in a row that were not
    ready in time; written by `reconcile.late_starts` and `reconcile.opening`. `breaks` counts how
    often it was stopped for a part that was lost for good; written by `reconcile.below_minimum` and
    `reconcile.opening`. `deadlines` are those that a clock which is set does not move. `not_held`
    says why it is not held though it is to be; written by `reconcile.held_start`. `owner` is the
    RayJob or RayService that made it, and `owner_text` says what that means for its wait; written
    by `reconcile.owner_deadlines`.
    """

    key: GangKey
    cluster_uid: str
    since: float
    understood: Understood = field(default_factory=Understood)
    reservation: Reservation = field(default_factory=Reservation)
    survey: Survey = field(default_factory=Survey)
    queueing: Queueing = field(default_factory=Queueing)
    pod_writes: PodWrites = field(default_factory=PodWrites)
    nominating: Nominating = field(default_factory=Nominating)
    repairs: Repairs = field(default_factory=Repairs)
    retreat: Retreat = field(default_factory=Retreat)
    eviction: Eviction = field(default_factory=Eviction)
    late: LateStarts | None = None
    breaks: Breaks | None = None
    deadlines: Deadlines = field(default_factory=Deadlines)
    held: HeldStart = field(default_factory=HeldStart)
    not_held: str = ""
    quota: QuotaShare = field(default_factory=QuotaShare)
    nodes: NodeCalls = field(default_factory=NodeCalls)
    record: Record = field(default_factory=Record)
    course: Course = field(init=False)
    telling: Telling = field(default_factory=Telling)
    notes: Notes = field(default_factory=Notes)
    unknown_keys: str = ""
    owner: tuple[Regarding, ...] = ()
    owner_text: str = ""
    looked_at: bool = False
    out_since: float | None = None

    def __post_init__(self) -> None:
        self.course = Course(self.pod_writes.inflight)

    @property
    def released_any(self) -> bool:
        """Whether a pod of the gang is released, or may be."""
        settled = any(pod_set.settled for pod_set in self.survey.standing)
        writes = self.pod_writes
        return settled or bool((writes.inflight | writes.targets.keys()) - writes.leaving)

    @property
    def expects_pods(self) -> bool:
        """Whether the RayCluster was resumed and the pods of the minimum are still to come."""
        if self.held.phase is not Phase.RESUMED or self.released_any:
            return False
        return any(each.exist < each.terms.minimum for each in self.survey.standing)

    @property
    def waits_for_room(self) -> bool:
        """Whether the gang neither has a placement nor runs without one, nor is at its end."""
        runs = self.survey.ran or self.understood.terminating
        return self.reservation.placement is None and not runs and not self.is_finished

    @property
    def is_finished(self) -> bool:
        """Whether what the gang was for has ended: it counts nowhere."""
        return isinstance(self.queueing.asked, NotReady) and self.queueing.asked.is_final

    @property
    def asks_for_minimum(self) -> bool:
        """Whether the gang asks a cycle for room for its minimum, or for what it lost of that."""
        asked = self.queueing.asked
        return isinstance(asked, PendingGang) and bool(asked.minimum)

    def forget_pods(self, alive: set[str]) -> None:
        """Drop what is known of pods that are gone."""
        self.pod_writes.forget_pods(alive)
        self.nominating.forget_pods(alive)
        forget(alive, self.repairs.stuck_since)
        self.notes.forget_pods(alive)


def forget(alive: set[str], *notes: dict[str, Any]) -> None:
    """Drop from each of the notes the pods that are gone."""
    for each in notes:
        for uid in each.keys() - alive:
            del each[uid]
