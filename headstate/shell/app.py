"""Puts the parts of the program together, from start to stop.

The watch runs in every replica. A replica that is synced, and has its keys, contends for the Lease.
The leader looks after users and Secrets.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from headstate.metrics import Metrics
from headstate.plan import Head, HeadCluster, head_of
from headstate.settings import PREFIX, Settings
from headstate.shell.cluster import Cluster
from headstate.shell.keeper import Keeper
from headstate.shell.keys import NoKeys, make_keys, read_keys
from headstate.shell.servers import Servers
from kube.api.client import Client
from kube.api.credentials import load_access
from kube.api.errors import KubeError
from kube.api.leader_election import Term
from kube.api.leading import REFRESH_TIMEOUT, election, lead_on_fresh_lists, wait_synced
from kube.api.resources import RAY_CLUSTERS
from kube.api.watch.reflector import Reflector
from runtime.http_server import Health, Port, in_background, listening, until

log = structlog.get_logger(__name__)

LEASE_NAME: Final = "muster-redis"
KEYS_EVERY: Final = 5.0
"""Seconds between two looks for the keys: the kubelet mounts them a while after they are made."""
STALLED: Final = 60.0
"""Seconds without the end of a look, after which a leader is not ready."""


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Work until told to stop."""
    kubeconfig = None if settings.kubeconfig is None else str(settings.kubeconfig)
    access = await load_access(kubeconfig, setting=f"{PREFIX}KUBECONFIG")
    client = Client(access, user_agent="muster-redis", timeout=settings.request_timeout)
    async with client:
        await Replica(settings, client).run(stop)


class Replica:
    """One replica of the program."""

    def __init__(self, settings: Settings, client: Client) -> None:
        self._settings = settings
        self._client = client
        self.metrics = Metrics()
        self.watch: Reflector[Head] = Reflector(
            client,
            RAY_CLUSTERS,
            HeadCluster,
            _nobody_listens,
            project=partial(head_of, address=settings.url),
        )
        self._looked: float | None = None

    @property
    def looks(self) -> bool:
        """Whether a leader looked of late; a stand-by does not look."""
        return self._looked is None or time.monotonic() - self._looked < STALLED

    async def run(self, stop: asyncio.Event) -> None:
        """Run until told to stop; the Lease is given back at the end."""
        settings = self._settings
        checks = (("watch", lambda: self.watch.synced), ("looks", lambda: self.looks))
        health = Health(checks, self.metrics.registry)
        port = Port("health", settings.listen_address, settings.listen_port, limits=settings.limits)
        async with contextlib.AsyncExitStack() as stack:
            served = listening(health.application(), port, self.metrics.connections)
            await stack.enter_async_context(served)
            work = (self.watch.run, self._contend)
            tasks = await stack.enter_async_context(in_background(work))
            await until(stop, tasks)
            health.stop()

    async def _contend(self) -> None:
        await wait_synced([self.watch])
        await self._wait_for_keys()
        by = election(self._client, self._settings.namespace, LEASE_NAME, self._settings)
        await by.run(partial(lead_on_fresh_lists, [self.watch], self._lead))

    async def _wait_for_keys(self) -> None:
        """Wait until the keys are mounted; they are made where no replica has made them yet."""
        while True:
            try:
                read_keys(Path(self._settings.key_directory))
            except NoKeys as error:
                log.info("waiting for keys", reason=str(error))
            else:
                return
            with contextlib.suppress(KubeError):
                await make_keys(self._client, self._settings.namespace)
            await asyncio.sleep(KEYS_EVERY)

    async def _lead(self, term: Term) -> None:
        settings = self._settings
        servers = Servers(settings.servers, settings.sentinels, settings.server_timeout)
        cluster = Cluster(
            self._client, settings.namespace, settings.identity, self.metrics, term.valid
        )
        keeper = Keeper(
            settings, servers, cluster, self.watch.store.values, self._refresh, self.metrics
        )
        self.metrics.leader.set(1)
        try:
            await keeper.run(self._note)
        finally:
            self.metrics.leader.set(0)
            self._looked = None
            await servers.close()

    async def _refresh(self) -> None:
        await self.watch.refresh(REFRESH_TIMEOUT)

    def _note(self) -> None:
        self._looked = time.monotonic()


def _nobody_listens(_: object) -> None:
    """Only the store is read."""
