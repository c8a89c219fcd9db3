"""Judges RayClusters in queues that send their gangs to other clusters. Pure.

Such a RayCluster gets the `managedBy` with which KubeRay leaves it alone, before anyone sees it
without.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from kube.codec.pod_patches import JsonPatch
from kube.objects import names
from kube.objects.base import Labels
from kube.objects.ray import RayCluster
from kube.ray.ray_owner import controller_of
from webhook.admission_review import Deny
from webhook.holding import Queues, is_gang, is_sent_away

FIELD: Final = "/spec/managedBy"
UNPROCESSABLE: Final = 422

Judged: TypeAlias = Deny | JsonPatch


def concerns_queues(cluster: RayCluster | None, queues: Queues) -> bool:
    """Say whether a namespace is worth reading: one that a controller made is left alone."""
    is_alone = cluster is not None and controller_of(cluster.metadata) is None
    return bool(queues.sending) and is_alone


def judge(cluster: RayCluster, labels: Labels, queues: Queues) -> Judged:
    """Say what becomes of a RayCluster in a namespace with these labels; mostly nothing."""
    if not is_gang(cluster, labels) or not is_sent_away(cluster, labels, queues):
        return []
    if names.KUEUE_QUEUE in cluster.metadata.labels:
        return Deny(
            UNPROCESSABLE,
            f"the label {names.KUEUE_QUEUE} hands the RayCluster to Kueue, and its GangQueue has "
            f"clusters; allowed: one of the two, {names.QUEUE} or that label",
        )
    match cluster.spec.managed_by:
        case None | "":
            return [{"op": "add", "path": FIELD, "value": names.MANAGED_ELSEWHERE}]
        case names.MANAGED_ELSEWHERE:
            return []
    return Deny(
        UNPROCESSABLE,
        f'spec.managedBy: "{cluster.spec.managed_by}" has the RayCluster run on this cluster, and '
        f"its GangQueue sends it to others; allowed: no managedBy, or {names.MANAGED_ELSEWHERE}",
    )
