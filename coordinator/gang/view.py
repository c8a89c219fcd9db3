"""What the leader knows of a gang beyond what can be observed.

Made when a term starts, thrown away when it ends: everything in it is either read off the
Gang's record or lost without harm. A decided placement that is not yet written is here
(`durable` False) and nowhere else, and no pod is released on it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coordinator.gang.adoption import Rounds
from coordinator.gang.demand import Demand, NotReady, Settled
from coordinator.gang.expected_changes import Course
from coordinator.gang.kept_slots import Kept
from coordinator.gang.pod_sets import Standing
from coordinator.record.event_budget import Telling
from coordinator.record.logged_decisions import Notes
from coordinator.record.urgency import Urgency
from kube.objects.gang import Gang
from kube.objects.ray import RayCluster
from kube.ray.gang_terms import GangTerms, Misconfigured
from reservation.slots import Reserved
from scheduling.model.gang import GangKey
from scheduling.model.placement import Placement
from scheduling.model.verdict import Refusal

FIRST_RETRY = 0.05  # seconds; a failed test is mostly somebody's status patch, settled at once
LAST_RETRY = 15.0


@dataclass(slots=True)
class Attempts:
    """Failed tries at one thing, and when the next may be made."""

    failures: int = 0
    not_before: float = 0.0
    refusal: str = ""

    def failed(self, now: float, refusal: str) -> None:
        """Double the wait; `refusal` is what the API server said against the very change."""
        self.not_before = now + min(LAST_RETRY, FIRST_RETRY * 2**self.failures)
        self.failures = min(self.failures + 1, 16)
        self.refusal = refusal


@dataclass(slots=True)
class GangView:
    """The leader's view of one gang.

    `placement_epoch` is the term that decided the placement: pods of an earlier term's are
    fenced before they are released. `decided` counts the placements so far: while it is 0, no
    release can be on its way; `admitted_as` is the number of the last among those of all gangs.
    `durable`: the record holds this very placement.
    `targets` (pod uid -> node) are releases that were sent at least once; the node of such a
    pod never changes without a fence. `fences` (uid -> token) are the marks that a pod must
    carry before it is released. `inflight` are the uids of pods with a patch or delete under
    way, `deleted` those whose deletion was asked for and not refused; the watch will tell.
    `unsure` are those of which a patch ended nobody knows how: until another is done it may arrive.
    `leaving`: these and those that are to be deleted as soon as may be; none is a member any more.
    `bind_refusal` is what kube-scheduler said of late against a pod on its node.
    `outlived` says that the Gang of an earlier RayCluster of this name is deleted and still there.
    `refused_since`: a release is refused and nothing runs; `retreating`: so the placement will be
    given up when no release can arrive any more. `setbacks`, which count until `setback_until`,
    are how often that was, and `setback` says why the last time.
    `ran`: the whole minimum was ready at once under this placement, or before the opt-in, which
    KubeRay tells by `provisioned`. That counts only where it was said before Muster deleted a pod
    (`pod_removed`): KubeRay calls a cluster provisioned when all pods that it sees are ready.
    `terminating`: the RayCluster is being deleted. `kept` are the slots of lost pods, and `keeps` says it for people; `never_made`: KubeRay can make no pods for
    them. `rounds` are those of deletions of pods that we did not release. `written` is the status
    that the record holds, `sent` the one that was written to it last, `urgency` when the next is
    due; `replacing`: a write that changes the placement in it is under way. `asked` is what the
    last cycle was asked, `unmade` what KubeRay says of pods that it cannot create. `left_out` says
    why surplus waits that the last cycle was asked for; `outside` counts the gated pods of pod sets
    that the terms do not have, `ready` the pods that are ready where there are no terms, and
    `unknown_keys` are what the RayCluster says under muster.dev/ that has no meaning. `settled` are
    the uids of the pods that were out of our hands when the gang was looked at last; None: it was
    not yet. `telling` is what its user was told by Events, `notes` what is in the log.
    """

    key: GangKey
    cluster_uid: str
    since: float
    read: tuple[RayCluster, Mapping[str, str], GangTerms | Misconfigured] | None = None
    terms: GangTerms | None = None
    problem: str = ""
    priority: int = 0
    placement: Placement | None = None
    placement_epoch: int = 0
    decided: int = 0
    admitted_as: int = 0
    durable: bool = False
    ran: bool = False
    provisioned: bool = False
    pod_removed: bool = False
    terminating: bool = False
    standing: Standing = ()
    asked: Demand = field(default_factory=Settled)
    unmade: NotReady | None = None
    left_out: Refusal | None = None
    outside: dict[str, int] = field(default_factory=dict)
    ready: int = 0
    unknown_keys: str = ""
    refusal: Refusal | None = None
    position: int = 0
    reserved: Reserved = field(default_factory=Reserved)
    targets: dict[str, str] = field(default_factory=dict)
    fences: dict[str, str] = field(default_factory=dict)
    inflight: set[str] = field(default_factory=set)
    course: Course = field(init=False)
    deleted: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)
    leaving: set[str] = field(default_factory=set)
    attempts: dict[str, Attempts] = field(default_factory=dict)
    stuck_since: dict[str, float] = field(default_factory=dict)
    bind_refusal: str = ""
    kept: Kept = field(default_factory=Kept)
    keeps: str = ""
    never_made: bool = False
    rounds: Rounds = field(default_factory=Rounds)
    torn_since: float | None = None
    refused_since: float | None = None
    retreating: bool = False
    setbacks: int = 0
    setback_until: float = 0.0
    setback: str = ""
    out_since: float | None = None
    record: Gang | None = None
    outlived: str = ""
    sent: dict[str, Any] = field(default_factory=dict)
    writing: bool = False
    replacing: bool = False
    write_attempts: Attempts = field(default_factory=Attempts)
    written: dict[str, Any] = field(default_factory=dict)
    urgency: Urgency = field(default_factory=Urgency)
    due: float | None = None
    telling: Telling = field(default_factory=Telling)
    notes: Notes = field(default_factory=Notes)
    settled: frozenset[str] | None = None

    def __post_init__(self) -> None:
        self.course = Course(self.inflight)

    @property
    def released_any(self) -> bool:
        """Whether a pod of the gang is out of our hands, or may be."""
        settled = any(pod_set.settled for pod_set in self.standing)
        return settled or bool((self.inflight | self.targets.keys()) - self.leaving)

    @property
    def waits_for_room(self) -> bool:
        """Whether the gang neither has a placement nor runs without one, nor is at its end."""
        return self.placement is None and not (self.ran or self.terminating)

    def attempts_at(self, uid: str) -> Attempts:
        """The failed tries at a pod; made on first use."""
        return self.attempts.setdefault(uid, Attempts())

    def forget_pods(self, alive: set[str]) -> None:
        """Drop what is known of pods that are no more."""
        for notes in (self.targets, self.fences, self.attempts, self.stuck_since):
            for uid in notes.keys() - alive:
                del notes[uid]
        self.inflight &= alive
        self.unsure &= alive
        self.deleted &= alive
        self.notes.forget_pods(alive)
