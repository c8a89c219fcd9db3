"""A manager in a world in memory: RayClusters that others run, and what the dispatcher writes."""

from typing import Any

from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.builders import Json
from tests.coordinator.journeys.queues.worlds import gang_in, queue
from tests.coordinator.world import World


def far(cpu: int | None = None, **spec: Any) -> Json:
    """A queue that sends its gangs to other clusters."""
    return queue("far", cpu, clusters={}, **{"whenBlocked": "Strict", **spec})


def sent(name: str, workers: int = 1) -> Json:
    """A RayCluster that another cluster is to run."""
    made = gang_in("far", name, workers)
    made["spec"]["managedBy"] = names.MANAGED_ELSEWHERE
    return made


def manager(*objects: Json, cpu: int = 4, replicas: int = 1, **spec: Any) -> World:
    """A cluster without nodes, with a queue that has clusters."""
    world = World(far(cpu, **spec), replicas=replicas)
    world.create(*objects)
    world.settle(seconds=5)
    return world


def dispatch(world: World, name: str, seconds: float = 5, **fields: object) -> None:
    """Write what the dispatcher writes: fields of the record, or the next attempt."""

    def change(gang: Json) -> None:
        before = gang["status"].get("dispatch", {"attempt": 1, "term": 1, "phase": "Asked"})
        gang["status"]["dispatch"] = before | fields

    world.api.change(world.gang(name), change, "status")
    world.settle(seconds=seconds)


def runs(world: World, name: str, cluster: str = "east", attempt: int = 1) -> None:
    """Have a gang run on a cluster."""
    dispatch(world, name, attempt=attempt, phase="Asked", cluster="")
    dispatch(world, name, phase="Offered", cluster=cluster)
    dispatch(world, name, phase="Started")


def closed(world: World, name: str, message: str = "") -> None:
    """Have the attempt of a gang closed."""
    dispatch(world, name, phase="Closed", message=message)


def said(world: World, name: str) -> tuple[str, str]:
    """The phase and the reason of a gang."""
    status = world.status(name)
    return status["phase"], status["reason"]


def used(world: World) -> Json:
    """What the gangs of the queue use."""
    found: Json = world.api.get(Key("gangqueues", "", "far"))["status"].get("usage", {})
    return found


def suspend(world: World, name: str, *, suspended: bool = True) -> None:
    """Suspend a RayCluster, or resume it."""
    world.edit(name, suspend=suspended)
    world.settle(seconds=5)
