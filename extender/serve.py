"""In which order does the extender start, and in which does it stop?"""

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import structlog
from aiohttp import web

from extender.app import Extender, Health
from extender.metrics import Metrics
from extender.passing import Passing
from extender.refusals import Refusals
from extender.settings import Settings
from extender.tls import demanding_context
from extender.wake import StorageSignal, Waker
from extender.watches import Watches
from kube.auth import load_access
from kube.client import Client
from kube.tls import HotCertificate
from kube.watch import settle_heap

log = structlog.get_logger(__name__)

Work = Callable[[], Coroutine[Any, Any, None]]


class CertificateNews:
    """Puts what happens to the certificate into the log and the metrics."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def certificate_loaded(self, expires: datetime) -> None:
        """Tell of a new certificate in use."""
        self._metrics.certificate_expires.set(expires.timestamp())
        log.info("certificate loaded", expires=expires.isoformat())

    def certificate_refused(self, reason: str) -> None:
        """Tell of a pair that stays unused."""
        self._metrics.certificate_refusals.inc()
        log.error("certificate refused, the one before stays in use", reason=reason)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What runs, put together."""

    extender: Extender
    health: Health
    tls: HotCertificate
    work: tuple[Work, ...]


async def serve(settings: Settings) -> None:
    """Answer kube-scheduler until told to stop."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    kubeconfig = None if settings.kubeconfig is None else str(settings.kubeconfig)
    async with Client(await load_access(kubeconfig), user_agent="muster-extender") as client:
        await _serve(settings, client, stop)


async def _serve(settings: Settings, client: Client, stop: asyncio.Event) -> None:
    parts = _assemble(settings, client)
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(_health_port(settings, parts.health))
        tasks = await stack.enter_async_context(_in_background(parts.work))
        listening = scheduler_port(settings, parts.extender, parts.tls)
        port = await stack.enter_async_context(listening)
        log.info("serving", address=str(settings.listen_address), port=port)
        await _until(stop, tasks)
        log.info("stopping")


def _assemble(settings: Settings, client: Client) -> _Parts:
    metrics, refusals = Metrics(), Refusals()
    passing = Passing(
        time.monotonic(),
        settle=settings.settle_seconds,
        keep=settings.passed_seconds,
        limit=settings.passed_limit,
    )
    watches = Watches(
        client,
        passing,
        refusals,
        silence=settings.silence_seconds,
    )
    waker = Waker(
        watches.ledger,
        passing,
        refusals,
        StorageSignal(client, settings.wake_namespace),
        metrics,
        pause=settings.wake_pause_seconds,
    )
    watches.on_news = waker.tell
    tls = HotCertificate(
        settings.certificate_file,
        settings.key_file,
        CertificateNews(metrics),
        blank=partial(demanding_context, settings.client_ca_file),
    )
    _watch_gauges(metrics, watches, passing, refusals)
    checks = (("watches", watches.trusted), ("certificate", lambda: tls.usable))
    return _Parts(
        Extender(settings, watches, passing, refusals, metrics),
        Health(checks, metrics),
        tls,
        (
            *(reflector.run for reflector in watches.reflectors),
            partial(tls.watch, settings.certificate_poll_seconds),
            partial(_once_synced, watches, waker),
        ),
    )


def _watch_gauges(metrics: Metrics, watches: Watches, passing: Passing, refusals: Refusals) -> None:
    metrics.watch(
        {
            "synced": ("1 when every watch has its first list", lambda: float(watches.synced)),
            "silence_seconds": ("Since the watch that is silent longest spoke", watches.silent_for),
            "reserved_pods": (
                "Pods whose room is kept for gangs",
                lambda: float(watches.ledger.reservations),
            ),
            "passed_pods": ("Pods passed and not seen bound yet", lambda: float(len(passing))),
            "refused_pods": ("Pods that got no node when last asked", lambda: float(len(refusals))),
        }
    )


async def _once_synced(watches: Watches, waker: Waker) -> None:
    """Spare the calls the full collections of a heap that stays as it is; then wake at need."""
    for reflector in watches.reflectors:
        await reflector.wait_synced()
    settle_heap()
    log.info("synced")
    await waker.run()


async def _until(stop: asyncio.Event, tasks: list[asyncio.Task[None]]) -> None:
    """Wait for the end; a task that ends before is a bug, and comes out here."""
    stopped = asyncio.create_task(stop.wait())
    try:
        done, _ = await asyncio.wait([stopped, *tasks], return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
    for task in done - {stopped}:
        task.result()
        raise AssertionError(f"{task.get_name()} ended")


@contextlib.asynccontextmanager
async def _in_background(work: Iterable[Work]) -> AsyncIterator[list[asyncio.Task[None]]]:
    tasks = [asyncio.create_task(one()) for one in work]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def scheduler_port(
    settings: Settings, extender: Extender, tls: HotCertificate
) -> AsyncIterator[int]:
    """Listen for kube-scheduler; gives the port."""
    runner = web.AppRunner(
        extender.application(),
        access_log=None,
        keepalive_timeout=settings.keepalive_seconds,
        shutdown_timeout=1.0,
        # kube-scheduler does not compress, and a small body must not become a large one.
        auto_decompress=False,
    )
    async with _running(runner):
        assert runner.server is not None
        # Not a TCPSite: that one gives a caller a minute for its handshake.
        server = await asyncio.get_running_loop().create_server(
            runner.server,
            str(settings.listen_address),
            settings.listen_port,
            ssl=tls.context,
            ssl_handshake_timeout=settings.handshake_seconds,
            backlog=128,
        )
        try:
            yield int(server.sockets[0].getsockname()[1])
        finally:
            server.close()


@contextlib.asynccontextmanager
async def _health_port(settings: Settings, health: Health) -> AsyncIterator[None]:
    runner = web.AppRunner(health.application(), access_log=None, shutdown_timeout=1.0)
    async with _running(runner):
        await web.TCPSite(runner, str(settings.health_address), settings.health_port).start()
        yield


@contextlib.asynccontextmanager
async def _running(runner: web.AppRunner) -> AsyncIterator[None]:
    await runner.setup()
    try:
        yield
    finally:
        await runner.cleanup()
