"""Worlds in which something fails, for the journeys beside it."""

from tests.coordinator.builders import gang_of, node
from tests.coordinator.deeds import decided
from tests.coordinator.world import World


def about_to_start() -> World:
    """A gang of three pods that fits, before its first release is sent."""
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 2))
    decided(world)
    return world
