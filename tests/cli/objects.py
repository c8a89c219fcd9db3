"""Hand-made objects for reports: as an API server sends them, decoded as the commands decode."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from coordinator.deployed import Deployment
from kube.objects.base import ObjectMeta
from kube.objects.core import Node, Pod
from kube.objects.gang import Gang
from kube.objects.queues.queue import GangQueue

GPU = "nvidia.com/gpu"
Json = dict[str, Any]
T = TypeVar("T")


class Placed(Deployment, frozen=True):
    """A Deployment with all that any of its readers reads."""

    metadata: ObjectMeta = ObjectMeta()


def read(body: Json, as_: type[T]) -> T:
    """Decode an object as it comes."""
    return msgspec.convert(body, as_)


def node(name: str, gpus: int = 8, **fields: Any) -> Node:
    """A node with 96 CPUs; `labels`, `taints` and `unschedulable` as they are in the object."""
    allocatable = {"cpu": "96", "memory": "768Gi", "pods": "110", **({GPU: gpus} if gpus else {})}
    metadata = {"name": name, "labels": fields.pop("labels", {})}
    return msgspec.convert(
        {"metadata": metadata, "spec": fields, "status": {"allocatable": allocatable}}, Node
    )


def pod(
    name: str,
    on: str,
    gpus: int,
    *,
    of: str = "",
    pod_set: str = "workers",
    gated: bool = False,
    pinned: str = "",
    selector: Mapping[str, str] | None = None,
) -> Pod:
    """A pod with 4 CPUs, of the Ray cluster `of` where it is named; `pinned` as a release does."""
    requests = {"cpu": "4", "memory": "16Gi", **({GPU: gpus} if gpus else {})}
    metadata: Json = {"name": name, "namespace": "team", "uid": name, "labels": {}}
    if of:
        owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": of, "uid": f"uid-{of}"}
        metadata["ownerReferences"] = [{**owner, "controller": True}]
        kind = "head" if pod_set == "headgroup" else "worker"
        metadata["labels"] = {
            "ray.io/cluster": of,
            "ray.io/group": pod_set,
            "ray.io/node-type": kind,
        }
    spec: Json = {"containers": [{"name": "ray", "resources": {"requests": requests}}]}
    if gated:
        spec["schedulingGates"] = [{"name": "muster.dev/gang"}]
    if pinned:
        metadata["annotations"] = {"muster.dev/released": name}
        field = {"key": "metadata.name", "operator": "In", "values": [pinned]}
        terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        spec["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        }
    spec |= {"nodeName": on, "nodeSelector": dict(selector or {})}
    status = {"phase": "Running" if on else "Pending"}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, Pod)


def gang(name: str, phase: str = "Queued", **status: Any) -> Gang:
    """A gang; `namespace`, `created`, `queue` and `priority` are no fields of its status."""
    metadata = {
        "name": name,
        "uid": f"gang-{name}",
        "namespace": status.pop("namespace", "team"),
        "creationTimestamp": status.pop("created", "2026-11-22T07:00:00Z"),
    }
    spec = {
        "queue": status.pop("queue", "research"),
        "priority": status.pop("priority", 0),
        "rayClusterUid": f"uid-{name}",
    }
    return msgspec.convert(
        {"metadata": metadata, "spec": spec, "status": {"phase": phase, **status}}, Gang
    )


def placement(queue: str = "research", gpus: int = 8, **nodes: int) -> Json:
    """A placement of `workers` with so many GPUs each, by node; `_` in a name stands for `-`."""
    requests = {"cpu": "4", "memory": "16Gi", "pods": "1", GPU: str(gpus)}
    placed = {"shape": "s", "requests": requests}
    on = {name.replace("_", "-"): count for name, count in nodes.items()}
    pod_sets = [{"name": "workers", "assignments": [{**placed, "nodes": on}]}]
    return {"epoch": 1, "queue": queue, "podSets": pod_sets}


def queue(name: str, quota: Json | None = None, parent: str = "", **status: Any) -> GangQueue:
    """A queue with its status; further rules are in `rules`."""
    spec = {"quota": quota, "parent": parent, **status.pop("rules", {})}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec, "status": status}, GangQueue)
