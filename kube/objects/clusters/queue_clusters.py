"""GangQueue.spec.clusters: the clusters that the gangs of a queue may be sent to."""

from typing import Annotated, Any, ClassVar

from kube.objects.base import Labels, OrNull, Part
from kube.objects.gang import NAME
from kube.objects.schema import ATOMIC, ATOMIC_LIST, Allows

MOST_CLUSTERS = 100

WAIT, REQUEUE = "Wait", "Requeue"
"""What becomes of gangs whose cluster is lost."""

LOST_AFTER = 900
LEAST_LOST_AFTER, LONGEST_LOST_AFTER = 300, 30 * 24 * 3600
"""Seconds: the half of it has to be enough for a gang to stop."""


class ClusterSelector(Part, frozen=True):
    """Labels that must all be those of the MemberCluster; none at all select every one."""

    schema_extra: ClassVar[dict[str, Any]] = ATOMIC

    match_labels: OrNull[Labels] = {}


class QueueClusters(Part, frozen=True):
    """Which MemberClusters the gangs of the queue may go to, and which of them they try first."""

    selector: Annotated[ClusterSelector, Allows("By labels; absent selects all of them.")] = (
        ClusterSelector()
    )
    order: Annotated[
        OrNull[tuple[Annotated[str, Allows(**NAME)], ...]],
        Allows(
            "Names of MemberClusters, the one that is tried first before all. Those that are not "
            "named come after them, by name.",
            maxItems=MOST_CLUSTERS,
            **ATOMIC_LIST,
        ),
    ] = ()
    lost_after_seconds: Annotated[
        int,
        Allows(
            "Seconds after which a cluster that is not heard of is lost, where whenClusterLost is "
            "Requeue.",
            minimum=LEAST_LOST_AFTER,
            maximum=LONGEST_LOST_AFTER,
            format="int64",
        ),
    ] = LOST_AFTER
