"""Writes RayClusters, RayJobs and RayServices for the tests, in a line each.

Every pod asks for 1 CPU and 1Gi unless the test says otherwise, so that a node's CPUs count pods.
What a test does not care about is as small as KubeRay takes it.
"""

from collections.abc import Mapping
from typing import Any

from kube.objects import names

Json = dict[str, Any]

API_VERSION = names.RAY_API_VERSION
RAY_VERSION = "2.60.0"
GANG = {names.OPT_IN: "true"}


def requests(cpu: str = "1", memory: str = "1Gi", **more: str) -> Json:
    """The resources of a container; `more` are extended resources."""
    return {"requests": {"cpu": cpu, "memory": memory, **more}, "limits": more}


def template(name: str, resources: Json | None = None, **spec: Any) -> Json:
    """A pod template with one Ray container; `spec` goes beside it."""
    container = {"name": name, "image": "ray", "resources": resources or requests()}
    return {"spec": {"containers": [container], **spec}}


def head(resources: Json | None = None, **spec: Any) -> Json:
    """The head group."""
    return {"rayStartParams": {}, "template": template("ray-head", resources, **spec)}


def group(
    name: str = "workers",
    replicas: int = 2,
    *,
    least: int = 0,
    most: int = 10,
    hosts: int = 1,
    resources: Json | None = None,
    **spec: Any,
) -> Json:
    """One worker group."""
    return {
        "groupName": name,
        "replicas": replicas,
        "minReplicas": least,
        "maxReplicas": most,
        "numOfHosts": hosts,
        "rayStartParams": {},
        "template": template("ray-worker", resources, **spec),
    }


def cluster_spec(*groups: Json, head_group: Json | None = None, **spec: Any) -> Json:
    """The spec of a RayCluster, as it also stands in a RayJob and a RayService."""
    return {
        "rayVersion": RAY_VERSION,
        "headGroupSpec": head_group or head(),
        "workerGroupSpecs": list(groups),
        **spec,
    }


def ray_cluster(
    name: str,
    *groups: Json,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    head_group: Json | None = None,
    **spec: Any,
) -> Json:
    """A RayCluster that says nothing about Muster unless its labels or annotations do."""
    return {
        "apiVersion": API_VERSION,
        "kind": "RayCluster",
        "metadata": {"name": name, **_marks(labels, annotations)},
        "spec": cluster_spec(*groups, head_group=head_group, **spec),
    }


def gang(name: str, *groups: Json, labels: Mapping[str, str] | None = None, **rest: Any) -> Json:
    """A RayCluster that is a gang by its label."""
    return ray_cluster(name, *groups, labels={**GANG, **(labels or {})}, **rest)


def ray_job(name: str, *groups: Json, labels: Mapping[str, str] | None = None, **spec: Any) -> Json:
    """A RayJob that makes its own RayCluster and is submitted by a pod of a Job."""
    return {
        "apiVersion": API_VERSION,
        "kind": "RayJob",
        "metadata": {"name": name, **_marks(labels, None)},
        "spec": {
            "entrypoint": "python -c pass",
            "rayClusterSpec": cluster_spec(*groups),
            "submitterPodTemplate": _submitter(),
            **spec,
        },
    }


def _submitter() -> Json:
    spec = template("submitter", requests(cpu="100m", memory="64Mi"))
    spec["spec"]["restartPolicy"] = "Never"
    return spec


def ray_service(name: str, *groups: Json, labels: Mapping[str, str] | None = None) -> Json:
    """A RayService that makes its own RayCluster."""
    return {
        "apiVersion": API_VERSION,
        "kind": "RayService",
        "metadata": {"name": name, **_marks(labels, None)},
        "spec": {"serveConfigV2": "applications: []", "rayClusterConfig": cluster_spec(*groups)},
    }


def pod(name: str, labels: Mapping[str, str] | None = None, **spec: Any) -> Json:
    """A pod that no RayCluster made."""
    container = {"name": "main", "image": "none", "resources": requests()}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {"containers": [container], **spec},
    }


def _marks(labels: Mapping[str, str] | None, annotations: Mapping[str, str] | None) -> Json:
    return {"labels": dict(labels or {}), "annotations": dict(annotations or {})}


def on_nodes(manifest: Json, selector: Mapping[str, str]) -> Json:
    """The manifest with this node selector in every pod template; changes it in place."""
    for found in _pod_specs(manifest):
        found["nodeSelector"] = {**selector, **found.get("nodeSelector", {})}
    return manifest


def _pod_specs(manifest: Json) -> list[Json]:
    """The pod specs in a manifest: whatever has containers."""
    found, rest = [], [manifest]
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            found += [value] if "containers" in value else []
            rest += value.values()
        elif isinstance(value, list):
            rest += value
    return found
