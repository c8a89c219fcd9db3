"""Suspended RayClusters and what a namespace says to their pods, in a line each."""

import json
from typing import Any, TypeVar

import msgspec

from kube.foreseen.admission import Admission
from kube.foreseen.gang import (
    Foreseen,
    ForeseenPodSet,
    NeverAdmitted,
    foreseen_gang,
    observed_pods,
)
from kube.objects.admission import LimitRange, RuntimeClass
from kube.objects.core import PriorityClass
from kube.objects.ray import RayCluster
from kube.ray.ray_cluster import essential
from scheduling.model.pod import PodShape

Json = dict[str, Any]
T = TypeVar("T")
ONE_CPU = {"requests": {"cpu": "1", "memory": "1Gi"}}


def read(raw: Json, kind: type[T]) -> T:
    return msgspec.json.decode(json.dumps(raw), type=kind)


def container(resources: Json | None = None, name: str = "ray", **more: Any) -> Json:
    return {"name": name, "image": "ray", "resources": resources or ONE_CPU, **more}


def template(*containers: Json, labels: Json | None = None, **spec: Any) -> Json:
    return {
        "metadata": {"labels": labels},
        "spec": {"containers": list(containers) or [container()], **spec},
    }


def group(replicas: int = 1, made_of: Json | None = None, **more: Any) -> Json:
    """A worker group `workers` unless it says another name."""
    numbers = {"replicas": replicas, "minReplicas": 0, "maxReplicas": 2**31 - 1}
    return {"groupName": "workers", **numbers, "template": made_of or template(), **more}


def raw_cluster(
    *groups: Json, head: Json | None = None, meta: Json | None = None, **spec: Any
) -> Json:
    return {
        "metadata": {"name": "rc", "namespace": "ns", "uid": "u-1", **(meta or {})},
        "spec": {
            "suspend": True,
            "headGroupSpec": {"template": head or template()},
            "workerGroupSpecs": list(groups),
            **spec,
        },
    }


def cluster(*groups: Json, **more: Any) -> RayCluster:
    return essential(read(raw_cluster(*groups, **more), RayCluster))


def limit_range(name: str = "limits", kind: str = "Container", **said: Any) -> LimitRange:
    items = [{"type": kind, **said}]
    return read({"metadata": {"name": name}, "spec": {"limits": items}}, LimitRange)


def runtime(name: str = "sandbox", **said: Any) -> dict[str, RuntimeClass]:
    return {name: read({"metadata": {"name": name}, **said}, RuntimeClass)}


def priority_class(name: str, value: int, *, usual: bool = False) -> dict[str, PriorityClass]:
    raw = {"metadata": {"name": name}, "value": value, "globalDefault": usual}
    return {name: read(raw, PriorityClass)}


def foreseen(*groups: Json, by: Admission | None = None, **more: Any) -> Foreseen:
    found = foreseen_gang(cluster(*groups, **more), by or Admission())
    assert isinstance(found, Foreseen), found
    return found


def pod_set(name: str, found: Foreseen) -> ForeseenPodSet:
    (one,) = [each for each in found.pod_sets if each.name == name]
    return one


def shape(name: str, found: Foreseen) -> PodShape:
    """The one shape that all pods of a pod set have."""
    pods = [each.member for each in observed_pods(found) if each.member]
    (one,) = {each.shape for each in pods if each.pod_set == name}
    assert one is not None
    return one


def worker(made_of: Json, by: Admission | None = None, **more: Any) -> PodShape:
    """The shape of a worker that is made of a template."""
    return shape("workers", foreseen(group(made_of=made_of), by=by, **more))


def head(made_of: Json, by: Admission | None = None) -> PodShape:
    """The shape of a head that is made of a template."""
    return shape("headgroup", foreseen(head=made_of, by=by))


def refusal(made_of: Json, by: Admission | None = None) -> str:
    """Why a head that is made of a template is not admitted."""
    found = foreseen_gang(cluster(head=made_of), by or Admission())
    assert isinstance(found, NeverAdmitted), found
    return found.message
