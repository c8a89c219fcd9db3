"""Worlds with GangQueues, for the journeys beside it."""

from typing import Any, cast

from coordinator.messages.actions import (
    Action,
    WriteQueueFinalizers,
    WriteQueueStatus,
)
from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.builders import OPTED_IN, TEAM, Json, gang_of
from tests.coordinator.world import World

QUEUE_WRITES = (WriteQueueStatus, WriteQueueFinalizers)


def queue(name: str, cpu: int | None = None, **spec: object) -> Json:
    """A GangQueue that is open to every namespace."""
    rules = {"namespaceSelector": {}, **spec}
    if cpu is not None:
        rules["quota"] = {"cpu": str(cpu)}
    return {"kind": "GangQueue", "metadata": {"name": name}, "spec": rules}


def gang_in(queue_name: str, name: str, workers: int, **more: Any) -> Json:
    """A Ray cluster of 1 CPU for the head and for each worker, in a queue."""
    return gang_of(name, workers, labels={**OPTED_IN, names.QUEUE: queue_name}, **more)


def found(world: World, name: str) -> Json:
    return world.api.get(Key("gangqueues", "", name))


def status_of(world: World, name: str) -> Json:
    return cast(Json, found(world, name)["status"])


def active(world: World, name: str) -> tuple[str, str, str]:
    (condition,) = status_of(world, name)["conditions"]
    assert condition["type"] == "Active"
    return condition["status"], condition["reason"], condition.get("message", "")


def change(world: World, name: str, **spec: object) -> None:
    world.api.change(found(world, name), lambda obj: obj["spec"].update(spec))


def reserved(world: World, name: str) -> tuple[str, str]:
    """The condition QuotaReserved of a gang: its status and reason."""
    conditions = {each["type"]: each for each in world.status(name)["conditions"]}
    return conditions["QuotaReserved"]["status"], conditions["QuotaReserved"]["reason"]


def phases(world: World, *gangs: str) -> list[str]:
    return [world.status(each)["phase"] for each in gangs]


def queue_writes(actions: list[Action], name: str = "") -> list[WriteQueueStatus]:
    writes = [each for each in actions if isinstance(each, WriteQueueStatus)]
    return [each for each in writes if name in ("", each.name)]


def name_queue(world: World, gang: str, queue_name: str) -> None:
    cluster = world.api.get(Key("rayclusters", TEAM, gang))
    labels = {names.QUEUE: queue_name}
    world.api.change(cluster, lambda obj: obj["metadata"]["labels"].update(labels))


def conditions(world: World, name: str) -> dict[str, tuple[str, str]]:
    found = status_of(world, name)["conditions"]
    return {each["type"]: (each["status"], each["reason"]) for each in found}
