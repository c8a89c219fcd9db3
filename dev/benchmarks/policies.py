"""Gates pods without a webhook, by a MutatingAdmissionPolicy in the API server.

The gate is added by a JSON patch whose value is a plain map: the same patch with an
`Object.spec.schedulingGates{}` in its list panics in Kubernetes 1.36.3, and an apply configuration
cannot remove a field. What a policy decides with is one object at a time: the pod, and with
`paramKind` each labelled RayCluster of the pod's namespace in turn.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from benchmarks.gangs import OPT_IN, Size, ray_cluster
from kube.objects.names import GATE, RAY_NODE_TYPE, RAY_NODE_TYPES
from testbed.api import Api, Json
from testbed.cluster import Cluster
from testbed.waiting import wait_until

_API = "/apis/admissionregistration.k8s.io/v1"
_NAME = "benchmark"
_PROBES = "probes"  # a namespace apart, so that the probe is no parameter of what is measured
_ADD_GATE = f'JSONPatch{{op: "add", path: "/spec/schedulingGates", value: [{{"name": "{GATE}"}}]}}'
_REMOVE_OWNERS = 'JSONPatch{op: "remove", path: "/metadata/managedFields"}'
_IS_OWNED = (
    "has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists("
    "o, has(o.controller) && o.controller && o.uid == params.metadata.uid)"
)


@dataclass(frozen=True)
class Policy:
    """What the specs of a policy and of its binding say beyond what all of them say."""

    operations: tuple[str, ...]
    spec: Json = field(default_factory=dict)
    binding: Json = field(default_factory=dict)

    def objects(self) -> Iterator[tuple[str, Json]]:
        """The policy and its binding, each with the resource that it is created in."""
        spec = {**_for_ray_pods(self.operations), **self.spec}
        yield "mutatingadmissionpolicies", {"metadata": {"name": _NAME}, "spec": spec}
        binding = {"policyName": _NAME, **self.binding}
        yield "mutatingadmissionpolicybindings", {"metadata": {"name": _NAME}, "spec": binding}


ALL_TRACKED = Policy((_ADD_GATE,))
ALL = Policy((_ADD_GATE, _REMOVE_OWNERS))
"""All pods of Ray: it asks for no owner, so it is the least that gating can cost."""
LABELLED = Policy(
    (_ADD_GATE, _REMOVE_OWNERS),
    {
        "paramKind": {"apiVersion": "ray.io/v1", "kind": "RayCluster"},
        "matchConditions": [{"name": "owned", "expression": _IS_OWNED}],
    },
    {"paramRef": {"selector": {"matchLabels": OPT_IN}, "parameterNotFoundAction": "Allow"}},
)
"""Pods whose controller is a labelled RayCluster, as the webhook finds them."""


@contextlib.contextmanager
def enforced(cluster: Cluster, policy: Policy) -> Iterator[None]:
    """Have a policy gate pods, from when it takes effect until it has none any more."""
    api = cluster.api
    owner = _probes_owner(cluster)
    for resource, content in policy.objects():
        api.create(f"{_API}/{resource}", content)
    wait_until(lambda: _gates(api, owner), "the policy to gate pods")
    yield
    with api.session() as session:
        for resource, _ in policy.objects():
            session.call("DELETE", f"{_API}/{resource}/{_NAME}")
    wait_until(lambda: not _gates(api, owner), "the policy to gate no more pods")


def _for_ray_pods(operations: tuple[str, ...]) -> Json:
    is_ray = {"key": RAY_NODE_TYPE, "operator": "In", "values": list(RAY_NODE_TYPES)}
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    return {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {
            "objectSelector": {"matchExpressions": [is_ray]},
            "resourceRules": [{**pods, "resources": ["pods"]}],
        },
        "mutations": [
            {"patchType": "JSONPatch", "jsonPatch": {"expression": f"[{', '.join(operations)}]"}}
        ],
    }


def _probes_owner(cluster: Cluster) -> str:
    """The uid of a labelled RayCluster without pods."""
    path = f"/apis/ray.io/v1/namespaces/{_PROBES}/rayclusters"
    if not cluster.api.exists(f"{path}/probe"):
        cluster.create_namespace(_PROBES)
        probe: Any = ray_cluster("probe", Size(workers=0), gang=True)
        probe["spec"]["suspend"] = True
        cluster.api.create(path, probe)
    return str(cluster.api.get(f"{path}/probe")["metadata"]["uid"])


def _gates(api: Api, owner: str) -> bool:
    """Whether a pod of that RayCluster would be gated."""
    pod = api.create(f"/api/v1/namespaces/{_PROBES}/pods?dryRun=All", _probe(owner))
    return {"name": GATE} in pod["spec"].get("schedulingGates", [])


def _probe(owner: str) -> Json:
    kind = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "probe", "uid": owner}
    metadata = {
        "name": "probe",
        "labels": {RAY_NODE_TYPE: "head"},
        "ownerReferences": [{**kind, "controller": True}],
    }
    return {"metadata": metadata, "spec": {"containers": [{"name": "probe", "image": "probe"}]}}
