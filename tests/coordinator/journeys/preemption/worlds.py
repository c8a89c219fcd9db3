"""Worlds with victims and those that they end for, for the journeys beside it."""

from typing import Any

from coordinator.messages.actions import (
    EvictPod,
)
from kube.api.errors import TooManyRequests
from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.builders import (
    OPTED_IN,
    Json,
    gang_of,
    group,
    node,
    ray_cluster,
    template,
)
from tests.coordinator.stopping import (
    act_until,
    choose_whole,
    names_of,
)
from tests.coordinator.world import World

PDB = TooManyRequests(
    429,
    "TooManyRequests",
    "Cannot evict pod as it would violate the budget",
    causes=("DisruptionBudget",),
)
IN_TEAM = {**OPTED_IN, names.QUEUE: "team"}
LOWER = {"withinQueue": "LowerPriority"}


def urgent(name: str, workers: int, **more: Any) -> Json:
    """A Ray cluster of priority 10."""
    workers_of_it = group("workers", workers, priority=10)
    return ray_cluster(name, workers_of_it, head=template(priority=10), **more)


def two_gangs(cpu: int = 4, workers: int = 3, replicas: int = 1, **more: Any) -> World:
    """Gang v has all of the room, and p waits."""
    world = World(node("n1", cpu=cpu), replicas=replicas)
    world.create(gang_of("v", workers, **more))
    world.settle(seconds=10)
    world.create(urgent("p", cpu - 1))
    world.settle(seconds=10)
    return world


def elastic(replicas: int, least: int, hosts: int = 1) -> Json:
    """A Ray cluster of whose workers so many replicas are its minimum."""
    minimum = {names.MIN_REPLICAS: f"workers={least}"}
    return ray_cluster("v", group("workers", replicas, hosts=hosts), annotations=minimum)


def head_of(world: World, name: str) -> str:
    pods = names_of(world.pods(name))
    return next(pod for pod in pods if "headgroup" in pod)


def workers_of(world: World, name: str) -> list[str]:
    return [pod for pod in names_of(world.pods(name)) if "workers" in pod]


def evicted(world: World) -> list[str]:
    return [each.name for each in world.leader.log if isinstance(each, EvictPod)]


def refused_halfway(world: World) -> str:
    """Stop gang v; after the dry runs a budget comes to protect one worker."""
    leader = world.leader
    choose_whole(world, "p", "v")
    act_until(world, lambda: any(isinstance(each, EvictPod) for each in leader.todo))
    protected = workers_of(world, "v")[1]
    world.api.budgets[protected] = PDB
    return protected


def stay(world: World, prefix: str) -> None:
    """Have pods that are deleted stay, as on a node that does not answer."""
    remove = world.api.remove

    def remove_others(key: Key) -> None:
        if key.plural != "pods" or not key.name.startswith(prefix):
            remove(key)

    world.api.remove = remove_others  # type: ignore[method-assign]
