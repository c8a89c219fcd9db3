"""Takes the picture that forecasts are run on, with the rights of the caller."""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

from cli.endings import NotAllowed
from cli.forecast.asking import Pictured
from cli.read.coordinator_settings import read_settings
from cli.read.judging import moment, state_of
from cli.read.picture import read_picture, read_volumes
from cli.read.reader import Reader

CPU_SECONDS = 10.0
"""That one forecast of a command may take."""

NO_FORECAST = "a forecast needs all nodes, pods, Gangs, Ray clusters and GangQueues"


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A picture that can be run forward, and what it lacks."""

    pictured: Pictured
    unread: tuple[str, ...]


async def read_pictured(
    reader: Reader, namespaces: Sequence[str] = (), queues: Collection[str] = ()
) -> Foreseen:
    """Read the picture; raises CannotRead where the room of the cluster may not be read."""
    settings, unset = await read_settings(reader)
    build, now = partial(state_of, settings), moment()
    trial = build()
    picture = await read_picture(reader, trial.known.profiles, namespaces, queues)
    if picture.roomless:
        missing = ", ".join(sorted(picture.missing)) or "all GangQueues"
        raise NotAllowed(f"{NO_FORECAST}; the caller may not list: {missing}")
    trial.handle(picture.events, now)
    if trial.known.cache.is_mounting:
        picture = picture.beside(await read_volumes(reader))
    unread = tuple(dict.fromkeys(each for each in (unset, *picture.unread, *reader.faults) if each))
    pictured = Pictured(picture.events, now, build, time.process_time, CPU_SECONDS)
    return Foreseen(pictured, unread)
