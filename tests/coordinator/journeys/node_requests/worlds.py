"""Worlds in which gangs ask for nodes, for the journeys beside it."""

from typing import Any

from kube.objects import names
from tests.coordinator.builders import OPTED_IN, Json, group, node, ray_cluster
from tests.coordinator.journeys.queues.worlds import queue
from tests.coordinator.world import World

CLASS = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
IN_QUEUE = {**OPTED_IN, names.QUEUE: "elastic"}


def elastic(**more: Any) -> Json:
    asking = {"className": CLASS, "parameters": {"ValidUntilSeconds": "600"}}
    return queue("elastic", provisioning=asking, **more)


def waiting(workers: int = 2, **more: Any) -> World:
    """A gang of workers with a GPU each, where the only one has no CPU beside it."""
    nodes = node("n", cpu=8), node("full", cpu=0, gpu=1)
    return World(*nodes, elastic(**more), gpu_gang("a", workers))


def gpu_gang(name: str, workers: int) -> Json:
    return ray_cluster(name, group("workers", workers, gpu=1), labels=IN_QUEUE)


def requests(world: World) -> list[Json]:
    return list(world.api.all("provisioningrequests"))


def say(world: World, kind: str, status: str = "True", message: str = "so it is") -> None:
    """Have the autoscaler say something of the one request."""
    [request] = requests(world)
    new = {
        "type": kind,
        "status": status,
        "reason": "Because",
        "message": message,
        "lastTransitionTime": world.api._stamp(),
    }

    def change(obj: Json) -> None:
        status = obj.setdefault("status", {})
        old = [each for each in status.get("conditions", ()) if each["type"] != kind]
        status["conditions"] = [*old, new]

    world.api.change(request, change, "status")


def message(world: World, name: str = "a") -> str:
    said = world.status(name)["message"]
    assert isinstance(said, str)
    return said


def asking(name: str, **more: Any) -> Json:
    return {**elastic(**more), "metadata": {"name": name}}
