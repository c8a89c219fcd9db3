"""The answer for one gang: admitted with a placement, or refused with a reason.

The values are the words users read: a Reason is the same string in conditions, Events, metrics
and logs.
"""

from dataclasses import dataclass
from enum import StrEnum

from scheduling.model.gang import GangKey, Group, PendingGang
from scheduling.model.holder import Held
from scheduling.model.placement import Placement

MESSAGE_LIMIT = 1024
"""The API server cuts Event messages here; longer conditions are hard to read."""


class Reason(StrEnum):
    """Why a gang is where it is; most are given by the core, the rest by the coordinator."""

    GANG_INCOMPLETE = "GangIncomplete"
    SUSPENDED = "Suspended"
    INSUFFICIENT_RESOURCES = "InsufficientResources"
    NEVER_FITS = "NeverFits"
    NO_FEASIBLE_NODE = "NoFeasibleNode"
    UNSUPPORTED = "Unsupported"
    UNDECIDED = "Undecided"
    QUOTA_EXCEEDED = "QuotaExceeded"
    QUEUE_BLOCKED = "QueueBlocked"
    QUEUE_INACTIVE = "QueueInactive"
    QUEUE_STOPPED = "QueueStopped"
    NAMESPACE_LIMIT = "NamespaceLimit"
    PREEMPTING = "Preempting"
    PREEMPTED = "Preempted"
    READY_TIMEOUT = "ReadyTimeout"
    RETRIES_EXHAUSTED = "RetriesExhausted"
    BELOW_MINIMUM = "BelowMinimum"
    MEMBER_ENDED = "MemberEnded"
    HEAD_LOST = "HeadLost"
    MISCONFIGURED = "Misconfigured"
    FOREIGN_GATES = "ForeignGates"
    PODS_REFUSED = "PodsRefused"
    NOT_RELEASED_BY_MUSTER = "NotReleasedByMuster"
    TERMINATING = "Terminating"
    OPTED_OUT = "OptedOut"
    PENDING = "Pending"
    WAITS_FOR_MEMBERS = "WaitsForMembers"
    HELD = "Held"
    NOT_HELD = "NotHeld"
    QUOTA_RESERVED = "QuotaReserved"
    ADMITTED = "Admitted"
    RELEASE_REFUSED = "ReleaseRefused"
    BIND_REFUSED = "BindRefused"
    RUNNING = "Running"
    EXCESS_PODS = "ExcessPods"
    DEADLINE_NEAR = "DeadlineNear"
    JOB_ENDED = "JobEnded"
    WRAPPER_ENDED = "AppWrapperEnded"
    NO_GANG = "NoGang"
    UNKNOWN_KEY = "UnknownKey"
    GATHERED = "Gathered"
    NOT_REQUIRED = "NotRequired"


@dataclass(frozen=True, slots=True)
class PodSetRefusal:
    """How one pod set (one of its shapes, where it has several) stands, in numbers.

    `fit` of the `wanted` pods find room beside those of the gang's other pod sets that do. The rest
    is about one more pod, which needs `each` of `resource`, the one that is shortest. On the nodes
    that the predicates allow, the gang needs `needed` of it in all and `free` is free before any of
    it is placed; those of the gang that fit leave `left`, at most `largest` on one node.
    The resource is empty where no node is allowed, and of a set that fits. `held` is which holders
    have what there is of it, where that was asked. `rejections` counts nodes by predicate.
    """

    pod_set: str
    wanted: int
    fit: int
    requests: tuple[tuple[str, int], ...]
    resource: str
    each: int
    needed: int
    free: int
    left: int
    largest: int
    rejections: tuple[tuple[str, int], ...]
    held: Held | None = None


@dataclass(frozen=True, slots=True)
class Admitted:
    """The gang may start: `placement` holds its minimum and the surplus units that fit too.

    `units` are the positions of those units in the gang's `surplus`; `left_out` says why the
    others wait, None where there are none.
    """

    placement: Placement
    units: tuple[int, ...] = ()
    left_out: "Refusal | None" = None

    @property
    def surplus(self) -> int:
        """Return how many units of the surplus were placed."""
        return len(self.units)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The gang waits; the message says why in numbers, within MESSAGE_LIMIT characters."""

    reason: Reason
    message: str
    pod_sets: tuple[PodSetRefusal, ...] = ()

    def groups_without_room(self, gang: PendingGang) -> tuple[Group, ...]:
        """Return the groups of the minimum that lack room; all of them where none is named."""
        short = {each.pod_set for each in self.pod_sets if each.fit < each.wanted}
        return tuple(each for each in gang.minimum if each.pod_set in short) or gang.minimum


Verdict = Admitted | Refusal


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict for one gang."""

    key: GangKey
    verdict: Verdict
