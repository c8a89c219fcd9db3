"""What KubeRay adds to a template is foreseen, to the last milli and label."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kube.codec.observed_pod import observe
from kube.foreseen.admission import Admission
from kube.foreseen.gang import Foreseen, foreseen_gang, observed_pods
from kube.objects import names
from kube.objects.core import Pod
from kube.objects.ray import RayCluster
from kube.ray.ray_cluster import essential
from tests.kube.foreseen.clusters import (
    container,
    foreseen,
    group,
    pod_set,
    read,
    shape,
    template,
    worker,
)

SAMPLES = Path(__file__).parents[1] / "samples"
NUMBERED = (
    names.RAY_REPLICA_NAME,
    "ray.io/worker-group-replica-index",
    "ray.io/replica-host-index",
)
MIB = 2**20


@pytest.mark.parametrize("version", ["1.4.2", "1.5.1", "1.6.2"])
def test_recorded_pods_of_each_version_are_foreseen(version: str) -> None:
    """Head with autoscaler and two workers of one replica, as each KubeRay made them."""
    raw = json.loads((SAMPLES / "raycluster.json").read_bytes())
    raw["spec"]["suspend"] = True
    found = foreseen_gang(essential(read(raw, RayCluster)), Admission())
    assert isinstance(found, Foreseen)
    recorded = json.loads((SAMPLES / f"pods-kuberay-{version}.json").read_bytes())
    pods = [observe(msgspec.convert(each, Pod)) for each in recorded]
    for mine, real in zip(observed_pods(found), pods, strict=True):
        assert mine.member is not None
        assert real.member is not None
        assert mine.member.shape == real.member.shape
        assert (mine.used, mine.holder, mine.mounts) == (real.used, real.holder, real.mounts)
        assert plain(mine.kind[1]) == plain(real.kind[1])
        assert mine.member.pod_set == real.member.pod_set


def plain(labels: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return {key: value for key, value in labels if key not in NUMBERED}


@pytest.mark.parametrize(
    ("options", "cpu", "memory"),
    [
        (None, 1500, 1536 * MIB),
        ({}, 1500, 1536 * MIB),
        ({"resources": None}, 1500, 1536 * MIB),
        ({"resources": {}}, 1000, 1024 * MIB),
        ({"resources": {"limits": {"cpu": "2"}}}, 3000, 1024 * MIB),
        ({"resources": {"requests": {"cpu": "10m"}, "limits": {"cpu": 1}}}, 1010, 1024 * MIB),
    ],
)
def test_the_autoscaler_runs_beside_the_head(options: Any, cpu: int, memory: int) -> None:
    found = foreseen(enableInTreeAutoscaling=True, autoscalerOptions=options)
    assert shape("headgroup", found).amounts == {"cpu": cpu, "memory": memory, "pods": 1}


def test_without_autoscaling_its_options_mean_nothing() -> None:
    found = foreseen(autoscalerOptions={"resources": {"requests": {"cpu": "9"}}})
    assert shape("headgroup", found).amounts["cpu"] == 1000


@pytest.mark.parametrize(("cpu", "expected"), [("100m", 200), ("200m", 200), ("201m", 201)])
def test_workers_wait_for_the_head_in_an_init_container(cpu: str, expected: int) -> None:
    small = container({"requests": {"cpu": cpu, "memory": "1Gi"}})
    assert worker(template(small)).amounts["cpu"] == expected


def test_the_init_container_of_workers_starts_after_their_side_cars() -> None:
    """A native side-car keeps its room while the worker waits."""
    side = container({"requests": {"cpu": "1"}}, "side", restartPolicy="Always")
    small = container({"requests": {"cpu": "50m"}})
    assert worker(template(small, initContainers=[side])).amounts["cpu"] == 1200


def test_a_port_for_metrics_is_one_of_the_host_with_host_network() -> None:
    """Two such workers do not fit on one node."""
    assert worker(template()).ports == ()
    (port,) = worker(template(hostNetwork=True)).ports
    assert "8080" in port[0]
    named = container(ports=[{"name": "metrics", "containerPort": 9}])
    (port,) = worker(template(named, hostNetwork=True)).ports
    assert "9" in port[0]
    assert "8080" not in port[0]


def test_labels_of_a_group_come_before_those_of_its_template() -> None:
    """No template overrides the labels by which KubeRay finds its pods."""
    fixed = {"ray.io/cluster": "x", "ray.io/group": "x", "ray.io/node-type": "x"}
    made = template(labels={"a": "template", "b": "template", **fixed})
    found = foreseen(group(made_of=made, labels={"b": "group", "ray.io/is-ray-node": "no"}))
    assert pod_set("workers", found).pod.metadata.labels == {
        "a": "template",
        "b": "group",
        "ray.io/is-ray-node": "no",
        "ray.io/cluster": "rc",
        "ray.io/group": "workers",
        "ray.io/node-type": "worker",
        "ray.io/identifier": "rc-worker",
        "app.kubernetes.io/name": "kuberay",
        "app.kubernetes.io/created-by": "kuberay-operator",
    }


@pytest.mark.parametrize(
    ("name", "expected"),
    [("n" * 60, "n" * 58 + "-head"), ("a" * 5 + "-" + "n" * 57, f"r{'n' * 57}-head")],
)
def test_a_long_name_is_cut_at_its_front(name: str, expected: str) -> None:
    meta = {"name": name, "namespace": "ns", "uid": "u"}
    labels = pod_set("headgroup", foreseen(meta=meta)).pod.metadata.labels
    assert labels["ray.io/identifier"] == expected


def test_pods_of_a_ray_service_say_whether_they_serve() -> None:
    owner = {"apiVersion": "ray.io/v1", "kind": "RayService", "name": "s", "controller": True}
    found = foreseen(group(), meta={"ownerReferences": [owner]})
    said = {each.name: each.pod.metadata.labels["ray.io/serve"] for each in found.pod_sets}
    assert said == {"headgroup": "false", "workers": "true"}
