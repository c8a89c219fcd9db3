"""Takes pictures of worlds in memory, at the time of the world."""

import asyncio
from math import inf
from typing import Any

from cli.read.picture import read_devices, read_picture
from coordinator.state.known import Known
from coordinator.state_machine import CoordinatorState
from forecast.asking import Pictured
from kube.codec.profiles.scheduler_profiles import STOCK
from kube.objects import names
from runtime.controller.moment import Moment
from tests.cli.fitting.reader import reader_of
from tests.coordinator.api import stamp_at
from tests.coordinator.builders import TEAM, Json, gang_of, group, ray_cluster
from tests.coordinator.replica import WALL
from tests.coordinator.world import World

HOUR = 3600.0


def pictured(world: World, *, seconds: float = inf, starts: float = inf) -> Pictured:
    """What is read of a world now; CPU time does not pass."""
    reader: Any = reader_of(world)
    events = asyncio.run(read_picture(reader, STOCK, [TEAM], set())).events
    if any(world.api.all("deviceclasses")):
        events = (*events, *asyncio.run(read_devices(reader)).events)
    now = world.api.now
    moment = Moment(now, stamp_at(now), WALL + now)
    return Pictured(events, moment, lambda: CoordinatorState(Known()), lambda: 0.0, seconds, starts)


def moment_of(world: World) -> Moment:
    """The moment that it is in a world."""
    now = world.api.now
    return Moment(now, stamp_at(now), WALL + now)


def gpu_gang(name: str, workers: int, hours: float) -> Json:
    """A gang with workers of 8 GPUs, which says how long it runs, unless that is 0."""
    said = {names.EXPECTED_DURATION: f"{int(hours * HOUR)}s"} if hours else {}
    return ray_cluster(name, group("workers", workers, cpu=8, gpu=8), annotations=said)


def lasting(name: str, workers: int, hours: float, **more: Any) -> Json:
    """A gang of a head and some workers of 1 CPU, which says how long it runs, unless that is 0."""
    said = {names.EXPECTED_DURATION: f"{int(hours * HOUR)}s"} if hours else {}
    return gang_of(name, workers, annotations={**said, **more.pop("annotations", {})}, **more)


def world_of(*objects: Json, gangs: list[Json]) -> World:
    """A world in which these gangs came one after another, a minute apart."""
    world = World(*objects)
    for each in gangs:
        world.create(each)
        world.settle(seconds=60)
    return world
