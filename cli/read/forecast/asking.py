"""Takes the picture that forecasts are run on, with the rights of the caller."""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

from msgspec.structs import replace

from cli.endings import NotAllowed
from cli.fitting.asked import Asked, namespaces_of, queues_of
from cli.read.coordinator_settings import read_settings
from cli.read.judging import moment
from cli.read.picture import read_devices, read_picture, read_volumes
from cli.read.reader import Reader
from cli.report.queues import OneQueueReport
from cli.report.why import WhyReport
from coordinator.deployed import state_of
from forecast.asking import Pictured, forecast
from forecast.expected import ForecastReport
from forecast.picture import wants_devices
from scheduling.model.gang import GangKey

CPU_SECONDS = 10.0
"""That one forecast of a command may take."""

NO_FORECAST = "a forecast needs all nodes, pods, Gangs, Ray clusters and GangQueues"


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A picture that can be run forward, and what it lacks."""

    pictured: Pictured
    unread: tuple[str, ...]


async def read_pictured(
    reader: Reader, asked: Sequence[Asked] = (), queues: Collection[str] = ()
) -> Foreseen:
    """Read the picture, also for what is to be submitted; raises CannotRead where it may not be."""
    settings, unset = await read_settings(reader)
    build, now = partial(state_of, settings), moment()
    trial = build()
    picture = await read_picture(
        reader, trial.known.profiles, namespaces_of(asked), {*queues, *queues_of(asked)}
    )
    if picture.roomless:
        missing = ", ".join(sorted(picture.missing)) or "all GangQueues"
        raise NotAllowed(f"{NO_FORECAST}; the caller may not list: {missing}")
    trial.handle(picture.events, now)
    if trial.known.cache.is_mounting or any(each.mounts_claims for each in asked):
        picture = picture.beside(await read_volumes(reader))
    if wants_devices(trial.known.cache) or any(each.claims_devices for each in asked):
        picture = picture.beside(await read_devices(reader))
    unread = tuple(dict.fromkeys(each for each in (unset, *picture.unread, *reader.faults) if each))
    pictured = Pictured(picture.events, now, build, time.thread_time, CPU_SECONDS)
    return Foreseen(pictured, unread)


async def with_start(reader: Reader, report: WhyReport) -> WhyReport:
    """Return a report on a gang with when that gang is expected to start."""
    key = GangKey(report.namespace, report.name)
    return replace(report, forecast=await _forecast(reader, report.queue, until=key))


async def with_starts(reader: Reader, report: OneQueueReport) -> OneQueueReport:
    """Return a report on a queue with when its waiting gangs are expected to start."""
    return replace(report, forecast=await _forecast(reader, report.queue.name))


async def _forecast(reader: Reader, queue: str, until: GangKey | None = None) -> ForecastReport:
    """Return the estimates of one queue."""
    found = await read_pictured(reader, queues={queue})
    report = forecast(found.pictured, until)
    mine = tuple(each for each in report.gangs if each.queue == queue)
    return replace(report, gangs=mine, unread=found.unread)
