"""Gangs in queues that name the nodes to be used, such as one queue for each model of GPU."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.builders import GPU, OPTED_IN, TEAM, Json, group, node, ray_cluster
from tests.coordinator.journeys.queues.worlds import change, found, phases, queue, status_of
from tests.coordinator.world import World

PAGE = Path(__file__).parents[4] / "docs" / "queues.md"
A100 = {"gpu": "a100"}


def two_models() -> Iterator[Json]:
    """The queues that the page on queues shows."""
    text = re.search(r"<!-- two models -->\n```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert text is not None
    yield from yaml.safe_load_all(text[1])


def gpu_node(name: str, model: str, *, cpu: int = 16) -> Json:
    return node(name, cpu=cpu, gpu=8, labels={"gpu": model})


def gpu_gang(name: str, queue_name: str, workers: int) -> Json:
    labels = {**OPTED_IN, names.QUEUE: queue_name}
    return ray_cluster(name, group("workers", workers, gpu=8), labels=labels)


@pytest.fixture
def world() -> World:
    """Nodes with GPUs have CPU for one worker, and none for a head beside it.

    By name alone a gang would take `h-1` first.
    """
    models = {"h-1": "h100", "x-1": "a100", "x-2": "a100"}
    nodes = [gpu_node(name, model, cpu=1) for name, model in models.items()]
    return World(node("c-1", cpu=16), *nodes, *two_models())


def workers_on(world: World, gang: str) -> set[str]:
    return {pod["spec"]["nodeName"] for pod in world.pods(gang) if is_worker(pod)}


def is_worker(pod: Json) -> bool:
    return bool(pod["metadata"]["labels"][names.RAY_NODE_TYPE] == "worker")


def test_the_queue_of_one_model_never_uses_nodes_of_another(world: World) -> None:
    world.create(gpu_gang("a", "a100", 2), gpu_gang("h", "h100", 1))
    world.settle(seconds=10)
    assert phases(world, "a", "h") == ["Running", "Running"]
    assert workers_on(world, "a") == {"x-1", "x-2"}
    assert workers_on(world, "h") == {"h-1"}
    assert world.bound("a")["c-1"] == world.bound("h")["c-1"] == 1
    assert status_of(world, "gpus")["summary"] == "nvidia.com/gpu 24/24"


def test_a_gang_waits_for_its_model_though_the_other_is_free(world: World) -> None:
    world.create(gpu_gang("h", "h100", 1))
    world.settle(seconds=10)
    world.create(gpu_gang("h2", "h100", 1), gpu_gang("big", "a100", 3))
    world.settle(seconds=10)
    assert phases(world, "h2", "big") == ["Queued", "Queued"]
    assert world.status("h2")["reason"] == "QuotaExceeded"
    assert world.status("big")["reason"] == "NeverFits"  # of three nodes there are two

    change(world, "h100", quota={GPU: 16})
    world.settle(seconds=10)
    assert phases(world, "h2") == ["Queued"]
    assert (
        "3 do not match nodeSelector gpu=h100 of the gang's queue" in world.status("h2")["message"]
    )
    assert world.status("h2")["reason"] == "InsufficientResources"

    world.delete("rayclusters", "h")
    world.settle(seconds=10)
    assert workers_on(world, "h2") == {"h-1"}


def test_a_changed_selector_moves_no_gang_that_runs_and_holds_for_those_that_wait() -> None:
    rules: Json = {"quota": {GPU: 32}, "nodeSelector": A100}
    world = World(gpu_node("a-1", "a100"), gpu_node("h-1", "h100"), queue("gpus", **rules))
    world.create(gpu_gang("a", "gpus", 1))
    world.settle(seconds=10)
    world.create(gpu_gang("b", "gpus", 1))
    world.settle(seconds=10)
    assert (phases(world, "a", "b"), workers_on(world, "a")) == (["Running", "Queued"], {"a-1"})

    change(world, "gpus", nodeSelector={"gpu": "h100"})
    world.settle(seconds=10)
    assert phases(world, "a", "b") == ["Running", "Running"]
    assert (workers_on(world, "a"), workers_on(world, "b")) == ({"a-1"}, {"h-1"})


def test_a_lost_worker_comes_back_to_its_slot_after_the_selector_changed() -> None:
    rules: Json = {"quota": {GPU: 32}, "nodeSelector": A100}
    world = World(gpu_node("a-1", "a100"), gpu_node("h-1", "h100"), queue("gpus", **rules))
    world.create(gpu_gang("a", "gpus", 1))
    world.settle(seconds=10)
    change(world, "gpus", nodeSelector={"gpu": "h100"})
    world.settle(seconds=10)
    (lost,) = [pod for pod in world.pods("a") if is_worker(pod)]
    world.api.delete(Key("pods", TEAM, lost["metadata"]["name"]))
    world.settle(seconds=10)
    assert workers_on(world, "a") == {"a-1"}


def test_a_scope_of_all_holds_heads_as_well() -> None:
    rules: Json = {"quota": {GPU: 32}, "nodeSelector": A100, "nodeSelectorScope": "All"}
    world = World(node("c-1", cpu=64), gpu_node("a-1", "a100"), queue("gpus", **rules))
    world.create(gpu_gang("a", "gpus", 1))
    world.settle(seconds=10)
    assert world.bound("a") == {"a-1": 2}


def test_all_replicas_of_the_coordinator_hold_gangs_to_the_nodes(world: World) -> None:
    """The rule is read from the queue, not kept in the record of a gang."""
    world.create(gpu_gang("a", "a100", 1))
    world.settle(seconds=10)
    world.leader.resign()
    world.elect(0)
    world.scale("a", 2)
    world.settle(seconds=20)
    assert workers_on(world, "a") == {"x-1", "x-2"}
    assert found(world, "a100")["spec"]["nodeSelector"] == A100
