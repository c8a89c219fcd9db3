"""Small worlds in a line: Ray clusters, nodes and foreign pods, as the API server holds them.

Everything here is JSON; the toy controllers of `world` make the pods, as KubeRay does.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kube.objects import names

Json = dict[str, Any]
Amount = int | str

GPU = "nvidia.com/gpu"
TEAM = "team"
OPTED_IN: Mapping[str, str] = {names.OPT_IN: "true"}


def node(
    name: str,
    *,
    cpu: Amount = 8,
    gpu: int = 0,
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    cordoned: bool = False,
) -> Json:
    allocatable = {"cpu": str(cpu), "memory": "64Gi", "pods": str(pods)}
    if gpu:
        allocatable[GPU] = str(gpu)
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {"unschedulable": True} if cordoned else {},
        "status": {"allocatable": allocatable},
    }


def template(*, cpu: Amount = 1, gpu: int = 0, **spec: object) -> Json:
    """A pod template; what else is given goes into its spec."""
    requests = {"cpu": str(cpu), **({GPU: str(gpu)} if gpu else {})}
    return {"spec": {"containers": [{"name": "ray", "resources": {"requests": requests}}], **spec}}


def pinned_to(name: str) -> Json:
    """The spec of a pod that was released to a node and is bound to it."""
    pin = {"key": "metadata.name", "operator": "In", "values": [name]}
    required = {"nodeSelectorTerms": [{"matchFields": [pin]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return {"nodeName": name, "affinity": affinity}


def group(
    name: str,
    replicas: int,
    *,
    hosts: int = 1,
    least: int | None = None,
    most: int | None = None,
    **pod: Any,
) -> Json:
    """A worker group; `pod` goes to `template`."""
    numbers = {"replicas": replicas, "minReplicas": least, "maxReplicas": most}
    return {
        "groupName": name,
        "numOfHosts": hosts,
        "template": template(**pod),
        **{key: value for key, value in numbers.items() if value is not None},
    }


def affinity_to(to: str, group_name: str = "") -> Json:
    """Affinity of a pod to any of a Ray cluster or of one group of it, within one zone."""
    wanted = {names.RAY_CLUSTER: to, **({names.RAY_GROUP: group_name} if group_name else {})}
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": wanted}}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def ray_cluster(
    name: str,
    *groups: Json,
    namespace: str = TEAM,
    labels: Mapping[str, str] = OPTED_IN,
    annotations: Mapping[str, str] | None = None,
    head: Json | None = None,
    **spec: object,
) -> Json:
    """A RayCluster, opted in; what else is given goes into its spec."""
    return {
        "apiVersion": names.RAY_API_VERSION,
        "kind": "RayCluster",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": dict(labels),
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "headGroupSpec": {"template": head or template(cpu=1)},
            "workerGroupSpecs": list(groups),
            **spec,
        },
    }


def gang_of(name: str, workers: int, *, cpu: Amount = 1, **more: Any) -> Json:
    """The usual Ray cluster: a head of 1 CPU and so many workers."""
    return ray_cluster(name, group("workers", workers, cpu=cpu), **more)


def foreign_pod(name: str, on: str, *, cpu: Amount = 1, gpu: int = 0, **spec: object) -> Json:
    """A foreign pod, bound already."""
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "others"},
        **template(cpu=cpu, gpu=gpu, nodeName=on, **spec) | {"status": {"phase": "Running"}},
    }


def pod_of(
    cluster: Json, pod_set: str, name: str, pod_template: Json, replica: str, gates: Sequence[str]
) -> Json:
    """A pod as KubeRay makes it."""
    meta = cluster["metadata"]
    owner = {
        "apiVersion": names.RAY_API_VERSION,
        "kind": "RayCluster",
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }
    head = pod_set == names.RAY_HEAD_GROUP
    labels = {
        **pod_template.get("metadata", {}).get("labels", {}),
        names.RAY_CLUSTER: meta["name"],
        names.RAY_GROUP: pod_set,
        names.RAY_NODE_TYPE: "head" if head else "worker",
        **({names.RAY_REPLICA_NAME: replica} if replica else {}),
    }
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": meta["namespace"],
            "labels": labels,
            "annotations": {"ray.io/ft-enabled": "false"},
            "ownerReferences": [owner],
        },
        "spec": {**pod_template["spec"], "schedulingGates": [{"name": gate} for gate in gates]},
        "status": {"phase": "Pending"},
    }


def is_left_alone(cluster: Json) -> bool:
    """Whether KubeRay makes no pods of a Ray cluster: it is going, or another cluster runs it."""
    elsewhere = cluster["spec"].get("managedBy") == names.MANAGED_ELSEWHERE
    return elsewhere or "deletionTimestamp" in cluster["metadata"]
