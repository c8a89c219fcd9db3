"""Judges Ray objects and AppWrappers in queues that send their gangs to other clusters. Pure.

A Ray object gets the `managedBy` with which KubeRay leaves it alone, before anyone sees it without.
An AppWrapper gets an annotation: its `managedBy` says whose it is, here and where it runs.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from appwrapper.gang.watched import OURS
from kube.codec.pod_patches import JsonPatch
from kube.gang.sent import WRAPPER_RESOURCES, is_noted
from kube.objects import names
from kube.objects.base import Labels
from webhook.admission_review import Deny
from webhook.dispatch.review import Created, CreatedSpec
from webhook.holding import Queues, is_gang, is_sent_away

FIELD: Final = "/spec/managedBy"
ANNOTATIONS: Final = "/metadata/annotations"
UNPROCESSABLE: Final = 422

Judged: TypeAlias = Deny | JsonPatch


def concerns_queues(created: Created | None, queues: Queues) -> bool:
    """Say whether a namespace is worth reading: what a controller made is left alone."""
    return bool(queues.sending) and created is not None and created.stands_alone


def _noted(created: Created, spec: CreatedSpec) -> JsonPatch:
    """Note on an AppWrapper that is Muster's that another cluster runs it."""
    found = created.metadata.annotations
    if spec.managed_by not in OURS or is_noted(found):
        return []
    return [{"op": "add", "path": ANNOTATIONS, "value": {**found, names.DISPATCHED: "true"}}]


def judge(kind: str, created: Created, labels: Labels, queues: Queues) -> Judged:
    """Say what becomes of an object in a namespace with these labels; mostly nothing."""
    meta, spec = created.metadata, created.spec or CreatedSpec()
    is_wrapper = kind in WRAPPER_RESOURCES
    if not is_sent_away(meta, labels, queues) or not (is_wrapper or is_gang(meta, labels)):
        return []
    if names.KUEUE_QUEUE in meta.labels:
        return Deny(
            UNPROCESSABLE,
            f"the label {names.KUEUE_QUEUE} hands the {kind} to Kueue, and its GangQueue has "
            f"clusters; allowed: one of the two, {names.QUEUE} or that label",
        )
    if is_wrapper:
        return _noted(created, spec)
    return _managed(kind, spec)


def _managed(kind: str, spec: CreatedSpec) -> Judged:
    """Have a Ray object managed elsewhere, unless its user said who manages it."""
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
