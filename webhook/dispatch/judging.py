"""Judges Ray objects in queues that send their gangs to other clusters. Pure.

Such an object gets the `managedBy` with which KubeRay leaves it alone, before anyone sees it
without.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from kube.codec.pod_patches import JsonPatch
from kube.objects import names
from kube.objects.base import Labels
from webhook.admission_review import Deny
from webhook.dispatch.review import Created, CreatedSpec
from webhook.holding import Queues, is_gang, is_sent_away

FIELD: Final = "/spec/managedBy"
UNPROCESSABLE: Final = 422

Judged: TypeAlias = Deny | JsonPatch


def concerns_queues(created: Created | None, queues: Queues) -> bool:
    """Say whether a namespace is worth reading: what a controller made is left alone."""
    return bool(queues.sending) and created is not None and created.stands_alone


def judge(kind: str, created: Created, labels: Labels, queues: Queues) -> Judged:
    """Say what becomes of an object in a namespace with these labels; mostly nothing."""
    meta, spec = created.metadata, created.spec or CreatedSpec()
    if not is_gang(meta, labels) or not is_sent_away(meta, labels, queues):
        return []
    if names.KUEUE_QUEUE in meta.labels:
        return Deny(
            UNPROCESSABLE,
            f"the label {names.KUEUE_QUEUE} hands the {kind} to Kueue, and its GangQueue has "
            f"clusters; allowed: one of the two, {names.QUEUE} or that label",
        )
    if spec.cluster_selector:
        return Deny(
            UNPROCESSABLE,
            "spec.clusterSelector: a job on a RayCluster that is there stays where that is, and "
            "its GangQueue has clusters; allowed: no clusterSelector, or another GangQueue",
        )
    match spec.managed_by:
        case None | "":
            return [{"op": "add", "path": FIELD, "value": names.MANAGED_ELSEWHERE}]
        case names.MANAGED_ELSEWHERE:
            return []
    return Deny(
        UNPROCESSABLE,
        f'spec.managedBy: "{spec.managed_by}" has the {kind} run on this cluster, and '
        f"its GangQueue sends it to others; allowed: no managedBy, or {names.MANAGED_ELSEWHERE}",
    )
