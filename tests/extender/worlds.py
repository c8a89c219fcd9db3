"""Small worlds for the extender in a line: nodes, pods and Gangs, as the API server holds them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import msgspec

from extender.ledger import Ledger
from extender.snapshot import WatchedPod, watched_pod
from kube.codec.observed_pod import observe
from kube.objects import names
from kube.objects.core import Node, Pod
from kube.objects.gang import Gang
from scheduling.model.shape.host_ports import WHOLE

Json = dict[str, Any]
GPU = "nvidia.com/gpu"
TEAM = "team"


def node(name: str, *, gpu: int = 8, cpu: int = 96, **labels: str) -> Json:
    allocatable = {"cpu": str(cpu), "memory": "768Gi", "pods": "110"}
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": allocatable | ({GPU: str(gpu)} if gpu else {})},
    }


def pod(
    name: str, *, gpu: int = 0, cpu: int = 1, on: str = "", nominated: str = "", **spec: Any
) -> Json:
    requests = {"cpu": str(cpu), **({GPU: str(gpu)} if gpu else {})}
    return {
        "metadata": {"name": name, "namespace": TEAM, "uid": f"uid-{name}", "resourceVersion": "1"},
        "spec": {
            "containers": [{"name": "c", "resources": {"requests": requests}}],
            **({"nodeName": on} if on else {}),
            **spec,
        },
        "status": {"phase": "Pending", "nominatedNodeName": nominated},
    }


def with_port(found: Json, port: int) -> Json:
    """The same pod, with a port of its host; or the same Gang, with pods that have it."""
    if "status" in found and "placement" in found["status"]:
        made = copy.deepcopy(found)
        for each in made["status"]["placement"]["podSets"][0]["assignments"]:
            each["requests"][f"hostPort:TCP:{port}"] = str(WHOLE)
        return made
    [container] = found["spec"]["containers"]
    containers = [{**container, "ports": [{"hostPort": port}]}]
    return {**found, "spec": {**found["spec"], "containers": containers}}


def pinned(found: Json, to: str) -> Json:
    """The same pod, released to a node."""
    pin = {"key": "metadata.name", "operator": "In", "values": [to]}
    terms = {"nodeSelectorTerms": [{"matchFields": [pin]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    noted = {**found["metadata"], "annotations": {names.RELEASED: found["metadata"]["uid"]}}
    return {**found, "metadata": noted, "spec": {**found["spec"], "affinity": affinity}}


def member(found: Json, gang: str = "train", pod_set: str = "workers", replica: str = "") -> Json:
    """The same pod, as one of a RayCluster with the uid `uid-` and its name."""
    labels = {names.RAY_GROUP: pod_set, names.RAY_CLUSTER: gang, names.RAY_NODE_TYPE: "worker"}
    if replica:
        labels[names.RAY_REPLICA_NAME] = replica
    owner = {
        "apiVersion": names.RAY_API_VERSION,
        "kind": "RayCluster",
        "name": gang,
        "uid": f"uid-{gang}",
        "controller": True,
    }
    metadata = {**found["metadata"], "labels": labels, "ownerReferences": [owner]}
    return {**found, "metadata": metadata}


def gang(
    name: str = "train",
    *,
    slots: Mapping[str, int] | None = None,
    gpu: int = 8,
    cpu: int = 1,
    minimum: int | None = None,
    of: str = "",
    kind: str = "RayCluster",
    planned: Mapping[str, int] | None = None,
) -> Json:
    """A Gang; `slots` (node -> pods) of its workers' shape are its placement.

    `planned` are those of the plan that it has while others end for it.
    """
    model = observe(msgspec.convert(member(pod("model", gpu=gpu, cpu=cpu), name), Pod))
    assert model.member is not None
    assert model.member.shape is not None
    requests = {"cpu": str(cpu), GPU: str(gpu), "pods": "1"}
    shape = {"shape": model.member.shape.key, "requests": requests}
    count = sum((slots or {}).values())
    uid = of or f"uid-{name}"
    status = {
        part: {"epoch": 1, "podSets": [{"name": "workers", "assignments": [shape | {"nodes": at}]}]}
        for part, at in (("placement", slots), ("planned", planned))
        if at
    }
    least = count if minimum is None else minimum
    return {
        "metadata": {
            "name": name,
            "namespace": TEAM,
            "uid": f"gang-{name}",
            "ownerReferences": [{"kind": kind, "name": name, "uid": uid}],
        },
        "spec": {
            "rayClusterUid": uid,
            "podSets": [{"name": "workers", "count": count, "minimum": least}],
        },
        "status": status,
    }


def as_watched_pod(found: Json) -> WatchedPod:
    return watched_pod(as_pod(found))


def as_pod(found: Json) -> Pod:
    return msgspec.convert(found, Pod)


def as_gang(found: Json) -> Gang:
    return msgspec.convert(found, Gang)


def as_node(found: Json) -> Node:
    return msgspec.convert(found, Node)


def ledger(*objects: Json) -> Ledger:
    """What an extender knows that has seen these: Gangs have `podSets`, pods have containers."""
    made = Ledger()
    for each in objects:
        if "podSets" in each.get("spec", {}):
            made.put_gang(as_gang(each))
        elif "spec" in each:
            made.put_pod(as_watched_pod(each))
        else:
            made.put_node(as_node(each))
    return made
