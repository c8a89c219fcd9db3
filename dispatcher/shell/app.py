"""Puts the parts of the dispatcher together, from start to stop.

Watches of the manager feed the loop from the start, in every replica. The one that leads connects
to the members, whose watches feed the same loop, and carries out what the state machine asks for.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import structlog

from dispatcher.messages import HERE, Action, Event, TermEnded, TermStarted, TimePassed
from dispatcher.metrics import Metrics
from dispatcher.reading import RayObject, original_of, queue_of, turn_of
from dispatcher.settings import PREFIX, Settings
from dispatcher.shell.feeding import sink
from dispatcher.shell.fleet import Fleet
from dispatcher.shell.member import manager_uid
from dispatcher.shell.writing import ManagerWriter, target_of_action
from dispatcher.state_machine import DispatcherState
from kube.api.client import Client
from kube.api.credentials import load_access
from kube.api.errors import KubeError
from kube.api.leader_election import Term
from kube.api.leading import election, lead_on_fresh_lists, wait_synced
from kube.api.resources import (
    GANG_QUEUES,
    GANGS,
    MEMBER_CLUSTERS,
    Resource,
)
from kube.api.watch.pace import Selection
from kube.api.watch.reflector import Reflector
from kube.gang.sent import MCAD_APP_WRAPPER, RESOURCES, WRAPPER_RESOURCES
from kube.objects import names
from kube.objects.clusters.member_cluster import MemberCluster
from kube.objects.gang import Gang
from kube.objects.queues.queue import GangQueue
from runtime.controller.loop import Loop
from runtime.http_server import Health, Port, in_background, listening, until

log = structlog.get_logger(__name__)

REST = 0.02
"""Seconds between two looks: changes come in bursts."""

TALLY_EVERY = 5.0
"""Seconds between two counts for the metrics."""

STALLED = 30.0
"""Seconds without a step of the loop; it takes one each second when idle."""


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Work until told to stop."""
    kubeconfig = None if settings.kubeconfig is None else str(settings.kubeconfig)
    access = await load_access(kubeconfig, setting=f"{PREFIX}KUBECONFIG")
    client = Client(access, user_agent="muster-dispatcher", timeout=settings.request_timeout)
    async with client:
        await Replica(settings, client).run(stop)


def _called(kind: str) -> str:
    """Name the watch of a kind."""
    return f"{'mcad' * (kind == MCAD_APP_WRAPPER)}{RESOURCES[kind].plural}"


class Replica:
    """One replica of the program."""

    def __init__(self, settings: Settings, client: Client) -> None:
        self._settings = settings
        self._client = client
        self.metrics = Metrics()
        self.state = DispatcherState()
        self.loop = Loop[Event, Action](self.state, REST, TimePassed())
        self._members: Reflector[MemberCluster] = self._watched(
            MEMBER_CLUSTERS, MemberCluster, lambda found: found
        )
        self.watches: dict[str, Reflector[Any]] = {
            "memberclusters": self._members,
            "gangqueues": self._watched(
                GANG_QUEUES, GangQueue, partial(queue_of, lost_after=settings.lost_after)
            ),
            **{
                _called(kind): self._watched(each, RayObject, partial(original_of, kind=kind))
                for kind, each in RESOURCES.items()
            },
            "gangs": self._watched(GANGS, Gang, turn_of),
        }

    def _watched(
        self, resource: Resource, kind: type[Any], project: Callable[[Any], Any]
    ) -> Reflector[Any]:
        fed = sink(self.loop.feed, HERE)
        selection = Selection(may_be_absent=resource in WRAPPER_RESOURCES.values())
        return Reflector(self._client, resource, kind, fed, project=project, selection=selection)

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
            known = self.state.known
            self.metrics.tell(known, time.monotonic())
            self.metrics.tell_watches(self.watches)
            await asyncio.sleep(TALLY_EVERY)

    async def _contend(self) -> None:
        await wait_synced(self.watches.values())
        sent = (len(self.watches[_called(kind)].store) for kind in RESOURCES)
        log.info("synced", objects=sum(sent))
        settings, lease = self._settings, names.DISPATCHER_LEASE
        by = election(self._client, settings.namespace, lease, settings, self._newest_term)
        await by.run(self._lead)

    def _newest_term(self) -> int:
        """Return the newest term on any record: a Lease that was deleted begins no earlier."""
        return self.state.newest_term

    async def _lead(self, term: Term) -> None:
        await lead_on_fresh_lists(self.watches.values(), self._act, term)

    async def _act(self, term: Term) -> None:
        """Carry out what the state machine asks for, until cancelled."""
        settings, feed = self._settings, self.loop.feed
        try:
            manager = await manager_uid(self._client)
        except KubeError as error:
            log.warning("term given up: the manager's own uid is not known", error=str(error))
            return
        here = ManagerWriter(
            self._client, term, feed, settings.concurrency, self.metrics, settings.identity
        )
        clusters = self._members.store.values
        fleet = Fleet(settings, self._client, term, manager, feed, self.metrics, clusters)

        def submit(actions: Iterable[Action]) -> None:
            actions = list(actions)
            here.submit(each for each in actions if target_of_action(each) == HERE)
            fleet.submit(each for each in actions if target_of_action(each) != HERE)

        self.loop.appoint(TermStarted(term.epoch, manager), submit)
        self.metrics.leader.set(1)
        try:
            await asyncio.gather(here.run(), fleet.run(self.state.known.members))
        finally:
            self.metrics.leader.set(0)
            self.loop.dismiss(TermEnded())
            await here.close()
