"""Decides a review: gate the pod, leave it alone, or look further.

Pure and synchronous: bytes in, a value out. What only the API server knows about the pod's owner
comes through `Lookup`; where that does not know either, the answer is the question to be asked.

    body ──read_review──▶ Review | BadReview
    Review, Lookup ──decide──▶ Allow | Gate | Ask | Deny
    Gate ──without_field_owners──▶ Gate, unless the operator wants them ──answer──▶ body

The gang of a Ray pod never comes from the pod's labels, which tenants write, but from its
controller. The pods of wrapped objects have controllers of many kinds, so for them labels decide:
they name an AppWrapper by its uid, and a forged pair of them has a pod of the same namespace wait.
A pod whose RayCluster is not made for the AppWrapper that it names is refused, if it is in a gang.

A pod whose RayCluster or AppWrapper is gone is refused: nothing would decide about it any more, and
a controller that is behind stops asking for it. While the owner ends its pods are gated as before.
Only the pod of the Job redis-cleanup has to run while a RayCluster ends; it is never gated.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from kube.codec.pod_patches import gate_patch
from kube.objects.base import ObjectMeta
from kube.objects.names import (
    APP_WRAPPER,
    APP_WRAPPER_UID,
    CREATED_BY,
    GATE,
    OPT_IN,
    RAY_NODE_TYPE,
    RAY_NODE_TYPES,
    RAY_REDIS_CLEANUP,
)
from kube.ray.ray_cluster import opt_in, owner_cluster
from kube.ray.wrapped_by import wrapped_by
from webhook.admission_review import (
    ABSENT,
    ALLOW,
    NAME,
    Allow,
    BadReview,
    Deny,
    Request,
    denied,
    patched,
    read_request,
    unexpected,
    untouched,
)
from webhook.owners import (
    OFF,
    AppWrapperKey,
    ClusterKey,
    Gone,
    Key,
    Lookup,
    Marks,
    NamespaceKey,
    Off,
)

_MANAGED_FIELDS = "/metadata/managedFields"


class _Gate(msgspec.Struct, frozen=True, gc=False):
    name: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str | None = None
    scheduling_gates: list[_Gate] | None = None


class _Metadata(ObjectMeta, frozen=True):
    managed_fields: msgspec.Raw = msgspec.Raw()


class _Pod(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: _Spec | None = None


_POD = msgspec.json.Decoder(_Pod)


@dataclass(frozen=True, slots=True)
class Review:
    """A review as far as it matters here; `pod` is None unless a pod is being created.

    Whether it is a dry run is not read: the answer is the same, and nothing here has side effects.
    """

    uid: str
    namespace: str = ""
    pod: _Pod | None = None


@dataclass(frozen=True, slots=True)
class Gate:
    """The pod belongs to a gang."""

    patch: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Ask:
    """This object decides, and it is not known."""

    key: Key


Answer: TypeAlias = Allow | Gate | Deny
Decision: TypeAlias = Answer | Ask


def read_review(body: bytes | bytearray) -> Review | BadReview:
    """Read what the API server sent about a pod."""
    return read_request(body, _review)


def decide(review: Review, lookup: Lookup) -> Decision:
    """Decide about one pod."""
    pod = review.pod
    if pod is None or pod.spec is None or _left_alone(pod.spec) or _cleans_redis_up(pod):
        return ALLOW
    owner, wrapper = _ray_owner(review.namespace, pod), _wrapper(review.namespace, pod)
    found = lookup.find(wrapper) if wrapper is not None else OFF
    if wrapper is None or isinstance(found, Off):
        return ALLOW if owner is None else _by_owner(owner, pod.spec, lookup)
    if found is None:
        return Ask(wrapper)
    if isinstance(found, Gone):
        return _outlived(wrapper)
    if owner is not None:
        return _by_both(wrapper, owner, pod.spec, lookup)
    return Gate(gate_patch(_gates(pod.spec))) if _is_ours(found) else ALLOW


def without_field_owners(review: Review, decision: Answer) -> Answer:
    """Have the API server track no field owners of a gated pod, now and at later writes.

    Tracking is what a write of a pod costs most: the API server does it for an object that has
    managed fields, and begins anew only with a server-side apply. A pod that came
    without them must not be asked to lose them: that patch would fail, and with it the creation.
    """
    owners = b"" if review.pod is None else bytes(review.pod.metadata.managed_fields)
    if isinstance(decision, Gate) and owners not in ABSENT:
        return Gate([*decision.patch, {"op": "remove", "path": _MANAGED_FIELDS}])
    return decision


def answer(review: Review, decision: Answer) -> bytes:
    """Return the AdmissionReview to send back."""
    match decision:
        case Gate(patch):
            return patched(review.uid, patch)
        case Deny():
            return denied(review.uid, decision)
        case Allow():
            return untouched(review.uid)


def _review(request: Request) -> Review | BadReview:
    namespace = request.namespace or ""
    if not _creates_a_pod(request):
        return Review(request.uid)
    if not NAME.fullmatch(namespace):
        return unexpected("request.namespace", namespace, "the name of a namespace")
    pod = _pod(request.object)
    return pod if isinstance(pod, BadReview) else Review(request.uid, namespace, pod)


def _creates_a_pod(request: Request) -> bool:
    kind = request.kind
    return (
        request.operation == "CREATE"
        and (kind.group, kind.kind) == ("", "Pod")
        and not request.sub_resource
    )


def _pod(sent: msgspec.Raw) -> _Pod | BadReview:
    # Decoded apart from the envelope: what other kinds hold under these names is not our business.
    if bytes(sent) in ABSENT:
        return unexpected("request.object", None, "the pod to be created")
    try:
        return _POD.decode(sent)
    except msgspec.ValidationError as error:
        return BadReview(400, f"not a pod in request.object: {error}")


def _left_alone(spec: _Spec) -> bool:
    """Tell whether a pod stays as it is, whatever its owner.

    A pod with a node can't have gates, and a second gate of ours would be refused.
    """
    return bool(spec.node_name) or GATE in _gates(spec)


def _cleans_redis_up(pod: _Pod) -> bool:
    """Say whether KubeRay waits for this pod to end a RayCluster: it copies the head's labels."""
    if pod.metadata.labels.get(RAY_NODE_TYPE) != RAY_REDIS_CLEANUP:
        return False
    return any(each.controller and each.kind == "Job" for each in pod.metadata.owner_references)


def _wrapper(namespace: str, pod: _Pod) -> AppWrapperKey | None:
    named = wrapped_by(pod.metadata.labels)
    if named is None or not NAME.fullmatch(named.name):
        return None
    return AppWrapperKey(namespace, named.name, named.uid, named.group)


def _ray_owner(namespace: str, pod: _Pod) -> ClusterKey | None:
    """Find the RayCluster of a Ray pod.

    A selector set wider than ours must not park redis-cleanup, for which the RayCluster's deletion
    waits.
    """
    if pod.metadata.labels.get(RAY_NODE_TYPE) not in RAY_NODE_TYPES:
        return None
    owner = owner_cluster(pod.metadata)
    if owner is None or not NAME.fullmatch(owner.name):
        return None
    return ClusterKey(namespace, owner.name, owner.uid)


def _gates(spec: _Spec) -> list[str]:
    return [gate.name for gate in spec.scheduling_gates or ()]


def _is_ours(wrapper: Marks | Gone | None) -> bool:
    """Say whether an AppWrapper is Muster's, which the note on it tells."""
    return isinstance(wrapper, Marks) and CREATED_BY in wrapper.annotations


def _by_both(wrapper: AppWrapperKey, owner: ClusterKey, spec: _Spec, lookup: Lookup) -> Decision:
    """Decide about a Ray pod that names an AppWrapper: its RayCluster has to be made for that one.

    Labels of a template would otherwise take a pod from the gang of its RayCluster into another.
    """
    cluster, ours = lookup.find(owner), _is_ours(lookup.find(wrapper))
    by_owner = _by_owner(owner, spec, lookup)
    if cluster is None or isinstance(cluster, Gone):
        return by_owner
    if cluster.labels.get(APP_WRAPPER_UID) == wrapper.uid:
        return Gate(gate_patch(_gates(spec))) if ours else by_owner
    if ours or isinstance(by_owner, Gate):
        return Deny(403, _not_of(wrapper, owner))
    return by_owner


def _not_of(wrapper: AppWrapperKey, owner: ClusterKey) -> str:
    return (
        f"labels {APP_WRAPPER} and {APP_WRAPPER_UID} name {wrapper} (uid {wrapper.uid}), for which "
        f"{owner} is not made; allowed: a template without them"
    )


def _by_owner(key: ClusterKey, spec: _Spec, lookup: Lookup) -> Decision:
    cluster = lookup.find(key)
    if cluster is None:
        return Ask(key)
    if isinstance(cluster, Gone):
        return _outlived(key)
    labels = _namespace_labels(key, cluster, lookup)
    if isinstance(labels, Ask):
        return labels
    gated = opt_in(cluster.labels, cluster.annotations, labels).gated
    return Gate(gate_patch(_gates(spec))) if gated else ALLOW


def _outlived(key: ClusterKey | AppWrapperKey) -> Deny:
    return Deny(
        403,
        f"{key} (uid {key.uid}), for which the pod is made, is gone; allowed: a pod of one that "
        "exists",
    )


def _namespace_labels(key: ClusterKey, cluster: Marks, lookup: Lookup) -> Mapping[str, str] | Ask:
    if OPT_IN in cluster.labels or OPT_IN in cluster.annotations:
        return {}  # the cluster speaks for itself
    namespace_key = NamespaceKey(key.namespace)
    namespace = lookup.find(namespace_key)
    if namespace is None:
        return Ask(namespace_key)
    return {} if isinstance(namespace, Gone) else namespace.labels
