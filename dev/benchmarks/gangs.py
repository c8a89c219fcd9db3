"""Makes the Ray clusters that the benchmarks create."""

from __future__ import annotations

import json
from dataclasses import dataclass

from testbed.api import Json
from testbed.nodes import GPU

NAMESPACE = "default"
RAY_CLUSTERS = f"/apis/ray.io/v1/namespaces/{NAMESPACE}/rayclusters"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
OPT_IN = {"muster.dev/gang": "true"}


@dataclass(frozen=True)
class Size:
    """A gang: a head of one CPU, and workers."""

    workers: int = 3
    gpus: int = 8
    cpus: int = 8

    @property
    def pods(self) -> int:
        """All pods of the gang."""
        return self.workers + 1


def ray_cluster(name: str, size: Size, *, gang: bool, queue: str = "") -> Json:
    """One RayCluster; the same but for its labels with Muster and without."""
    workers = {
        "groupName": "workers",
        "replicas": size.workers,
        "minReplicas": 0,
        "maxReplicas": size.workers,
        "rayStartParams": {},
        "template": _template("ray-worker", size.cpus, size.gpus),
    }
    head = {"rayStartParams": {}, "template": _template("ray-head", 1, 0)}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": name, "labels": _labels(queue) if gang else {}},
        "spec": {"rayVersion": "2.52.0", "headGroupSpec": head, "workerGroupSpecs": [workers]},
    }


def bodies(prefix: str, count: int, size: Size, *, gang: bool, queues: int = 0) -> list[bytes]:
    """Encode `count` RayClusters beforehand, so that creating them is sending only.

    They name so many queues in turn, none if there are none.
    """
    names = [queue_name(i % queues) if queues else "" for i in range(count)]
    clusters = (
        ray_cluster(f"{prefix}-{i:03}", size, gang=gang, queue=queue)
        for i, queue in enumerate(names)
    )
    return [json.dumps(cluster).encode() for cluster in clusters]


def queue_name(at: int) -> str:
    """The name of a queue of the benchmarks."""
    return f"bench-{at}"


def _labels(queue: str) -> dict[str, str]:
    return {**OPT_IN, "muster.dev/queue": queue} if queue else OPT_IN


def _template(container: str, cpus: int, gpus: int) -> Json:
    resources: Json = {"requests": {"cpu": str(cpus), "memory": "1Gi"}}
    if gpus:
        resources["limits"] = {GPU: str(gpus)}
    return {"spec": {"containers": [{"name": container, "image": "ray", "resources": resources}]}}
