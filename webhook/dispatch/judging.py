"""Judges Ray objects and AppWrappers in queues that send their gangs to other clusters. Pure.

A Ray object gets the `managedBy` with which KubeRay leaves it alone, before any controller sees it
without. It also gets a note of its creator: a cluster with the same users is asked what that user
may do there. An AppWrapper has that note already, and gets a note that it is sent: its `managedBy`
names its controller, here and where it runs.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from appwrapper.gang.watched import OURS
from kube.codec.pod_patches import JsonPatch
from kube.gang.sent import WRAPPER_RESOURCES, is_noted
from kube.objects import names
from kube.objects.base import Labels
from kube.objects.user import User
from kube.ray.gang_terms import queue_named
from webhook.admission_review import Deny, creator_note
from webhook.dispatch.review import Created, CreatedSpec, DispatchReview
from webhook.holding import Queues, is_gang, is_sent_away

FIELD: Final = "/spec/managedBy"
ANNOTATIONS: Final = "/metadata/annotations"
_NOTE: Final = f"{ANNOTATIONS}/{names.CREATED_BY.replace('/', '~1')}"
UNPROCESSABLE: Final = 422

Judged: TypeAlias = Deny | JsonPatch


def concerns_queues(created: Created | None, queues: Queues) -> bool:
    """Say whether a namespace is worth reading: what a controller made is left alone."""
    return bool(queues.sending) and created is not None and created.stands_alone


def says_all_itself(created: Created, queues: Queues) -> bool:
    """Say whether the labels of its namespace do not matter: its queue takes every namespace."""
    meta, rules = created.metadata, queues.selections.queues
    is_said = names.OPT_IN in {**meta.labels, **meta.annotations}
    queue = rules.get(queue_named(meta))
    return is_said and queue is not None and queue.namespaces == ()


def judge(review: DispatchReview, created: Created, labels: Labels, queues: Queues) -> Judged:
    """Say what becomes of an object in a namespace with these labels; mostly nothing."""
    meta, spec, kind = created.metadata, created.spec or CreatedSpec(), review.kind
    is_wrapper = kind in WRAPPER_RESOURCES
    if not is_sent_away(meta, labels, queues) or not (is_wrapper or is_gang(meta, labels)):
        return without_note(kind, created)
    if names.KUEUE_QUEUE in meta.labels:
        return Deny(
            UNPROCESSABLE,
            f"the label {names.KUEUE_QUEUE} hands the {kind} to Kueue, and its GangQueue has "
            f"clusters; allowed: one of the two, {names.QUEUE} or that label",
        )
    if is_wrapper:
        return _sent(created, spec)
    managed = _managed(kind, spec)
    noted = _created_by(created, review.user)
    if isinstance(managed, Deny):
        return managed
    return noted if isinstance(noted, Deny) else [*managed, *noted]


def without_note(kind: str, created: Created) -> JsonPatch:
    """Take the note of a creator off a Ray object that is not sent away: it could be sent later."""
    found = created.metadata.annotations
    if kind in WRAPPER_RESOURCES or names.CREATED_BY not in found:
        return []
    return [{"op": "remove", "path": _NOTE}]


def _created_by(created: Created, user: User) -> Judged:
    """Note the creator of a Ray object, over any such note that it has."""
    said, found = creator_note(user), created.metadata.annotations
    if isinstance(said, Deny):
        return said
    if found.get(names.CREATED_BY) == said:
        return []
    return _annotated({**found, names.CREATED_BY: said})


def _sent(created: Created, spec: CreatedSpec) -> JsonPatch:
    """Note on an AppWrapper that is Muster's that another cluster runs it."""
    found = created.metadata.annotations
    if spec.managed_by not in OURS or is_noted(found):
        return []
    return _annotated({**found, names.DISPATCHED: "true"})


def _annotated(annotations: Labels) -> JsonPatch:
    return [{"op": "add", "path": ANNOTATIONS, "value": dict(annotations)}]


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
