"""Decides the review of a RayCluster: suspend it until its gang is admitted, or leave it alone.

A RayCluster is held if it asks for that, if it starts together with others, or if a ResourceQuota
of its namespace lacks room for it now: its pods would take a part of the quota that no gang could
use.

Pure and synchronous, as the review of pods is: where a namespace or a RayJob has to be read, the
answer names it. A RayCluster whose facts cannot be read is left alone: KubeRay then creates the
pods, and they are gated.

    body ──read_hold_review──▶ HoldReview | BadReview
    HoldReview, Queues, what was read ──decide_hold──▶ Hold | Leave | Read
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import msgspec

from kube.codec.pod_patches import JsonPatch
from kube.codec.queues.queue import read_namespaces
from kube.objects import names
from kube.objects.base import Labels, ObjectMeta
from kube.objects.core import Namespace
from kube.objects.queues.queue import CREATE_WHEN_ADMITTED, GangQueue
from kube.objects.ray import RayCluster, RayJob
from kube.ray.gang_terms import Problem, queue_asked
from kube.ray.held_start import HELD, asks_to_be_held, is_held, never_held, never_suspended
from kube.ray.ray_cluster import Answer, opt_in
from kube.ray.ray_owner import controller_of
from kube.ray.together import together_faults
from kube.ray.wrapped_by import WrapperOf, is_made_for_wrapper, wrapped_by
from scheduling.model.queue import Queue
from scheduling.queueing.membership import NotAllowed, Selections
from webhook.admission_review import NAME, BadReview, Request, read_request, unexpected

_ANNOTATIONS: Final = "/metadata/annotations"
_HELD: Final = f"{_ANNOTATIONS}/{names.HELD.replace('/', '~1')}"
_SUSPEND: Final = "/spec/suspend"


class _Created(msgspec.Struct, frozen=True):
    """Whether a RayCluster that is created has any annotations."""

    annotations: msgspec.Raw = msgspec.Raw()


class _Object(msgspec.Struct, frozen=True):
    metadata: _Created = _Created()
    spec: msgspec.Raw = msgspec.Raw()


_CLUSTER = msgspec.json.Decoder(RayCluster)
_OBJECT = msgspec.json.Decoder(_Object)


@dataclass(frozen=True, slots=True)
class HoldReview:
    """A review as far as it matters here; `cluster` is None unless a RayCluster is created."""

    uid: str
    namespace: str = ""
    cluster: RayCluster | None = None
    has_annotations: bool = False


@dataclass(frozen=True, slots=True)
class NamespaceRead:
    """To be read: the labels of a namespace."""

    name: str


@dataclass(frozen=True, slots=True)
class RayJobRead:
    """To be read: the RayJob that makes the RayCluster."""

    namespace: str
    name: str


Read: TypeAlias = NamespaceRead | RayJobRead
WasRead: TypeAlias = Mapping[Read, Namespace | RayJob | None]
"""What was read; None where there is none."""


@dataclass(frozen=True, slots=True)
class Leave:
    """The RayCluster stays as it is, but for a note of Muster's that it did not get from Muster."""

    patch: JsonPatch


@dataclass(frozen=True, slots=True)
class Hold:
    """The RayCluster is suspended, and says that Muster did it."""

    patch: JsonPatch


@dataclass(frozen=True, slots=True)
class Queues:
    """The GangQueues: which of them a RayCluster may wait in, have it held, or send it away."""

    selections: Selections
    holding: frozenset[str]
    sending: frozenset[str] = frozenset()
    """Those with clusters."""


def queues_of(objects: Collection[GangQueue]) -> Queues:
    """Read what the GangQueues say of RayClusters that are created."""
    rules = {each.metadata.name: _rules_of(each) for each in objects}
    holding = (e.metadata.name for e in objects if e.spec.create_pods == CREATE_WHEN_ADMITTED)
    sending = (each.metadata.name for each in objects if each.spec.clusters is not None)
    return Queues(Selections(rules), frozenset(holding), frozenset(sending))


def is_sent_away(metadata: ObjectMeta, labels: Labels, queues: Queues) -> bool:
    """Say whether the queue of a Ray object, in a namespace with these labels, has clusters."""
    queue = queue_asked(metadata, labels, queues.selections) if queues.sending else ""
    return not isinstance(queue, NotAllowed) and queue in queues.sending


def read_hold_review(body: bytes | bytearray) -> HoldReview | BadReview:
    """Read what the API server sent about a RayCluster."""
    return read_request(body, _review)


def _review(request: Request) -> HoldReview | BadReview:
    kind, namespace = request.kind, request.namespace or ""
    created = request.operation == "CREATE" and not request.sub_resource
    if not created or (kind.group, kind.kind) != ("ray.io", "RayCluster"):
        return HoldReview(request.uid)
    if not NAME.fullmatch(namespace):
        return unexpected("request.namespace", namespace, "the name of a namespace")
    try:
        cluster = _CLUSTER.decode(request.object)
        found = _OBJECT.decode(request.object)
    except msgspec.ValidationError as error:
        return BadReview(400, f"not a RayCluster in request.object: {error}")
    if not _is_there(found.spec):
        return HoldReview(request.uid)  # the API server refuses it, and says why
    return HoldReview(request.uid, namespace, cluster, _is_there(found.metadata.annotations))


def _is_there(field: msgspec.Raw) -> bool:
    return bytes(field) not in (b"", b"null")


def decide_hold(
    review: HoldReview,
    queues: Queues,
    was_read: WasRead,
    wrapper_of: WrapperOf = wrapped_by,
    *,
    lacks_quota: bool = False,
) -> Hold | Leave | Read:
    """Decide about one RayCluster; one that was held and is created from its copy is held again."""
    cluster = review.cluster
    if cluster is None:
        return Leave([])
    by_others = cluster.spec.suspend and not is_held(cluster)
    # What is wrapped is created only once the whole AppWrapper has its place.
    wrapped = is_made_for_wrapper(cluster.metadata, wrapper_of)
    waits = lacks_quota and _may_wait_for_quota(cluster)
    if by_others or wrapped or not (waits or _may_be_held(cluster, queues)):
        return _left(cluster)
    place = NamespaceRead(review.namespace)
    if place not in was_read:
        return place
    namespace = was_read[place]
    labels = namespace.metadata.labels if isinstance(namespace, Namespace) else {}
    if not is_gang(cluster.metadata, labels) or is_sent_away(cluster.metadata, labels, queues):
        return _left(cluster)
    if waits:
        return _held(review)
    is_asked_for = _is_asked_for(cluster, labels, queues)
    return _unless_its_owner_forbids(review, cluster, was_read) if is_asked_for else _left(cluster)


def warnings_of(review: HoldReview) -> list[str]:
    """Return the faults of the group that a RayCluster names, for which its gang waits as well."""
    annotations = review.cluster.metadata.annotations if review.cluster is not None else {}
    return [Problem(*each).message for each in together_faults(annotations)]


def _rules_of(found: GangQueue) -> Queue:
    return Queue(found.metadata.name, found.spec.parent, namespaces=read_namespaces(found))


def _may_be_held(cluster: RayCluster, queues: Queues) -> bool:
    """Say whether it is worth reading anything: mostly nothing asks for it."""
    return asks_to_be_held(cluster.metadata.annotations, queue_holds=bool(queues.holding))


def _may_wait_for_quota(cluster: RayCluster) -> bool:
    """Say whether a RayCluster can be held that did not ask for it.

    Its RayJob may have deadlines: they run while its pods are gated as well.
    """
    asked = cluster.metadata.annotations.get(names.CREATE_PODS, names.CREATE_WHEN_ADMITTED)
    return asked == names.CREATE_WHEN_ADMITTED and not never_suspended(cluster)


def is_gang(metadata: ObjectMeta, labels: Labels) -> bool:
    """Say whether a Ray object is opted in, in a namespace with these labels."""
    return opt_in(metadata.labels, metadata.annotations, labels).answer is Answer.YES


def _is_asked_for(cluster: RayCluster, labels: Labels, queues: Queues) -> bool:
    """Say whether a gang itself, or its queue, has it held."""
    queue = queue_asked(cluster.metadata, labels, queues.selections)
    holds = not isinstance(queue, NotAllowed) and queue in queues.holding
    return asks_to_be_held(cluster.metadata.annotations, queue_holds=holds)


def _unless_its_owner_forbids(
    review: HoldReview, cluster: RayCluster, was_read: WasRead
) -> Hold | Leave | Read:
    reference, job = controller_of(cluster.metadata), None
    if reference is not None and reference.kind == "RayJob" and NAME.fullmatch(reference.name):
        wanted = RayJobRead(review.namespace, reference.name)
        if wanted not in was_read:
            return wanted
        job = was_read[wanted]
    if never_held(cluster, job if isinstance(job, RayJob) else None):
        return _left(cluster)
    return _held(review)


def _held(review: HoldReview) -> Hold:
    return Hold([*_annotated(review), {"op": "add", "path": _SUSPEND, "value": True}])


def _annotated(review: HoldReview) -> JsonPatch:
    if review.has_annotations:
        return [{"op": "add", "path": _HELD, "value": HELD}]
    return [{"op": "add", "path": _ANNOTATIONS, "value": {names.HELD: HELD}}]


def _left(cluster: RayCluster) -> Leave:
    """Leave a RayCluster alone; what was copied with its manifest does not make it Muster's."""
    copied = names.HELD in cluster.metadata.annotations
    return Leave([{"op": "remove", "path": _HELD}] if copied else [])
