"""AppWrappers: their objects are created once the whole has its place, and none exists before."""

from typing import Any

from kube.objects import names
from tests.coordinator.app_wrappers import (
    app_wrapper,
    bare_pod,
    become,
    config_map,
    had_objects,
    job,
    nodes_of,
    phase,
    pods_of,
    succeed,
    wrapper_of,
)
from tests.coordinator.api import Key
from tests.coordinator.builders import TEAM, Json, foreign_pod, gang_of, node, ray_cluster, group
from tests.coordinator.world import World


def gang_status(world: World, name: str = "a") -> dict[str, Any]:
    return world.status(f"appwrapper.{name}")


def held_phase(world: World, name: str = "a") -> str:
    said: dict[str, Any] = gang_status(world, name).get("held", {})
    return str(said.get("phase", ""))


def crowded(*wrappers: Json, cpu: int = 4, replicas: int = 1) -> World:
    """A world whose one node is full of gang b."""
    world = World(node("n1", cpu=cpu), replicas=replicas)
    world.create(gang_of("b", cpu - 1))
    world.settle(seconds=30)
    world.create(*wrappers)
    world.settle(seconds=30)
    return world


def test_nothing_exists_before_the_whole_fits_and_all_of_it_runs_then() -> None:
    world = crowded(app_wrapper("a", config_map("settings"), job("work", 3)))
    assert not had_objects(world.api, "a")
    status = gang_status(world)
    assert (status["phase"], status["reason"]) == ("Queued", "InsufficientResources")
    assert held_phase(world) == "Waiting"
    owner = world.gang("appwrapper.a")["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"]) == ("AppWrapper", "a")

    world.delete("rayclusters", "b")
    world.settle(seconds=30)
    assert nodes_of(world.api, "a") == ["n1"] * 3
    assert phase(world.api, "a") == "Running"
    assert gang_status(world)["phase"] == "Running"
    assert held_phase(world) == "Resumed"
