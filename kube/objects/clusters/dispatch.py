"""Gang.status.dispatch: the record of a gang that another cluster runs, and the rules that read it.

The dispatcher alone writes the record, the coordinator the rest of the status. What either may do
follows from both: `is_its_turn` and `is_to_end` are what the dispatcher asks of a Gang.
"""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from kube.objects.base import OrNull, Part, Slim
from kube.objects.schema import Allows, map_of, rules

if TYPE_CHECKING:
    from kube.objects.gang import GangStatus

ASKED, OFFERED, STARTED, CLOSED = "Asked", "Offered", "Started", "Closed"
DISPATCH_PHASES = (ASKED, OFFERED, STARTED, CLOSED)

JOB_COMPLETE, JOB_FAILED, JOB_GONE = "JobComplete", "JobFailed", "JobGone"
ENDS = (JOB_COMPLETE, JOB_FAILED, JOB_GONE)
"""How a gang is over for good, by the word of the member that ran it."""

QUOTA_RESERVED = "QuotaReserved"
"""Phase of a Gang whose turn it is: its quota is reserved, and the dispatcher finds its cluster."""

MOST_REFUSALS = 100

_POSITIVE: dict[str, Any] = {"minimum": 1, "format": "int64"}
_CLUSTER: dict[str, Any] = {"maxLength": 253}
_TERM_RULE = (
    "!has(oldSelf.term) || (has(self.term) && self.term >= oldSelf.term)",
    "written by an earlier leader: term must not decrease",
)
_ATTEMPT_RULE = (
    "!has(oldSelf.attempt) || (has(self.attempt) && self.attempt >= oldSelf.attempt)",
    "attempt must not decrease",
)
_CLUSTER_RULE = (
    (
        "!has(oldSelf.cluster) || oldSelf.cluster == '' || self.attempt != oldSelf.attempt || "
        "(has(self.cluster) && self.cluster == oldSelf.cluster)"
    ),
    "an attempt stays on the cluster that was recorded for it",
)
_FENCE_RULE = (
    (
        "self.attempt != oldSelf.attempt || "
        "self.?lostAfterSeconds.orValue(0) == oldSelf.?lostAfterSeconds.orValue(0)"
    ),
    "an attempt keeps the rule for lost clusters that it began with",
)


class ClusterRefusal(Slim, frozen=True):
    """Why one cluster does not take the gang now."""

    cluster: Annotated[str, Allows("The MemberCluster.", required=True, **_CLUSTER)] = ""
    message: Annotated[str, Allows("Why, in one line.", maxLength=1024)] = ""


class StopsGangs(Slim, frozen=True):
    """The one cluster that may stop gangs for this one now."""

    cluster: Annotated[str, Allows("The MemberCluster.", required=True, **_CLUSTER)] = ""
    until: Annotated[str, Allows("Then another one may.", format="date-time")] = ""


class GangDispatch(Part, frozen=True):
    """Where the gang is sent; the dispatcher alone writes it, on the resourceVersion it read."""

    schema_extra: ClassVar[dict[str, Any]] = rules(
        _TERM_RULE, _ATTEMPT_RULE, _CLUSTER_RULE, _FENCE_RULE
    )

    attempt: Annotated[
        int, Allows("Counts the tries to run it, on any cluster.", required=True, **_POSITIVE)
    ] = 1
    cluster: Annotated[
        str,
        Allows(
            "The MemberCluster on which the attempt may start; absent until that is decided, then "
            "the same to its end.",
            **_CLUSTER,
        ),
    ] = ""
    term: Annotated[
        int, Allows("That of the last leader that wrote here.", required=True, **_POSITIVE)
    ] = 0
    phase: Annotated[
        str,
        Allows(
            "Asked: clusters are asked for room. Offered: one is recorded. Started: it runs there, "
            "or is created. Closed: nothing of the attempt runs, or ever will.",
            required=True,
            enum=list(DISPATCH_PHASES),
        ),
    ] = ASKED
    lost_after_seconds: Annotated[
        int,
        Allows(
            "Seconds for which the cluster may be lost; then the gang has stopped there, and is "
            "sent elsewhere. Absent means for ever.",
            **_POSITIVE,
        ),
    ] = 0
    reason: Annotated[
        str, Allows("Why it lacks pods there, in one word, while it does.", maxLength=1024)
    ] = ""
    message: Annotated[str, Allows("What the cluster says of it.", maxLength=32768)] = ""
    end: Annotated[
        str,
        Allows(
            "How it ended on the cluster, where it is not to be sent anywhere again. JobGone: it "
            "was deleted there, and how it ended is not known.",
            enum=list(ENDS),
        ),
    ] = ""
    refusals: Annotated[
        OrNull[tuple[ClusterRefusal, ...]],
        Allows(
            "Why clusters do not take it, those that were asked.",
            maxItems=MOST_REFUSALS,
            **map_of("cluster"),
        ),
    ] = ()
    stops_gangs: Annotated[
        StopsGangs | None,
        Allows("Which cluster may stop gangs for it, or ask for nodes: none has room as it is."),
    ] = None

    @property
    def is_recorded(self) -> bool:
        """Whether it may start on the cluster that is on record, or runs there."""
        return bool(self.cluster) and self.is_open

    @property
    def is_open(self) -> bool:
        """Whether something of the attempt may run, or may still come."""
        return self.phase != CLOSED


NEVER_DISPATCHED = GangDispatch(attempt=0, phase=CLOSED)
"""In the place of the record, while there is none."""


def is_its_turn(status: "GangStatus") -> bool:
    """Whether the dispatcher may ask clusters for the gang, and choose one.

    Its quota is reserved, and not still for an attempt that is closed: the coordinator says by
    `dispatchAfter` up to which attempt it has heard of the end.
    """
    found = status.dispatch
    if status.phase != QUOTA_RESERVED or is_to_end(status):
        return False
    if found is None or found.is_open:
        return True
    return not found.end and found.attempt <= status.dispatch_after


def is_to_end(status: "GangStatus") -> bool:
    """Whether an attempt that is open is to be withdrawn: the gang holds its quota no more.

    Also where it is about to lose it: another gang is to have it, or its user suspended it.
    """
    return status.placement is None or any(not each.replicas for each in status.evictions)
