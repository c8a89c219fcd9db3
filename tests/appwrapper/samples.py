"""AppWrappers as users write them, for tests."""

from typing import Any

import msgspec

from appwrapper.gang.pod_sets import foreseen_pods
from appwrapper.gang.stand_in import StandIn, stand_in
from appwrapper.spec.items import read
from appwrapper.spec.wrapped import Item, Wrapped
from kube.foreseen.admission import Admission
from kube.foreseen.gang import Foreseen
from kube.objects.app_wrapper import AppWrapper
from kube.objects.names import CODEFLARE_V1BETA1, CODEFLARE_V1BETA2

Json = dict[str, Any]


def pod_spec(cpu: Any = "500m", **spec: Any) -> Json:
    container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": cpu}}}
    return {"containers": [container], **spec}


def template(cpu: Any = "500m", labels: Json | None = None, **spec: Any) -> Json:
    return {"metadata": {"labels": labels or {"app": "work"}}, "spec": pod_spec(cpu, **spec)}


def obj(api_version: str, kind: str, name: str, **fields: Any) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def deployment(name: str = "web", replicas: Any = 2, cpu: Any = "500m", **spec: Any) -> Json:
    made_of = {"replicas": replicas, "template": template(cpu, **spec)}
    return obj("apps/v1", "Deployment", name, spec=made_of)


def job(name: str = "train", **spec: Any) -> Json:
    return obj("batch/v1", "Job", name, spec={"template": template(), **spec})


def config_map(name: str = "settings") -> Json:
    return obj("v1", "ConfigMap", name, data={"a": "b"})


def ray_container(name: str, cpu: str, memory: str) -> Json:
    amounts = {"cpu": cpu, "memory": memory}
    return {"name": name, "resources": {"limits": amounts, "requests": amounts}}


def ray_spec(**spec: Any) -> Json:
    head = {"metadata": {"labels": {}}, "spec": {"containers": [ray_container("head", "1", "2G")]}}
    worker = {"spec": {"containers": [ray_container("worker", "2", "2G")]}}
    group = {
        "groupName": "small-group",
        "replicas": 1,
        "minReplicas": 1,
        "maxReplicas": 1,
        "rayStartParams": {},
        "template": worker,
    }
    return {
        "headGroupSpec": {"rayStartParams": {}, "template": head},
        "workerGroupSpecs": [group],
        **spec,
    }


def ray_cluster(name: str = "raycluster-complete", **spec: Any) -> Json:
    return obj("ray.io/v1", "RayCluster", name, spec=ray_spec(**spec))


def sizes(*pods: tuple[int, Any], memory: str = "2G") -> list[Json]:
    """Write custompodresources: how many pods, and the CPU of each."""
    amounts = ({"cpu": cpu, "memory": memory, "nvidia.com/gpu": 0} for _n, cpu in pods)
    return [
        {"replicas": n, "limits": each, "requests": each}
        for (n, _cpu), each in zip(pods, amounts, strict=True)
    ]


def mcad_item(made_of: Any, **item: Any) -> Json:
    return {"replicas": 1, "generictemplate": made_of, **item}


def wrapper(spec: Any, name: str = "aw", **fields: Any) -> AppWrapper:
    """Write an AppWrapper as the API server has it, and decode it as the watch does."""
    version = CODEFLARE_V1BETA1 if "resources" in spec else CODEFLARE_V1BETA2
    meta = {"name": name, "namespace": "ns", "uid": "u-1", "generation": 1}
    meta |= fields.pop("metadata", {})
    found = {"apiVersion": version, "kind": "AppWrapper", "metadata": meta, "spec": spec, **fields}
    return msgspec.json.decode(msgspec.json.encode(found), type=AppWrapper)


def mcad(*items: Any, **spec: Any) -> AppWrapper:
    return wrapper({"resources": {"GenericItems": [*items]}, **spec})


def codeflare(*objects: Any, **spec: Any) -> AppWrapper:
    return wrapper({"components": [{"template": each} for each in objects], **spec})


def component(made_of: Any, **fields: Any) -> AppWrapper:
    return wrapper({"components": [{"template": made_of, **fields}]})


def fine(found: AppWrapper) -> Wrapped:
    wrapped = read(found)
    assert [each.message for each in wrapped.faults] == []
    return wrapped


def only(found: AppWrapper) -> Item:
    (item,) = fine(found).items
    return item


def said(found: AppWrapper) -> list[str]:
    """The messages of all faults."""
    return [each.message for each in read(found).faults]


def gang(found: AppWrapper) -> StandIn:
    return stand_in(found, read(found))


def foreseen(found: AppWrapper) -> Foreseen:
    outlook = foreseen_pods(gang(found), Admission())
    assert isinstance(outlook, Foreseen), outlook
    return outlook


def walk_through(name: str = "raycluster-complete") -> AppWrapper:
    """The AppWrapper of KubeRay's walk-through with MCAD: a head of 1 CPU, a worker of 2."""
    item = mcad_item(ray_cluster(name), custompodresources=sizes((1, 1), (1, 2)))
    return wrapper({"resources": {"GenericItems": [item]}}, name)
