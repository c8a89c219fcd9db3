"""Worlds in which it is unsure whether a gang ends, for the journeys beside it."""

from collections import Counter

from coordinator.messages.actions import (
    WriteGangStatus,
)
from kube.objects import names
from tests.coordinator.builders import Json, gang_of, group, node, ray_cluster
from tests.coordinator.journeys.preemption.worlds import IN_TEAM, LOWER, urgent
from tests.coordinator.journeys.queues.worlds import queue
from tests.coordinator.world import World, key

LEAST = names.MIN_REPLICAS


def in_a_team(victim: Json, replicas: int = 1, cpu: int = 5, **rules: object) -> World:
    """Gang v has all of the room, and p comes, which may stop what it needs of it."""
    world = World(
        node("n1", cpu=cpu), queue("team", preemption={**LOWER, **rules}), replicas=replicas
    )
    world.create(victim)
    world.settle(seconds=10)
    assert world.bound("v").total() == cpu
    world.create(urgent("p", 1, labels=IN_TEAM))
    return world


def whole() -> Json:
    """A gang that ends whole."""
    return gang_of("v", 4, labels=IN_TEAM)


def elastic() -> Json:
    """A gang of which two of three surplus replicas are to end."""
    return ray_cluster("v", group("workers", 4), labels=IN_TEAM, annotations={LEAST: "workers=1"})


def asks(world: World, kind: type) -> bool:
    return any(isinstance(each, kind) for each in world.leader.todo)


def writes_its_end(world: World) -> bool:
    """Whether it is to be written that something of v ends."""
    writes = (each for each in world.leader.todo if isinstance(each, WriteGangStatus))
    return any(each.key == key("v") and each.status.get("evictions") for each in writes)


def in_mind(world: World) -> int:
    """How many endings of v the leader has decided."""
    return len(world.leader.state.known.views[key("v")].eviction.endings)


def slots(world: World) -> Counter[str]:
    """How many slots the placement of v that is written has on which node."""
    found: Counter[str] = Counter()
    for pod_set in world.status("v")["placement"]["podSets"]:
        for assignment in pod_set["assignments"]:
            found.update(assignment["nodes"])
    return found


def suspend(world: World) -> None:
    world.edit("p", suspend=True)
