"""Puts the parts of the forecaster together, from start to stop.

Rounds follow one another: each reads a picture of the cluster, runs it forward, and writes the
estimates that moved. Nothing waits for the forecaster, and it knows nothing from one round to the
next.
"""

import asyncio
import contextlib
import gc
import time
from functools import partial

import structlog

from forecast.asking import Pictured, ends_of_range, report_of
from forecast.lengths import EXPECTED
from forecaster.metrics import Metrics
from forecaster.pacing import Pace
from forecaster.reading import Picture, read_gangs, read_picture
from forecaster.settings import PREFIX, Settings
from forecaster.telling import Telling, Write, bases, gangs_by_key, may_wait, nothing_waits
from kube.api.client import Client
from kube.api.credentials import load_access
from kube.api.errors import Conflict, Invalid, KubeError, NotFound
from kube.api.resources import GANGS
from kube.objects.gang import Gang
from runtime.controller.loop import moment
from runtime.http_server import Health, Port, in_background, listening, until

log = structlog.get_logger(__name__)

LOST = (
    "the definition of Gang is of another release, and keeps no expectedStart: "
    "kubectl apply -k manifests/crds"
)


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Work until told to stop."""
    kubeconfig = None if settings.kubeconfig is None else str(settings.kubeconfig)
    access = await load_access(kubeconfig, setting=f"{PREFIX}KUBECONFIG")
    client = Client(access, user_agent="muster-forecaster", timeout=settings.request_timeout)
    async with client:
        await Forecaster(settings, client).run(stop)


class Forecaster:
    """The program."""

    def __init__(self, settings: Settings, client: Client) -> None:
        self._settings, self._client = settings, client
        self._pace = Pace(settings.cpu_share, settings.rest_seconds, settings.round_cpu_seconds)
        self._faults: tuple[str, ...] = ()
        self._has_told = False
        self._without_range = 0
        self.metrics = Metrics()

    async def run(self, stop: asyncio.Event) -> None:
        """Run until told to stop."""
        settings = self._settings
        health = Health((("forecast", lambda: self._has_told),), self.metrics.registry)
        port = Port("health", settings.listen_address, settings.listen_port, limits=settings.limits)
        async with contextlib.AsyncExitStack() as stack:
            served = listening(health.application(), port, self.metrics.connections)
            await stack.enter_async_context(served)
            tasks = await stack.enter_async_context(in_background((self._rounds,)))
            await until(stop, tasks)
            health.stop()

    async def _rounds(self) -> None:
        while True:
            began = time.process_time()
            try:
                await self._round(began)
                self._has_told, outcome = True, "done"
            except KubeError as error:
                outcome = "failed"
                log.warning("nothing told", reason=str(error))
            used = time.process_time() - began
            self.metrics.rounds.labels(outcome).inc()
            self.metrics.round_cpu.set(used)
            await asyncio.sleep(self._pace.pause(used))

    async def _round(self, began: float) -> None:
        telling = await self._telling(began)
        for each in telling.started():
            self.metrics.count_start(each)
        self.metrics.count_gangs(bases(telling))
        for write in telling.writes():
            if not await self._write(write):
                break

    async def _telling(self, began: float) -> Telling:
        """Read and run forward; while no gang waits its Gang says nothing but what has ended."""
        now = moment(time.monotonic())
        gangs = await read_gangs(self._client)
        if not any(map(may_wait, gangs)):
            return nothing_waits(gangs, now.wall)
        picture = await read_picture(self._client, self._settings.namespace, now)
        self._tell_faults(picture.faults)
        # In a thread: health is asked meanwhile.
        return await asyncio.to_thread(partial(self._foresee, picture, began))

    def _foresee(self, picture: Picture, began: float) -> Telling:
        """Run forward; meanwhile the collector would walk all of the cluster again and again."""
        gc.disable()
        try:
            return self._forecast(picture, began)
        finally:
            gc.enable()

    def _forecast(self, picture: Picture, began: float) -> Telling:
        settings, spent = self._settings, time.process_time
        before = spent()
        seconds = self._pace.left(before - began)
        pictured = Pictured(picture.events, picture.moment, picture.build, spent, seconds, again=1)
        begun = pictured.begun()
        at = spent()
        course = begun.with_lengths(EXPECTED, begun.budget).go_on()
        ranged = self._pace.takes_range(spent() - began, spent() - at, self._without_range)
        self._without_range = 0 if ranged else self._without_range + 1
        others = ends_of_range(pictured, begun, course) if ranged else ()
        return Telling(
            gangs_by_key(picture.gangs),
            report_of(pictured, course, others, before),
            course,
            settings.moved_seconds,
            settings.refresh_seconds,
        )

    async def _write(self, write: Write) -> bool:
        """Write one estimate, and say whether Gangs keep such; a changed one has its turn later."""
        path = GANGS.path(write.key.namespace, write.key.name, "status")
        try:
            found = await self._client.json_patch(path, write.operations, as_=Gang)
        except (NotFound, Invalid, Conflict):
            self.metrics.writes.labels("gone").inc()
            return True
        except KubeError:
            self.metrics.writes.labels("failed").inc()
            raise
        self.metrics.writes.labels("done").inc()
        kept = write.estimate is None or found.status.expected_start is not None
        if not kept:
            self._tell_faults((*self._faults, LOST))
        return kept

    def _tell_faults(self, faults: tuple[str, ...]) -> None:
        """Log what is wrong once, not in each round."""
        for each in faults:
            if each not in self._faults:
                log.warning("not all is known", reason=each)
        self._faults = faults
