"""Makes objects of a manager as the dispatcher's state machine sees them."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from dispatcher.reading import Original, RayObject, original_of
from kube.gang.sent import APP_WRAPPER, MCAD_APP_WRAPPER
from kube.objects import names
from kube.objects.base import ObjectMeta
from kube.objects.clusters.member_cluster import MemberCluster, MemberClusterSpec

MANAGER = "uid-of-the-manager"
GPU = "nvidia.com/gpu"
TEAM = "team"
Json = dict[str, Any]


def meta(name: str, uid: str = "", **more: Any) -> ObjectMeta:
    return ObjectMeta(name=name, uid=uid or f"uid-{name}", **{"namespace": TEAM, **more})


def ray_cluster(name: str, *, suspend: bool = False, workers: int = 2, **more: Any) -> RayObject:
    """A RayCluster as the API server of the manager has it."""
    spec = {
        "managedBy": names.MANAGED_ELSEWHERE,
        "suspend": suspend,
        "headGroupSpec": {"template": {}},
        "workerGroupSpecs": [{"groupName": "workers", "replicas": workers}],
    }
    fields: Json = {
        "resource_version": "1",
        "generation": 1,
        "labels": {names.QUEUE: "all"},
        **more,
    }
    return RayObject(meta(name, **fields), msgspec.Raw(msgspec.json.encode(spec)))


def ray_job(name: str, **more: Any) -> RayObject:
    """A RayJob as the API server of the manager has it."""
    found = ray_cluster(name, **more)
    spec = msgspec.json.decode(found.spec)
    suspend = spec.pop("suspend")
    outer = {"managedBy": names.MANAGED_ELSEWHERE, "suspend": suspend, "rayClusterSpec": spec}
    return RayObject(found.metadata, msgspec.Raw(msgspec.json.encode(outer)))


def ray_service(name: str, **more: Any) -> RayObject:
    """A RayService as the API server of the manager has it."""
    found = ray_cluster(name, **more)
    outer = {
        "managedBy": names.MANAGED_ELSEWHERE,
        "rayClusterConfig": msgspec.json.decode(found.spec),
    }
    return RayObject(found.metadata, msgspec.Raw(msgspec.json.encode(outer)))


def app_wrapper(name: str, *, suspend: bool = False, **more: Any) -> RayObject:
    """An AppWrapper as the API server of the manager has it."""
    found = ray_cluster(name, **more)
    notes = {names.DISPATCHED: "true", names.CREATED_BY: '{"username": "ann"}', "by": "ann"}
    meta = replace(found.metadata, annotations=notes)
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"{name}s-work"}}
    spec = {"managedBy": names.MANAGED_BY, "suspend": suspend, "components": [{"template": job}]}
    return RayObject(meta, msgspec.Raw(msgspec.json.encode(spec)))


def mcad_wrapper(name: str, **more: Any) -> RayObject:
    """One of MCAD's generation and API group."""
    found = app_wrapper(name, **more)
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": f"{name}s-work"}}
    spec: Json = {"resources": {"GenericItems": [{"generictemplate": job}]}}
    return RayObject(found.metadata, msgspec.Raw(msgspec.json.encode(spec)))


_MAKERS = {
    "RayCluster": ray_cluster,
    "RayJob": ray_job,
    "RayService": ray_service,
    APP_WRAPPER: app_wrapper,
    MCAD_APP_WRAPPER: mcad_wrapper,
}


def original(name: str, kind: str = "RayCluster", **more: Any) -> Original:
    found = original_of(_MAKERS[kind](name, **more), kind)
    assert found is not None
    return found


def member_cluster(name: str, labels: Json | None = None, **spec: Any) -> MemberCluster:
    fields: Json = {"namespaces": (TEAM,), **spec}
    named = ObjectMeta(name=name, uid=f"uid-{name}", labels=labels or {})
    return MemberCluster(named, MemberClusterSpec(**fields))
