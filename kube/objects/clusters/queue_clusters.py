"""GangQueue.spec.clusters: the clusters that the gangs of a queue may be sent to."""

from typing import Annotated, Any, ClassVar

from kube.objects.base import Labels, OrNull, Part
from kube.objects.gang import NAME
from kube.objects.schema import ATOMIC, ATOMIC_LIST, Allows

MOST_CLUSTERS = 100


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
