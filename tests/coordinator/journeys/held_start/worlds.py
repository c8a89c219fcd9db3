"""Worlds with held gangs, for the journeys beside it."""

from typing import Any

import msgspec

from kube.objects import names
from tests.coordinator.builders import (
    TEAM,
    Json,
    gang_of,
    group,
    node,
    ray_cluster,
    template,
)
from tests.coordinator.world import World


def phase_of(world: World, name: str = "a") -> str:
    """The phase of the held start as the record has it."""
    said: dict[str, Any] = world.status(name).get("held", {})
    return str(said.get("phase", ""))


def sent(world: World, kind: type) -> int:
    return sum(isinstance(each, kind) for replica in world.replicas for each in replica.log)


def set_suspend(world: World, value: bool, name: str = "a") -> None:
    """Have a person set the field."""
    world.edit(name, suspend=value)


def crowded(*clusters: Json, cpu: int = 4, replicas: int = 1) -> World:
    """A world whose one node is full of gang b, which holds 4 CPUs."""
    world = World(node("n1", cpu=cpu), replicas=replicas)
    world.create(gang_of("b", 3))
    world.settle(seconds=30)
    world.create(*clusters)
    world.settle(seconds=30)
    return world


def stopped_kuberay(world: World) -> None:
    world.kuberay = lambda: None  # type: ignore[method-assign]


def with_injected(world: World, extra: int) -> None:
    """Have a foreign webhook add a container of so many CPUs to every pod of a."""
    made = world._make_pod

    def make_pod(cluster: Json, pod_set: Json, replica: str) -> None:
        side_car = {"name": "proxy", "resources": {"requests": {"cpu": str(extra)}}}
        template = msgspec.to_builtins(pod_set["template"])
        template["spec"]["containers"] = [*template["spec"]["containers"], side_car]
        made(cluster, {**pod_set, "template": template}, replica)

    world._make_pod = make_pod  # type: ignore[method-assign]


def quota(pods: int, used: int = 0) -> Json:
    return {
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": TEAM},
        "spec": {"hard": {"pods": str(pods)}},
        "status": {"hard": {"pods": str(pods)}, "used": {"pods": str(used)}},
    }


LOWER = {"withinQueue": "LowerPriority"}
IN_TEAM = {names.OPT_IN: "true", names.QUEUE: "team"}


def urgent(name: str, workers: int) -> Json:
    """A Ray cluster of priority 10 in the queue team."""
    workers_of_it = group("workers", workers, priority=10)
    return ray_cluster(name, workers_of_it, head=template(priority=10), labels=IN_TEAM)
