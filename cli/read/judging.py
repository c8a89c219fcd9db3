"""Takes a picture of the cluster, and judges Ray objects on it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from cli.fitting.admitted import with_admitted
from cli.fitting.asked import Asked, exists, namespaces_of, queues_of
from cli.fitting.simulation import Simulation
from cli.fitting.stand_ins import stand_ins
from cli.read.coordinator_settings import read_settings
from cli.read.creating import Creating, Rights, read_creating
from cli.read.dry_run import Said
from cli.read.picture import Picture, read_devices, read_picture, read_volumes
from cli.read.reader import Reader
from cli.report.fit import (
    FitOfObject,
    FitReport,
    Fits,
    Verdict,
    not_created,
    unlabelled_namespace,
)
from coordinator.deployed import state_of
from runtime.controller.moment import Moment
from scheduling.model.verdict import Reason

Ask = Callable[[Reader, Asked], Awaitable[Said]]
"""Has the API server say what it would make of an object."""


async def judge(reader: Reader, asked: Sequence[Asked], ask: Ask) -> FitReport:
    """Return the answers for objects that are created together; raises CannotRead."""
    settings, unset = await read_settings(reader)
    takes = None if unset else settings.app_wrappers
    state, now, rights = state_of(settings), moment(), Rights(reader)
    picture, creating, said = await asyncio.gather(
        read_picture(reader, state.known.profiles, namespaces_of(asked), queues_of(asked)),
        asyncio.gather(
            *(read_creating(reader, rights, each, takes_app_wrappers=takes) for each in asked)
        ),
        asyncio.gather(*(ask(reader, each) for each in asked)),
    )
    asked = [with_admitted(each, found.pods) for each, found in zip(asked, said, strict=True)]
    creating = [_with_said(*each) for each in zip(creating, said, strict=True)]
    creating = [_in_its_namespace(*each, picture) for each in zip(asked, creating, strict=True)]
    state.handle([*picture.events, *stand_ins(asked, picture.missing)], now)
    if state.known.cache.is_mounting or any(each.mounts_claims for each in asked):
        volumes = await read_volumes(reader)
        state.handle(volumes.events, now)
        picture = picture.beside(volumes)
    given, gangs = state.known.cache.given_by_classes, state.known.cache.devices.gangs
    if gangs or any(each.claims_devices or each.asks_for(given) for each in asked):
        devices = await read_devices(reader)
        state.handle(devices.events, now)
        picture = picture.beside(devices)
    simulation = Simulation(state, now, roomless=picture.roomless)
    unread = (unset, *picture.unread, *(each.unread for each in creating), *reader.faults)
    answers = tuple(_answers(simulation, asked, creating, picture.unlabelled))
    return FitReport(answers, tuple(each for each in dict.fromkeys(unread) if each))


def _in_its_namespace(asked: Asked, creating: Creating, picture: Picture) -> Creating:
    """Have nothing created in a namespace that is not there."""
    if asked.namespace not in picture.absent:
        return creating
    return replace(creating, refusal=f"namespace {asked.namespace} does not exist")


def _with_said(creating: Creating, said: Said) -> Creating:
    refusal = creating.refusal or said.refusal
    return replace(creating, refusal=refusal, over_quota=said.over_quota, said=said.notes)


def _answers(
    simulation: Simulation,
    asked: Sequence[Asked],
    creating: Sequence[Creating],
    unlabelled: Collection[str],
) -> Iterator[FitOfObject]:
    """Yield the answers; what no user can create takes no room from the others."""
    placed = [simulation.placed(each) for each in asked]
    creating = [_of_what_waits(*each) for each in zip(placed, creating, strict=True)]
    could = [each for each, about in zip(placed, creating, strict=True) if not about.refusal]
    verdicts = iter(simulation.verdicts(could))
    for each, about in zip(placed, creating, strict=True):
        verdict = not_created(about.refusal) if about.refusal else next(verdicts)
        if about.over_quota and verdict.fits is not Fits.NO:
            verdict = not_created(f"not now, for want of quota: {about.over_quota}")
        if each.namespace in unlabelled and verdict.reason == Reason.MISCONFIGURED:
            verdict = unlabelled_namespace(each.namespace, verdict.message)
        notes = tuple(dict.fromkeys((*each.notes, *about.notes)))
        yield _answer(simulation, replace(each, notes=notes), verdict)


def _of_what_waits(asked: Asked, creating: Creating) -> Creating:
    """Drop what holds for another one alone: the pods of one that waits hold their quota."""
    if not asked.waits:
        return creating
    said = tuple(each for each in creating.said if each != exists(asked))
    return replace(creating, over_quota="", said=said)


def _answer(simulation: Simulation, asked: Asked, verdict: Verdict) -> FitOfObject:
    return FitOfObject(
        asked.kind,
        asked.namespace,
        asked.name,
        verdict.fits,
        verdict.reason,
        verdict.message,
        verdict.queue,
        verdict.position,
        verdict.placement,
        simulation.most(asked) if verdict.count_matters else (),
        (*asked.notes, *simulation.who_has_quota(verdict)),
    )


def moment() -> Moment:
    """Return the moment that it is now."""
    wall = time.time()
    stamp = datetime.fromtimestamp(int(wall), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Moment(time.monotonic(), stamp, wall)
