"""How does a server of ours start and stop, listen, and say whether it should be called?

What runs beside the server is started first and ended last, and nothing that ends is passed over:
a task that stops while the server is to go on is a bug, and ends the program.
"""

import asyncio
import contextlib
import signal
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.aiohttp import make_aiohttp_handler

log = structlog.get_logger(__name__)

Work = Callable[[], Coroutine[Any, Any, None]]


# ---- when it ends


def stop_signals() -> asyncio.Event:
    """What SIGTERM and SIGINT set, from now on, in the loop that runs."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


@contextlib.asynccontextmanager
async def in_background(work: Iterable[Work]) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Do all of this until the end; gives the tasks."""
    tasks = [asyncio.create_task(one()) for one in work]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until(stop: asyncio.Event, tasks: Iterable[asyncio.Task[None]]) -> None:
    """Wait for the end; a task that ends before is a bug, and comes out here."""
    stopped = asyncio.create_task(stop.wait())
    try:
        done, _ = await asyncio.wait([stopped, *tasks], return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
    for task in done - {stopped}:
        task.result()
        raise AssertionError(f"{task.get_name()} ended")


# ---- where it listens


@dataclass(frozen=True, slots=True)
class Port:
    """Where to listen (0 is any port), how many may queue, and how long anything may take, in s."""

    address: str
    number: int
    tls: ssl.SSLContext | None = None
    backlog: int = 128
    handshake: float = 10.0
    keepalive: float = 75.0
    drain: float = 1.0


@contextlib.asynccontextmanager
async def listening(application: web.Application, at: Port) -> AsyncIterator[int]:
    """Serve; gives the port. At the end calls under way have `drain` seconds."""
    runner = web.AppRunner(
        application,
        access_log=None,
        keepalive_timeout=at.keepalive,
        shutdown_timeout=at.drain,
        # Nobody who calls us compresses, and a small body must not become a large one.
        auto_decompress=False,
    )
    await runner.setup()
    try:
        server = await _server(runner, at)
        try:
            yield int(server.sockets[0].getsockname()[1])
        finally:
            server.close()
    finally:
        await runner.cleanup()


async def _server(runner: web.AppRunner, at: Port) -> asyncio.Server:
    """Not a TCPSite: that one gives a caller a minute for its handshake."""
    assert runner.server is not None
    return await asyncio.get_running_loop().create_server(
        runner.server,
        at.address,
        at.number,
        ssl=at.tls,
        ssl_handshake_timeout=at.handshake if at.tls else None,
        backlog=at.backlog,
    )


# ---- what it says of itself


class Health:
    """Says whether this process lives, and whether it should be called."""

    def __init__(
        self, checks: Sequence[tuple[str, Callable[[], bool]]], registry: CollectorRegistry
    ) -> None:
        self._checks = checks
        self._registry = registry
        self._stopping = False

    def stop(self) -> None:
        """Say from now on that no further calls should come."""
        self._stopping = True

    def application(self) -> web.Application:
        """Return what listens for the kubelet and for Prometheus."""
        application = web.Application()
        application.router.add_get("/livez", self.livez)
        application.router.add_get("/readyz", self.readyz)
        application.router.add_get("/metrics", make_aiohttp_handler(self._registry))
        return application

    async def livez(self, _: web.Request) -> web.Response:
        """Say that the event loop turns."""
        return web.Response(text="ok\n")

    async def readyz(self, _: web.Request) -> web.Response:
        """Say whether all is there, or else what is missing."""
        missing = [name for name, holds in self._checks if not holds()]
        missing += ["stopping"] if self._stopping else []
        if missing:
            return web.Response(status=503, text=f"not ready: {', '.join(missing)}\n")
        return web.Response(text="ok\n")


class CertificateNews:
    """Puts what happens to the certificate into the log and the metrics."""

    def __init__(self, expires: Gauge, refusals: Counter) -> None:
        self._expires = expires
        self._refusals = refusals

    def certificate_loaded(self, expires: datetime) -> None:
        """Tell of a new certificate in use."""
        self._expires.set(expires.timestamp())
        log.info("certificate loaded", expires=expires.isoformat())

    def certificate_refused(self, reason: str) -> None:
        """Tell of a pair that stays unused."""
        self._refusals.inc()
        log.error("certificate refused, the one before stays in use", reason=reason)
