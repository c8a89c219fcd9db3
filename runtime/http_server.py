"""Starts and stops the servers of a program, and says whether it is ready.

Tasks beside the server start before it and end after it. The end of any of them is noticed: a task
that stops while the server is to go on is a bug, and ends the program.
"""

import asyncio
import contextlib
import logging
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.aiohttp import make_aiohttp_handler

from runtime.connections import ConnectionMetrics, Connections, Limits, accepting

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
    """Where to listen (0 is any port), under which name in the metrics, and with which limits."""

    name: str
    address: str
    number: int
    tls: ssl.SSLContext | None = None
    limits: Limits = field(default_factory=Limits)
    backlog: int = 512
    """How many connections the kernel keeps that are not accepted yet."""
    drain: float = 1.0
    """Seconds that calls under way have at the end."""


class _WithoutCallersFaults(logging.Filter):
    """Leaves out that a caller sent what is no HTTP.

    It got a 4xx. In the log it would be an error with a trace, in the caller's words, as often as
    the caller likes.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not (isinstance(error, HttpProcessingError) and error.code < _OURS)


_OURS: Final = 500
_REQUESTS: Final = logging.getLogger(f"{__name__}.requests")
_REQUESTS.addFilter(_WithoutCallersFaults())


@contextlib.asynccontextmanager
async def listening(
    application: web.Application, at: Port, metrics: ConnectionMetrics
) -> AsyncIterator[int]:
    """Serve; gives the port."""
    connections = Connections(at.limits, metrics.of(at.name))
    application.middlewares.append(connections.middleware)
    # No caller compresses, and a small body must not become a large one.
    runner = web.AppRunner(
        application,
        access_log=None,
        shutdown_timeout=at.drain,
        auto_decompress=False,
        logger=_REQUESTS,
    )
    await runner.setup()
    assert runner.server is not None
    try:
        with _bound(at) as listener:
            async with accepting(listener, connections, runner.server, at.tls):
                yield int(listener.getsockname()[1])
    finally:
        await runner.cleanup()
        connections.abort()


def _bound(at: Port) -> socket.socket:
    family = socket.AF_INET6 if ":" in at.address else socket.AF_INET
    listener = socket.create_server((at.address, at.number), family=family, backlog=at.backlog)
    listener.setblocking(False)  # noqa: FBT003  (the signature is the standard library's)
    return listener


# ---- what comes in


class BadBody(Exception):  # noqa: N818 - an answer, not a fault of ours
    """A body is not taken; the status and the text of the answer."""

    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


async def read_body(request: web.Request, limit: int, seconds: float) -> bytearray:
    """Read a body of at most so many bytes in at most so long, or raise BadBody."""
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            await _gather(request, body, limit)
    except BaseException as error:
        # The request keeps what was raised in it, and with that this very frame, in a cycle that
        # the collector may meet late. `request.read` would leave the body in there, too.
        body.clear()
        if isinstance(error, TimeoutError):
            raise BadBody(408, f"the body did not come within {seconds:g} s") from None
        if isinstance(error, web.RequestPayloadError | ConnectionError):
            raise BadBody(400, "the body broke off") from None
        raise
    return body


async def _gather(request: web.Request, body: bytearray, limit: int) -> None:
    too_large = BadBody(413, f"the body is larger than {limit} bytes")
    if (request.content_length or 0) > limit:
        raise too_large
    while chunk := await request.content.readany():
        body += chunk
        if len(body) > limit:
            raise too_large


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
        """Say that the event loop runs."""
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
