"""Puts the parts of the wrapper together, from start to stop.

Watches feed the loop from the start, in every replica. A replica that is synced contends for the
Lease; while it leads, an executor carries out what the state machine asks for.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import structlog

from kube.api.client import Client, Resource
from kube.api.credentials import load_access
from kube.api.errors import Timeout
from kube.api.leader_election import Election, Term, Timing
from kube.api.reflector import Reflector, Selection
from kube.api.resources import APP_WRAPPERS, GANGS, MCAD_APP_WRAPPERS, PODS
from kube.api.watch_events import Changed, Deleted, Sink, Watched, WatchEvent
from kube.objects import names
from kube.objects.app_wrapper import AppWrapper
from runtime.http_server import Health, Port, in_background, listening, until
from runtime.slicing import settle_heap
from wrapper.messages import (
    Event,
    GangGone,
    GangSeen,
    GangSignal,
    PodGone,
    PodSeen,
    WrappedPod,
    Wrapper,
    WrapperGone,
    WrapperSeen,
)
from wrapper.metrics import Metrics
from wrapper.reading import CountedPod, Reading, WrappedGang, pod_of, signal_of
from wrapper.settings import PREFIX, Settings
from wrapper.shell.executor import Executor
from wrapper.shell.loop import Loop
from wrapper.state_machine import WrapperState

log = structlog.get_logger()

T = TypeVar("T", bound=Watched)

LEASE_NAME = "muster-wrapper"
REFRESH_TIMEOUT = 30.0
"""Seconds for the lists at the start of a term."""

TALLY_EVERY = 5.0
"""Seconds between two counts of AppWrappers for the metrics."""

STALLED = 30.0
"""Seconds without a step of the loop; it takes one each second when idle."""

APIS = {f"{each.group}/{each.version}": each for each in (APP_WRAPPERS, MCAD_APP_WRAPPERS)}


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Work until told to stop."""
    kubeconfig = None if settings.kubeconfig is None else str(settings.kubeconfig)
    access = await load_access(kubeconfig, setting=f"{PREFIX}KUBECONFIG")
    client = Client(access, user_agent="muster-wrapper", timeout=settings.request_timeout)
    async with client:
        await Replica(settings, client).run(stop)


class Replica:
    """One replica of the program."""

    def __init__(self, settings: Settings, client: Client) -> None:
        self._settings = settings
        self._client = client
        self.metrics = Metrics()
        self.loop = Loop(WrapperState())
        self._apis = {APIS[api].group: APIS[api] for api in settings.apis}
        self._gangs = self._watched(
            GANGS, WrappedGang, _gang_event, project=signal_of, selection=Selection()
        )
        self.watches: dict[str, Reflector[Any]] = {
            **{each.group: self._wrappers(each) for each in self._apis.values()},
            "gangs": self._gangs,
            "pods": self._watched(
                PODS,
                CountedPod,
                _pod_event,
                project=pod_of,
                selection=Selection(label_selector=names.APP_WRAPPER),
            ),
        }

    def _wrappers(self, resource: Resource) -> Reflector[Wrapper]:
        api_version = f"{resource.group}/{resource.version}"
        return self._watched(
            resource,
            AppWrapper,
            _wrapper_event,
            project=Reading(api_version),
            selection=Selection(may_be_absent=True),
        )

    def _watched(
        self,
        resource: Resource,
        kind: type[Any],
        event: Callable[[WatchEvent[Any]], Event | None],
        *,
        project: Callable[[Any], Any],
        selection: Selection,
    ) -> Reflector[Any]:
        sink = _sink(self.loop, event)
        return Reflector(self._client, resource, kind, sink, project=project, selection=selection)

    @property
    def synced(self) -> bool:
        """Whether every watch has its first list."""
        return all(each.synced for each in self.watches.values())

    @property
    def turns(self) -> bool:
        """Whether the loop has taken a step of late."""
        return time.monotonic() - self.loop.last_step < STALLED

    async def run(self, stop: asyncio.Event) -> None:
        """Run until told to stop; the Lease is given back at the end."""
        settings = self._settings
        checks = (("watches", lambda: self.synced), ("loop", lambda: self.turns))
        health = Health(checks, self.metrics.registry)
        port = Port("health", settings.listen_address, settings.listen_port, limits=settings.limits)
        work = (
            self.loop.run,
            *(each.run for each in self.watches.values()),
            self._contend,
            self._tally,
        )
        async with contextlib.AsyncExitStack() as stack:
            served = listening(health.application(), port, self.metrics.connections)
            await stack.enter_async_context(served)
            tasks = await stack.enter_async_context(in_background(work))
            await until(stop, tasks)
            health.stop()

    async def _tally(self) -> None:
        while True:
            views = self.loop.state.views.values()
            self.metrics.count_phases(view.wrapper.status.phase for view in views)
            self.metrics.tell_watches(self.watches, time.monotonic())
            await asyncio.sleep(TALLY_EVERY)

    async def _contend(self) -> None:
        for reflector in self.watches.values():
            await reflector.wait_synced()
        settle_heap()
        log.info("synced", app_wrappers=len(self.loop.state.views))
        settings = self._settings
        timing = Timing(settings.lease_duration, settings.renew_deadline, settings.retry_period)
        election = Election(
            self._client, settings.namespace, LEASE_NAME, settings.identity, timing=timing
        )
        await election.run(self._lead)

    async def _lead(self, term: Term) -> None:
        """Lead: first see all that an earlier leader may have written, then act."""
        try:
            fresh = partial(Reflector.refresh, timeout=REFRESH_TIMEOUT)
            await asyncio.gather(*(fresh(each) for each in self.watches.values()))
        except Timeout as error:
            log.warning("term given up: cannot see what was written before", error=str(error))
            return
        await self._act(term)

    async def _act(self, term: Term) -> None:
        """Carry out what the state machine asks for, until cancelled."""
        settings = self._settings
        executor = Executor(
            self._client,
            term,
            self.loop.feed,
            apis=self._apis,
            identity=settings.identity,
            concurrency=settings.concurrency,
            metrics=self.metrics,
        )
        self.loop.appoint(executor.submit)
        self.metrics.leader.set(1)
        try:
            await executor.run()
        finally:
            self.metrics.leader.set(0)
            self.loop.dismiss()
            await executor.close()


def _sink(loop: Loop, event: Callable[[WatchEvent[T]], Event | None]) -> Sink[T]:
    def sink(batch: list[WatchEvent[T]]) -> None:
        loop.feed([found for told in batch if (found := event(told)) is not None])

    return sink


def _wrapper_event(told: WatchEvent[Wrapper]) -> Event | None:
    match told:
        case Changed(obj=wrapper):
            return WrapperSeen(wrapper)
        case Deleted(obj=wrapper):
            return WrapperGone(wrapper.key, wrapper.metadata.uid)
        case _:
            return None


def _gang_event(told: WatchEvent[GangSignal]) -> Event | None:
    match told:
        case Changed(obj=signal):
            return GangSeen(signal)
        case Deleted(obj=signal):
            return GangGone(signal)
        case _:
            return None


def _pod_event(told: WatchEvent[WrappedPod]) -> Event | None:
    match told:
        case Changed(obj=pod):
            return PodSeen(pod)
        case Deleted(obj=pod):
            return PodGone(pod)
        case _:
            return None
