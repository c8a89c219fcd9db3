"""Puts the parts of the wrapper together, from start to stop.

Watches feed the loop from the start, in every replica. A replica that is synced contends for the
Lease; while it leads, an executor carries out what the state machine asks for.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any, Final

import structlog

from kube.api.client import Client
from kube.api.credentials import load_access
from kube.api.leader_election import Term
from kube.api.leading import election, lead_on_fresh_lists, wait_synced
from kube.api.resources import APP_WRAPPERS, GANGS, MCAD_APP_WRAPPERS, PODS, Resource
from kube.api.watch.events import Translate, feeding, translated
from kube.api.watch.pace import Selection
from kube.api.watch.reflector import Reflector
from kube.objects import names
from kube.objects.app_wrapper import AppWrapper
from runtime.controller.loop import Loop
from runtime.http_server import Health, Port, in_background, listening, until
from wrapper.messages import (
    Action,
    Event,
    GangGone,
    GangSeen,
    GangSignal,
    PodGone,
    PodSeen,
    TermEnded,
    TermStarted,
    TimePassed,
    WrappedPod,
    Wrapper,
    WrapperGone,
    WrapperSeen,
)
from wrapper.metrics import Metrics
from wrapper.reading import CountedPod, Reading, WrappedGang, pod_of, signal_of
from wrapper.settings import PREFIX, Settings
from wrapper.shell.executor import Executor
from wrapper.state_machine import WrapperState

log = structlog.get_logger()

LEASE_NAME = "muster-wrapper"
REST = 0.02
"""Seconds between two looks: changes come in bursts."""

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
        self.state = WrapperState()
        self.loop = Loop[Event, Action](self.state, REST, TimePassed())
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
        event: Translate[Any, Event],
        *,
        project: Callable[[Any], Any],
        selection: Selection,
    ) -> Reflector[Any]:
        sink = feeding(self.loop.feed, event)
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
            views = self.state.views.values()
            self.metrics.count_phases(view.wrapper.status.phase for view in views)
            self.metrics.tell_watches(self.watches, time.monotonic())
            await asyncio.sleep(TALLY_EVERY)

    async def _contend(self) -> None:
        await wait_synced(self.watches.values())
        log.info("synced", app_wrappers=len(self.state.views))
        settings = self._settings
        by = election(self._client, settings.namespace, LEASE_NAME, settings)
        await by.run(self._lead)

    async def _lead(self, term: Term) -> None:
        await lead_on_fresh_lists(self.watches.values(), self._act, term)

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
        self.loop.appoint(TermStarted(), executor.submit)
        self.metrics.leader.set(1)
        try:
            await executor.run()
        finally:
            self.metrics.leader.set(0)
            self.loop.dismiss(TermEnded())
            await executor.close()


_wrapper_event: Final[Translate[Wrapper, Event]] = translated(
    WrapperSeen, lambda wrapper: WrapperGone(wrapper.key, wrapper.metadata.uid)
)
_gang_event: Final[Translate[GangSignal, Event]] = translated(GangSeen, GangGone)
_pod_event: Final[Translate[WrappedPod, Event]] = translated(PodSeen, PodGone)
