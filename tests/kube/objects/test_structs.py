"""The slim structs take what API servers send, and drop only fields that are not read."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import msgspec
import orjson
import pytest

from kube import objects
from kube.objects import base as base_objects
from kube.objects import core as core_objects
from kube.objects import ray as ray_objects
from kube.objects.base import Slim
from kube.objects.core import Namespace, Node, Pod, PriorityClass
from kube.objects.gang import Gang
from kube.objects.queues.queue import GangQueue
from kube.objects.ray import RayCluster
from kube.objects.storage import PersistentVolume
from kube.ray.ray_cluster import essential
from tests.kube.ray.clusters import read_cluster

Json = dict[str, Any]
KINDS = [Pod, Node, RayCluster, Gang, Namespace, PriorityClass, GangQueue]


def structs() -> list[type[msgspec.Struct]]:
    """Every struct that a module of kube.objects defines, in the order of their names."""
    modules = [
        import_module(f"kube.objects.{each.name}") for each in iter_modules(objects.__path__)
    ]
    found = {each for module in modules for each in vars(module).values() if isinstance(each, type)}
    return sorted(
        (each for each in found if issubclass(each, Slim)),
        key=lambda each: each.__name__,
    )


def test_the_structs_of_all_modules_are_looked_at() -> None:
    assert {Pod, Gang, RayCluster, PersistentVolume} <= set(structs())


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_object_decodes(kind: type[msgspec.Struct]) -> None:
    assert msgspec.json.decode(b"{}", type=kind) == kind()


@pytest.mark.parametrize("kind", KINDS)
def test_fields_that_are_not_read_are_skipped(kind: type[msgspec.Struct]) -> None:
    noise = (
        b'{"metadata": {"name": "x", "managedFields": [{"a": 1}]}, "spec": {"zzz": [1]}, "zzz": {}}'
    )
    assert msgspec.json.decode(noise, type=kind).metadata.name == "x"  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", structs())
def test_null_lists_and_maps_read_as_empty(kind: type[msgspec.Struct]) -> None:
    fields = msgspec.structs.fields(kind)
    empties = [f for f in fields if f.default == () or f.default_factory is dict]
    nulls = dict.fromkeys((field.encode_name for field in empties), None)
    decoded = msgspec.json.decode(orjson.dumps(nulls), type=kind)
    assert decoded == kind()
    assert all(getattr(decoded, field.name) is not None for field in empties)


@pytest.mark.parametrize("kind", structs())
def test_structs_can_be_encoded_again(kind: type[msgspec.Struct]) -> None:
    assert msgspec.json.decode(msgspec.json.encode(kind()), type=kind) == kind()


@pytest.mark.parametrize("kind", structs())
def test_structs_are_frozen_and_out_of_the_collectors_way(kind: type[msgspec.Struct]) -> None:
    assert kind.__struct_config__.frozen
    assert not kind.__struct_config__.gc


def pod(spec: Json, status: Json | None = None) -> Pod:
    return msgspec.json.decode(orjson.dumps({"spec": spec, "status": status or {}}), type=Pod)


def test_quantities_may_be_numbers() -> None:
    requests = {"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": 0.5}
    found = pod({"containers": [{"name": "c", "resources": {"requests": requests}}]})
    assert found.spec.containers[0].resources.requests == requests


def test_camel_case_as_kubernetes_spells_it() -> None:
    found = pod(
        {
            "nodeName": "n1",
            "schedulerName": "other",
            "hostNetwork": True,
            "hostUsers": False,
            "priorityClassName": "high",
            "initContainers": [{"name": "i", "restartPolicy": "Always"}],
            "topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}],
            "resourceClaims": [{"name": "claim"}],
            "schedulingGroup": {"podGroupName": "x"},
        },
        {"nominatedNodeName": "n2", "containerStatuses": [{"allocatedResources": {"cpu": "2"}}]},
    )
    assert found.spec == core_objects.PodSpec(
        node_name="n1",
        scheduler_name="other",
        host_network=True,
        host_users=False,
        priority_class_name="high",
        init_containers=(core_objects.Container(name="i", restart_policy="Always"),),
        topology_spread_constraints=(core_objects.TopologySpreadConstraint("DoNotSchedule"),),
        resource_claims=(core_objects.PodResourceClaim("claim"),),
        scheduling_group=base_objects.Present(),
    )
    assert found.status.nominated_node_name == "n2"
    assert found.status.container_statuses[0].allocated_resources == {"cpu": "2"}


def test_volumes_keep_their_kind_and_of_the_source_the_claim() -> None:
    volumes = [
        {"name": "shm", "emptyDir": {"medium": "Memory"}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "x"}, "emptyDir": None},
    ]
    found = pod({"volumes": volumes}).spec.volumes
    assert found[0] == {"name": "shm", "emptyDir": core_objects.VolumeSource()}
    assert found[1]["persistentVolumeClaim"] == core_objects.VolumeSource("x")


def test_required_affinity_is_read_and_preferred_is_not() -> None:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}
    affinity = pod(
        {
            "affinity": {
                "nodeAffinity": {preferred: [{"weight": 1, "preference": {}}]},
                "podAffinity": {preferred: [{"weight": 1, "podAffinityTerm": term}]},
                "podAntiAffinity": {required: [{**term, "namespaceSelector": {}}]},
            }
        }
    ).spec.affinity
    selector = base_objects.LabelSelector(match_labels={"a": "b"})
    anti = core_objects.PodAffinityTerm(
        label_selector=selector,
        namespace_selector=base_objects.LabelSelector(),
        topology_key="zone",
    )
    assert affinity == core_objects.Affinity(
        node_affinity=core_objects.NodeAffinity(),
        pod_affinity=core_objects.PodAffinity(),
        pod_anti_affinity=core_objects.PodAffinity(required=(anti,)),
    )


def test_raycluster_as_kuberay_stores_it() -> None:
    group = {
        "groupName": "gpu", "replicas": 2, "minReplicas": 1, "maxReplicas": 3, "numOfHosts": 2,
        "suspend": False, "rayStartParams": {}, "template": {"spec": {"containers": []}},
    }  # fmt: skip
    spec = {"workerGroupSpecs": [group], "enableInTreeAutoscaling": True, "headGroupSpec": {}}
    found = essential(read_cluster({"spec": spec, "status": {"state": "ready"}}))
    expected = ray_objects.WorkerGroup("gpu", 2, 1, 3, 2, suspend=False)
    assert found.spec.worker_group_specs == (expected,)
    assert found.spec.enable_in_tree_autoscaling
