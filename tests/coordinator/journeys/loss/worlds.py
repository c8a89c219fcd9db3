"""Worlds in which gangs lose pods, for the journeys beside it."""

from typing import Any

from coordinator.messages.actions import EmitEvent
from coordinator.messages.clock import Patience
from tests.coordinator.builders import (
    Json,
    node,
)
from tests.coordinator.journeys.queues.worlds import gang_in, queue
from tests.coordinator.world import World, name_of

PATIENCE = Patience()
REQUEUE: dict[str, Any] = {"whenBroken": "Requeue"}


def begun(*nodes: Json, **rules: Any) -> World:
    """A gang of a head and three workers of 1 CPU, in a queue of such rules."""
    world = World(*(nodes or (node("n1", cpu=2), node("n2", cpu=2))), queue("team", **rules))
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=60)
    assert world.bound("a").total() == 4
    return world


def said(world: World, name: str = "a") -> tuple[str, str]:
    status = world.status(name)
    return status["phase"], status["reason"]


def events(world: World, reason: str) -> list[EmitEvent]:
    return [each for each in world.leader.emitted if each.reason == reason]


def without_a_node(world: World) -> str:
    """Take a node away that has workers alone, and return its name."""
    (head,) = (pod for pod in world.pods("a") if "headgroup" in name_of(pod))
    gone = ({"n1", "n2"} - {head["spec"]["nodeName"]}).pop()
    world.delete("nodes", gone)
    return gone


HEADS = {"pool": "heads"}
OTHER = {"name": "example.com/quota"}


def without_other_gate(pod: Json) -> None:
    gates = pod["spec"].get("schedulingGates", [])
    pod["spec"]["schedulingGates"] = [each for each in gates if each != OTHER]
