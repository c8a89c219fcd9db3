"""Nodes as clouds make them, and pods of each KubeRay, are read right."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kube.codec.node import node
from kube.codec.observed_pod import observe
from kube.codec.pod import pod_shape
from kube.objects import core as core_objects
from kube.ray.gang_terms import PodSetTerms, gang_terms
from scheduling.cycle import run_cycle
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.holder import Holder
from scheduling.model.node import Node
from scheduling.model.verdict import Admitted, Reason, Verdict
from scheduling.state.node_table import node_snapshot_of
from tests.builders import group
from tests.builders import node as plain_node
from tests.kube.ray.clusters import read_cluster

Json = dict[str, Any]

SAMPLES = Path(__file__).parent / "samples"
VERSIONS = ["1.4.2", "1.5.1", "1.6.2"]
GPU, TPU = "nvidia.com/gpu", "google.com/tpu"
NODES = [  # what runs on them, how many of it a node has, and their taint
    ("eks-p5.48xlarge", GPU, 8, "nvidia.com/gpu"),
    ("gke-a3-highgpu-8g", GPU, 8, "nvidia.com/gpu"),
    ("gke-a2-highgpu-8g", GPU, 8, "nvidia.com/gpu"),
    ("gke-tpu-v5e-2x4", TPU, 4, "google.com/tpu"),
    ("aks-nd96isr-h100-v5", GPU, 8, "sku"),
    ("oke-bm.gpu.h100.8", GPU, 8, "nvidia.com/gpu"),
    ("dgx-h100", GPU, 8, ""),
]

every_version = pytest.mark.parametrize("version", VERSIONS)


def sample(name: str) -> Any:
    return json.loads((SAMPLES / f"{name}.json").read_bytes())


def nodes(name: str) -> list[Node]:
    return [node(msgspec.convert(each, core_objects.Node)) for each in sample(f"nodes-{name}")]


def pods(version: str) -> list[Json]:
    """The head and the two workers of one replica."""
    found: list[Json] = sample(f"pods-kuberay-{version}")
    return found


def asking_for(raw: Json, device: str, count: int, taint: str) -> Json:
    """A worker that asks for another device, and tolerates another taint."""
    changed: Json = json.loads(json.dumps(raw))
    for each in ("requests", "limits"):
        asked = changed["spec"]["containers"][0]["resources"][each]
        del asked[GPU]
        asked |= {device: str(count), "memory": "128Gi"}
    changed["spec"]["tolerations"] = [{"key": taint, "operator": "Exists"}] if taint else []
    return changed


def verdict(world: list[Node], head: Json, worker: Json, workers: int) -> Verdict:
    """Decide a gang of such pods, with a small node beside the others for its head."""
    shapes = [pod_shape(msgspec.convert(each, core_objects.Pod)) for each in (head, worker)]
    groups = (group("headgroup", 1, shapes[0]), group("workers", workers, shapes[1]))
    asked = PendingGang(GangKey("team-a", "train"), 0, 0.0, groups)
    columns = node_snapshot_of([*world, plain_node("system", cpu=8, memory="32Gi")])
    [decision] = run_cycle([asked], columns)
    return decision.verdict


@pytest.mark.parametrize(("name", "device", "count", "taint"), NODES)
def test_a_node_offers_its_devices_and_keeps_others_off(
    name: str, device: str, count: int, taint: str
) -> None:
    for each in nodes(name):
        assert each.allocatable[device] == count
        assert 90_000 < each.allocatable["cpu"] < 225_000
        assert each.allocatable["memory"] > 180 * 2**30
        assert each.allocatable["pods"] >= 100
        assert [(found.key, found.effect) for found in each.taints] == (
            [(taint, "NoSchedule")] if taint else []
        )
        assert each.labels["kubernetes.io/hostname"] == each.name


@pytest.mark.parametrize(("name", "device", "count", "taint"), NODES)
@every_version
def test_a_gang_gets_whole_nodes_and_not_one_worker_more(
    name: str, device: str, count: int, taint: str, version: str
) -> None:
    world = nodes(name)
    head, raw, _ = pods(version)
    worker = asking_for(raw, device, count, taint)
    found = verdict(world, head, worker, len(world))
    assert isinstance(found, Admitted)
    placed = {each.pod_set: dict(each.nodes) for each in found.placement.assignments}
    assert placed["workers"] == {each.name: 1 for each in world}
    more = verdict(world, head, worker, len(world) + 1)
    assert not isinstance(more, Admitted)
    assert more.reason is Reason.NEVER_FITS
    asked, there = count * (len(world) + 1), count * len(world)
    assert f"the gang needs {asked} {device} in all; the nodes that could" in more.message
    assert f"have {there} in all when empty" in more.message


@pytest.mark.parametrize(("name", "device", "count", "taint"), NODES)
def test_workers_that_do_not_tolerate_the_nodes_are_refused_for_that(
    name: str, device: str, count: int, taint: str
) -> None:
    head, raw, _ = pods(VERSIONS[-1])
    found = verdict(nodes(name), head, asking_for(raw, device, count, ""), 1)
    if not taint:
        assert isinstance(found, Admitted)
        return
    assert not isinstance(found, Admitted)
    assert "untolerated taint" in found.message


def test_hosts_of_a_slice_are_told_by_its_topology() -> None:
    """A worker of another slice shape finds no node."""
    head, raw, _ = pods(VERSIONS[-1])
    worker = asking_for(raw, TPU, 4, "google.com/tpu")
    worker["spec"]["nodeSelector"] = {"cloud.google.com/gke-tpu-topology": "2x4"}
    assert isinstance(verdict(nodes("gke-tpu-v5e-2x4"), head, worker, 2), Admitted)
    worker["spec"]["nodeSelector"] = {"cloud.google.com/gke-tpu-topology": "4x4"}
    found = verdict(nodes("gke-tpu-v5e-2x4"), head, worker, 2)
    assert not isinstance(found, Admitted)
    assert found.reason is Reason.NO_FEASIBLE_NODE


@every_version
def test_what_each_kuberay_makes_is_a_member_of_the_gang(version: str) -> None:
    head, *workers = (observe(msgspec.convert(each, core_objects.Pod)) for each in pods(version))
    for each, pod_set in ((head, "headgroup"), *((worker, "workers") for worker in workers)):
        assert each.holder == Holder("RayCluster", "team-a", "train")
        assert each.gated
        assert each.member is not None
        assert (each.member.gang, each.member.pod_set) == (GangKey("team-a", "train"), pod_set)
        assert each.member.shape is not None
        assert each.member.shape.unsupported == ()
    assert workers[0].member is not None
    assert workers[1].member is not None
    assert workers[0].member.shape == workers[1].member.shape


@every_version
def test_the_autoscaler_and_the_wait_for_the_head_are_counted_as_they_run(version: str) -> None:
    """The side-car adds to the head; the init container is over before the worker begins."""
    head, worker, _ = (pod_shape(msgspec.convert(each, core_objects.Pod)) for each in pods(version))
    gib = 2**30
    assert dict(head.requests) == {"cpu": 4500, "memory": 16 * gib + gib // 2, "pods": 1}
    assert dict(worker.requests) == {"cpu": 32_000, "memory": 256 * gib, GPU: 8, "pods": 1}
    names = [each["name"] for each in pods(version)[1]["spec"]["initContainers"]]
    assert names == ["wait-gcs-ready"]


def test_only_the_latest_kuberay_says_which_hosts_make_a_replica() -> None:
    named = {}
    for version in VERSIONS:
        workers = (observe(msgspec.convert(each, core_objects.Pod)) for each in pods(version)[1:])
        named[version] = {each.member.replica for each in workers if each.member is not None}
    [of_the_latest] = named.pop("1.6.2")
    assert of_the_latest.startswith("workers-")
    assert named == {"1.4.2": {""}, "1.5.1": {""}}


def test_the_terms_of_the_sample_are_one_replica_of_two_hosts() -> None:
    found = gang_terms(read_cluster(sample("raycluster")), {})
    assert [
        (each.name, each.minimum, each.hosts)
        for each in getattr(found, "pod_sets", ())
        if isinstance(each, PodSetTerms)
    ] == [("headgroup", 1, 1), ("workers", 2, 2)]
