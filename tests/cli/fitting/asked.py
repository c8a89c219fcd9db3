"""Worlds and questions for the tests of `muster fit`."""

from tests.coordinator.builders import (
    TEAM,
    Json,
    foreign_pod,
    node,
)
from tests.coordinator.world import World


def queue(name: str, *, quota: Json | None = None, **spec: object) -> Json:
    selects = {"matchLabels": {"kubernetes.io/metadata.name": TEAM}}
    return {
        "kind": "GangQueue",
        "metadata": {"name": name},
        "spec": {"namespaceSelector": {}, **({"quota": quota} if quota else {}), **spec},
        "selects": selects,
    }


# ---- rights


TENANT = ("nodes", "pods", "gangs", "rayclusters", "namespaces", "priorityclasses", "appwrappers")


def gpu_queue(**spec: object) -> Json:
    return queue("q", quota={"cpu": 900}, **spec)


def room() -> World:
    """14 GPUs are free in the queue's model: 8 and 5 on two nodes, and 1; 8 more are of others."""
    red, blue = {"model": "red"}, {"model": "blue"}
    world = World(
        node("a", cpu=96, gpu=8, labels=red),
        node("b", cpu=96, gpu=8, labels=red),
        node("c", cpu=96, gpu=1, labels=red),
        node("d", cpu=96, gpu=8, labels=blue),
        foreign_pod("other", "b", gpu=3, cpu=12),
        gpu_queue(nodeSelector=red, nodeSelectorScope="All"),
    )
    world.settle(seconds=10)
    return world
