"""What a tenant may try by a request that is refused: each with what refuses it.

A tenant has the stock ClusterRole `edit` in a namespace of its own, and may write Ray objects.
The owner has `cluster-admin` there, by a RoleBinding: all verbs, in one namespace; a third user may
write GangQueues. Every request is a dry run: one that is not refused spoils nothing for others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kube.objects import names
from tests.controlplane.rayclusters import Json

TENANT, OWNER, QUEUES = "tenant", "owner", "queues"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
COORDINATOR = f"system:serviceaccount:{names.DEFAULT_NAMESPACE}:muster-coordinator"

RBAC = 'is forbidden: User "'
BY_PODS = "ValidatingAdmissionPolicy 'muster-pods'"
BY_BINDINGS = "ValidatingAdmissionPolicy 'muster-bindings'"
BY_GANGS = "ValidatingAdmissionPolicy 'muster-gangs'"
BY_VALIDATION = " is invalid: "

_POLICIES = "/apis/admissionregistration.k8s.io/v1"
_CORE = "/api/v1/namespaces"
_GANGS = "/apis/muster.dev/v1alpha1/namespaces/{own}/gangs"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces"
_GATED = _CORE + "/{own}/pods/{gated}"
_PLAIN = _CORE + "/{own}/pods/{plain}"
_RELEASED = _CORE + "/{own}/pods/{released}"

Names = Mapping[str, str]
"""Of what is there: {own} and {others} are namespaces, the others are in the first of them."""


@dataclass(frozen=True)
class Request:
    """One request, and what its answer says."""

    method: str
    path: str
    refused_by: str
    says: str = ""
    body: Json | list[Json] | Callable[[Names], Json] | None = None
    content_type: str = MERGE
    user: str = TENANT
    impersonated: str = ""

    def content(self, named: Names) -> object:
        """What is sent."""
        return self.body(named) if callable(self.body) else self.body


def _gate_off(*more: Json) -> list[Json]:
    return [{"op": "remove", "path": "/spec/schedulingGates/0"}, *more]


def _pinned(node: str) -> Json:
    pin = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [pin]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def _noted(key: str, value: str | None = "9.9") -> Json:
    return {"metadata": {"annotations": {key: value}}}


def _typed(kind: str | None) -> Json:
    return {"metadata": {"labels": {names.RAY_NODE_TYPE: kind}}}


def _bound(named: Names, **metadata: Json) -> Json:
    """Bind the released pod, and write on it what says how it counts."""
    target = {"kind": "Node", "name": named["node"]}
    kind = {"apiVersion": "v1", "kind": "Binding"}
    return {**kind, "metadata": {"name": named["released"], **metadata}, "target": target}


def _owned(named: Names) -> Json:
    """By the gang that waits."""
    owner = {"apiVersion": names.RAY_API_VERSION, "kind": "RayCluster", "name": "waits"}
    return {"metadata": {"ownerReferences": [{**owner, "uid": named["uid"], "controller": True}]}}


def _gang(name: str) -> Json:
    kind = {"apiVersion": names.API_VERSION, "kind": "Gang"}
    return {**kind, "metadata": {"name": name}, "spec": {"queue": "default"}}


def _bound_role() -> Json:
    group = "rbac.authorization.k8s.io"
    role = {"apiGroup": group, "kind": "ClusterRole", "name": "muster-coordinator"}
    subject = {"apiGroup": group, "kind": "User", "name": TENANT}
    return {"metadata": {"name": "mine"}, "subjects": [subject], "roleRef": role}


_PLACED: Json = {"status": {"phase": "Admitted", "placement": {"epoch": 9}}}
_EVICTION: Json = {"apiVersion": "policy/v1", "kind": "Eviction"}
_QUEUE: Json = {"apiVersion": names.API_VERSION, "kind": "GangQueue", "metadata": {"name": "mine"}}

REQUESTS: Mapping[str, Request] = {
    # ---- pods
    "gate-taken-off": Request(
        "PATCH", _GATED, BY_PODS, "may not take the gate", _gate_off(), JSON_PATCH
    ),
    "gate-taken-off-and-pinned": Request(
        "PATCH",
        _GATED,
        BY_PODS,
        "may not take the gate",
        lambda named: _gate_off(  # type: ignore[arg-type,return-value]
            {"op": "add", "path": "/spec/affinity", "value": _pinned(named["node"])}
        ),
        JSON_PATCH,
    ),
    "gate-taken-off-by-a-namespace-admin": Request(
        "PATCH", _GATED, BY_PODS, "may not take the gate", _gate_off(), JSON_PATCH, OWNER
    ),
    "gate-taken-off-as-own-account": Request(
        "PATCH",
        _GATED,
        BY_PODS,
        "user system:serviceaccount:",
        _gate_off(),
        JSON_PATCH,
        impersonated="system:serviceaccount:{own}:helper",
    ),
    "fence-forged": Request(
        "PATCH", _GATED, BY_PODS, f"may not change {names.FENCE} of pod", _noted(names.FENCE)
    ),
    "release-forged": Request(
        "PATCH", _PLAIN, BY_PODS, f"may not change {names.RELEASED} of pod", _noted(names.RELEASED)
    ),
    "told-forged": Request(
        "PATCH", _GATED, BY_PODS, f"may not change {names.TOLD} of pod", _noted(names.TOLD)
    ),
    "running-pod-made-a-member": Request("PATCH", _PLAIN, BY_PODS, "one of a RayCluster", _owned),
    "running-pod-labelled-a-member": Request(
        "PATCH",
        _CORE + "/{own}/pods/{owned}",
        BY_PODS,
        "one of a RayCluster",
        _typed("worker"),
    ),
    "released-pod-taken-out-of-its-gang": Request(
        "PATCH", _RELEASED, BY_PODS, "may not change the label ray.io/node-type", _typed(None)
    ),
    "released-pod-made-one-of-no-ray-cluster": Request(
        "PATCH",
        _RELEASED,
        BY_PODS,
        "may not change the label ray.io/node-type",
        {"metadata": {**_typed("none")["metadata"], "ownerReferences": None}},
    ),
    "head-made-of-a-worker": Request(
        "PATCH", _RELEASED, BY_PODS, "may not change the label ray.io/node-type", _typed("head")
    ),
    "gated-pod-taken-out-of-its-gang": Request(
        "PATCH", _GATED, BY_PODS, "may not change the label ray.io/node-type", _typed(None)
    ),
    "release-note-taken-off": Request(
        "PATCH",
        _RELEASED,
        BY_PODS,
        f"may not change {names.RELEASED}",
        _noted(names.RELEASED, None),
    ),
    "release-forged-by-the-status": Request(
        "PATCH",
        _PLAIN + "/status",
        BY_PODS,
        f"may not change {names.RELEASED} of pod",
        _noted(names.RELEASED),
        user=OWNER,
    ),
    "fence-forged-by-the-status": Request(
        "PATCH",
        _GATED + "/status",
        BY_PODS,
        f"may not change {names.FENCE} of pod",
        _noted(names.FENCE),
        user=OWNER,
    ),
    "released-pod-taken-out-by-the-status": Request(
        "PATCH",
        _RELEASED + "/status",
        BY_PODS,
        "may not change the label ray.io/node-type",
        _typed(None),
        user=OWNER,
    ),
    "release-note-overwritten-by-a-binding": Request(
        "POST",
        _RELEASED + "/binding",
        BY_BINDINGS,
        "may not write by a binding",
        lambda named: _bound(named, annotations={names.RELEASED: ""}),
        user=OWNER,
    ),
    "released-pod-taken-out-by-a-binding": Request(
        "POST",
        _CORE + "/{own}/bindings",
        BY_BINDINGS,
        "may not write by a binding",
        lambda named: _bound(named, labels={names.RAY_NODE_TYPE: "none"}),
        user=OWNER,
    ),
    "gate-put-back": Request(
        "PATCH",
        _PLAIN,
        BY_VALIDATION,
        "only deletion is allowed",
        {"spec": {"schedulingGates": [{"name": names.GATE}]}},
    ),
    "pin-moved": Request(
        "PATCH",
        _RELEASED,
        BY_VALIDATION,
        "pod updates may not change fields other than",
        lambda named: {"spec": {"affinity": _pinned(named["node"] + "-other")}},
    ),
    "node-named-on-a-gated-pod": Request(
        "PATCH",
        _GATED,
        BY_VALIDATION,
        "spec",
        lambda named: {"spec": {"nodeName": named["node"]}},
    ),
    "nomination-forged": Request(
        "PATCH",
        _GATED + "/status",
        RBAC,
        'cannot patch resource "pods/status"',
        lambda named: {"status": {"nominatedNodeName": named["node"]}},
    ),
    "pod-bound": Request(
        "POST",
        _GATED + "/binding",
        RBAC,
        'cannot create resource "pods/binding"',
        lambda named: {
            "metadata": {"name": named["gated"]},
            "target": {"kind": "Node", "name": named["node"]},
        },
    ),
    "pod-bound-by-a-namespace-admin": Request(
        "POST",
        _GATED + "/binding",
        "",
        "schedulingGates",
        lambda named: {
            "metadata": {"name": named["gated"]},
            "target": {"kind": "Node", "name": named["node"]},
        },
        user=OWNER,
    ),
    "pod-resized": Request(
        "PATCH", _GATED + "/resize", RBAC, 'cannot patch resource "pods/resize"', {"spec": {}}
    ),
    "container-added": Request(
        "PATCH",
        _GATED + "/ephemeralcontainers",
        RBAC,
        'cannot patch resource "pods/ephemeralcontainers"',
        {"spec": {}},
    ),
    "pod-of-others-evicted": Request(
        "POST",
        _CORE + "/{others}/pods/{victim}/eviction",
        RBAC,
        'cannot create resource "pods/eviction"',
        lambda named: {**_EVICTION, "metadata": {"name": named["victim"]}},
    ),
    "pod-of-others-deleted": Request(
        "DELETE", _CORE + "/{others}/pods/{victim}", RBAC, 'cannot delete resource "pods"'
    ),
    # ---- Gangs and GangQueues
    "gang-status-written": Request(
        "PATCH", _GANGS + "/waits/status", RBAC, 'cannot patch resource "gangs/status"', _PLACED
    ),
    "gang-status-written-by-a-namespace-admin": Request(
        "PATCH",
        _GANGS + "/waits/status",
        BY_GANGS,
        "may not write gangs/status waits",
        _PLACED,
        user=OWNER,
    ),
    "gang-spec-written": Request(
        "PATCH", _GANGS + "/waits", RBAC, 'cannot patch resource "gangs"', {"spec": {"priority": 9}}
    ),
    "gang-spec-written-by-a-namespace-admin": Request(
        "PATCH",
        _GANGS + "/waits",
        BY_GANGS,
        "may not write gangs waits",
        {"spec": {"priority": 9}},
        user=OWNER,
    ),
    "gang-created": Request(
        "POST", _GANGS, RBAC, 'cannot create resource "gangs"', _gang("appwrapper.mine")
    ),
    "gang-created-by-a-namespace-admin": Request(
        "POST",
        _GANGS,
        BY_GANGS,
        "may not write gangs appwrapper.mine",
        _gang("appwrapper.mine"),
        user=OWNER,
    ),
    "gang-deleted": Request("DELETE", _GANGS + "/waits", RBAC, 'cannot delete resource "gangs"'),
    "queue-created": Request(
        "POST",
        "/apis/muster.dev/v1alpha1/gangqueues",
        RBAC,
        'cannot create resource "gangqueues"',
        _QUEUE,
    ),
    "quota-raised": Request(
        "PATCH",
        "/apis/muster.dev/v1alpha1/gangqueues/{queue}",
        RBAC,
        'cannot patch resource "gangqueues"',
        {"spec": {"quota": {"cpu": "1000"}}},
        user=OWNER,
    ),
    "queue-status-written": Request(
        "PATCH",
        "/apis/muster.dev/v1alpha1/gangqueues/{queue}/status",
        RBAC,
        'cannot patch resource "gangqueues/status"',
        {"status": {"pending": 0}},
        user=OWNER,
    ),
    "queue-status-written-by-an-editor-of-queues": Request(
        "PATCH",
        "/apis/muster.dev/v1alpha1/gangqueues/{queue}/status",
        BY_GANGS,
        "may not write gangqueues/status",
        {"status": {"pending": 9}},
        user=QUEUES,
    ),
    # ---- what stands beside them
    "lease-of-the-coordinator-taken": Request(
        "PATCH",
        _LEASES + "/muster-system/leases/muster-coordinator",
        RBAC,
        'cannot patch resource "leases"',
        {"spec": {"holderIdentity": "me"}},
    ),
    "lease-of-kube-scheduler-taken": Request(
        "POST",
        _LEASES + "/kube-system/leases",
        RBAC,
        'cannot create resource "leases"',
        {"metadata": {"name": "kube-scheduler"}},
    ),
    "secret-of-muster-read": Request(
        "GET",
        _CORE + "/muster-system/secrets/muster-webhook-tls",
        RBAC,
        'cannot get resource "secrets"',
    ),
    "account-of-muster-impersonated": Request(
        "GET",
        _CORE + "/{own}/pods",
        RBAC,
        "cannot impersonate",  # what follows depends on the mode that the server tried first
        impersonated=COORDINATOR,
    ),
    "token-of-muster-asked-for": Request(
        "POST",
        _CORE + "/muster-system/serviceaccounts/muster-coordinator/token",
        RBAC,
        'cannot create resource "serviceaccounts/token"',
        {},
    ),
    "role-of-muster-bound": Request(
        "POST",
        "/apis/rbac.authorization.k8s.io/v1/namespaces/{own}/rolebindings",
        RBAC,
        'cannot create resource "rolebindings"',
        _bound_role(),
    ),
    "webhook-removed": Request(
        "DELETE",
        _POLICIES + "/mutatingwebhookconfigurations/muster-webhook",
        RBAC,
        'cannot delete resource "mutatingwebhookconfigurations"',
        user=OWNER,
    ),
    "policy-lifted": Request(
        "DELETE",
        _POLICIES + "/validatingadmissionpolicybindings/muster-pods",
        RBAC,
        'cannot delete resource "validatingadmissionpolicybindings"',
        user=OWNER,
    ),
    "namespace-labelled": Request(
        "PATCH",
        _CORE + "/{own}",
        RBAC,
        'cannot patch resource "namespaces"',
        {"metadata": {"labels": {names.OPT_IN: "false"}}},
    ),
    "node-relabelled": Request(
        "PATCH",
        "/api/v1/nodes/{node}",
        RBAC,
        'cannot patch resource "nodes"',
        {"metadata": {"labels": {"zone": "mine"}}},
        user=OWNER,
    ),
    "priority-class-created": Request(
        "POST",
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        RBAC,
        'cannot create resource "priorityclasses"',
        {"metadata": {"name": "mine"}, "value": 1000000},
        user=OWNER,
    ),
    "event-forged-for-others": Request(
        "POST",
        _CORE + "/{others}/events",
        RBAC,
        'cannot create resource "events"',
        {"metadata": {"name": "told"}, "involvedObject": {"kind": "RayCluster"}},
    ),
    "ray-cluster-of-others-edited": Request(
        "PATCH",
        "/apis/ray.io/v1/namespaces/{others}/rayclusters/theirs",
        RBAC,
        'cannot patch resource "rayclusters"',
        {"spec": {"suspend": True}},
    ),
    "ray-cluster-status-forged": Request(
        "PATCH",
        "/apis/ray.io/v1/namespaces/{own}/rayclusters/waits/status",
        RBAC,
        'cannot patch resource "rayclusters/status"',
        {"status": {"state": "ready"}},
    ),
}
