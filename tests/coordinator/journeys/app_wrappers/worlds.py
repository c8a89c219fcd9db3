"""Worlds with AppWrappers, for the journeys beside it."""

from typing import Any

from kube.objects import names
from tests.coordinator.app_wrappers import (
    nodes_of,
    phase,
    wrapper_of,
)
from tests.coordinator.builders import (
    Json,
    node,
)
from tests.coordinator.journeys.queues.worlds import queue
from tests.coordinator.stopping import go_until
from tests.coordinator.world import World

HIGH = {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}
LOWER = {"withinQueue": "LowerPriority"}
IN_QUEUE = {names.QUEUE: "team"}


def gang_status(world: World, name: str = "a") -> dict[str, Any]:
    return world.status(f"appwrapper.{name}")


def held_phase(world: World, name: str = "a") -> str:
    said: dict[str, Any] = gang_status(world, name).get("held", {})
    return str(said.get("phase", ""))


def running(*wrappers: Json, cpu: int = 4, replicas: int = 1) -> World:
    """A world in which one AppWrapper has all of the room."""
    world = World(node("n1", cpu=cpu), queue("team", preemption=LOWER), HIGH, replicas=replicas)
    world.create(*wrappers)
    world.settle(seconds=30)
    assert nodes_of(world.api, "a") == ["n1"] * cpu
    return world


def labelled(wrapper: Json, **labels: str) -> Json:
    wrapper["metadata"]["labels"] |= labels
    return wrapper


def in_queue(wrapper: Json) -> Json:
    return labelled(wrapper, **IN_QUEUE)


def suspend(world: World, value: bool, name: str = "a") -> None:
    """Have a person set spec.suspend."""
    wrapper = wrapper_of(world.api, name)
    world.api.change(wrapper, lambda obj: obj["spec"].update(suspend=value))


# ---- in every phase


def until(world: World, name: str) -> None:
    """Have everybody go on, action by action, until the AppWrapper is in a phase."""

    def there() -> bool:
        (world.controllers if name == "Suspended" else world.wrap)()
        return phase(world.api, "a") == name

    go_until(world, there)
