"""Worlds with AppWrappers of which items run, for the journeys beside it."""

from tests.wrapper.world import World, with_wrapper


def running(wrapper: dict[str, object]) -> World:
    world = with_wrapper(wrapper)
    world.place()
    world.settle(2)
    assert world.phase == "Running"
    world.gang("Resumed", placed=True)
    world.pods_become("Running")
    world.settle(2)
    return world


def noticed(world: World) -> dict[str, str]:
    found: list[dict[str, str]] = world.status["conditions"]
    return next((each for each in found if each["type"] == "muster.dev/HasNotices"), {})
