"""Each way to share GPUs that docs/gpus.md names: what is counted of it, and what is said."""

from typing import Any

import pytest

from tests.coordinator.builders import GPU, Json, node, ray_cluster, template
from tests.coordinator.world import World

MIG = "nvidia.com/mig-1g.10gb"
SHARED = "nvidia.com/gpu.shared"


def offering(name: str, **resources: int) -> Json:
    found = node(name, cpu=64)
    found["status"]["allocatable"].update({k: str(v) for k, v in resources.items()})
    return found


def asking(workers: int, resources: dict[str, int], **spec: Any) -> Json:
    """A head without devices, and workers that request some."""
    pod = template(cpu=1, **spec)
    requests = pod["spec"]["containers"][0]["resources"]["requests"]
    requests.update({name: str(amount) for name, amount in resources.items()})
    return ray_cluster(
        "a", {"groupName": "workers", "replicas": workers, "numOfHosts": 1, "template": pod}
    )


@pytest.mark.parametrize(
    ("offered", "asked", "workers"),
    [
        ({GPU: 4}, {GPU: 2}, 2),
        ({MIG: 7}, {MIG: 1}, 7),
        ({MIG: 3, GPU: 1}, {MIG: 1}, 3),
        ({GPU: 80}, {GPU: 1}, 80),
        ({SHARED: 20}, {SHARED: 1}, 20),
    ],
)
def test_what_a_device_plugin_offers_is_counted_by_its_name(
    offered: dict[str, int], asked: dict[str, int], workers: int
) -> None:
    """A profile of MIG is no other one, a replica is as good as a whole GPU."""
    for more in (0, 1):
        nodes = [offering("n1", **offered), node("n2", cpu=128)]
        for each in nodes:
            each["status"]["allocatable"]["cpu"] = "128"
        world = World(*nodes)
        world.create(asking(workers + more, asked))
        world.settle(seconds=60)
        bound = world.bound("a")
        assert sum(bound.values()) == (0 if more else workers + 1)
        assert more or bound["n1"] >= workers


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"schedulerName": "hami-scheduler"}, "schedulerName hami-scheduler"),
        ({"schedulerName": "kai-scheduler"}, "schedulerName kai-scheduler"),
    ],
)
def test_what_is_not_counted_is_unsupported_by_name(spec: Json, said: str) -> None:
    world = World(offering("n1", **{GPU: 8}))
    world.create(asking(1, {}, **spec))
    world.settle(seconds=60)
    status = world.status("a")
    assert status["reason"] == "Unsupported"
    assert said in status["message"]
    assert world.bound("a") == {}


def test_memory_of_a_gpu_is_a_resource_that_no_node_offers() -> None:
    world = World(offering("n1", **{GPU: 8}))
    world.create(asking(1, {GPU: 1, "nvidia.com/gpumem": 3000}))
    world.settle(seconds=60)
    assert world.status("a")["reason"] == "NeverFits"
    assert "nvidia.com/gpumem" in world.status("a")["message"]


def test_a_fraction_in_an_annotation_gives_no_gpu() -> None:
    """The Event about it is tested with the others of unknown keys."""
    world = World(offering("n1", **{GPU: 1}))
    gang = asking(3, {})
    gang["spec"]["workerGroupSpecs"][0]["template"]["metadata"] = {
        "annotations": {"gpu-fraction": "0.9"}
    }
    world.create(gang)
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 4}
    assert [each.reason for each in world.leader.emitted] == ["UnknownKey"]
