"""Limits how many connections a server has, and how long each may take.

A port has a limit of connections. Each connection has a deadline for its next part: the handshake,
the headers, the body, the next request. When a new connection finds the port full, the server
closes another one: among those without a complete request, the one that has made no progress for
longest. A connection whose request is being answered is never closed. So callers that send nothing,
or incomplete requests, keep no other caller out, and their memory is bounded. Connections that are
not accepted yet wait in the kernel.
"""

import asyncio
import contextlib
import socket
import ssl
from asyncio.sslproto import SSLProtocol
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from enum import StrEnum

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler
from prometheus_client import CollectorRegistry, Counter, Gauge

log = structlog.get_logger(__name__)

TLS_BUFFER = 32 * 1024
"""Bytes that a TLS connection reads at once: two records. asyncio sets 256 KiB aside for each."""

ACCEPT_PAUSE = 1.0
"""Seconds until the next attempt where a connection could not be accepted."""


class Phase(StrEnum):
    """What of a connection comes next; the reason for which it is closed when that does not."""

    HANDSHAKE = "handshake"
    HEADERS = "headers"
    BODY = "body"
    ANSWER = "answer"
    """The handler is at work, and has deadlines of its own."""
    UNREAD = "unread"
    """The answer is there, and the caller does not take it."""
    IDLE = "idle"


FULL = "full"
"""Closed because a new connection came and the port had as many as it may have."""

MEMORY = "memory"
"""Closed because the requests on their way had more bytes together than they may have."""

REASONS = (*(each for each in Phase if each is not Phase.ANSWER), FULL, MEMORY)


@dataclass(frozen=True, slots=True)
class Limits:
    """How many connections a port may have, and how long each may take, in seconds."""

    connections: int = 256
    received: int = 1 << 20
    """Bytes of all requests that are not answered yet."""
    handshake: float = 10.0
    """From the accept."""
    headers: float = 10.0
    """From the accept (over TLS from the end of the handshake), or the first byte of a later
    request, until the headers are complete."""
    body: float = 30.0
    """After the headers. Handlers that read a body have a shorter time, and say so."""
    idle: float = 75.0
    """From an answer to the next request."""

    def seconds(self, phase: Phase) -> float | None:
        """Return how long a phase may take; None where it has no limit here."""
        return {
            Phase.HANDSHAKE: self.handshake,
            Phase.HEADERS: self.headers,
            Phase.BODY: self.body,
            Phase.UNREAD: self.headers,
            Phase.IDLE: self.idle,
        }.get(phase)


class ConnectionMetrics:
    """What a program counts of its connections."""

    def __init__(self, program: str, registry: CollectorRegistry) -> None:
        self._open = Gauge(
            f"muster_{program}_connections",
            "Connections that are open",
            ["port"],
            registry=registry,
        )
        self._closed = Counter(
            f"muster_{program}_connections_closed",
            "Connections closed: handshake, headers, body, unread (the answer) and idle (no next"
            " request) did not come in time; full (closed for a new one), memory (too many bytes)",
            ["port", "reason"],
            registry=registry,
        )

    def of(self, port: str) -> "Counts":
        """The ones of a port."""
        closed = {reason: self._closed.labels(port, str(reason)) for reason in REASONS}
        return Counts(self._open.labels(port), closed)


@dataclass(frozen=True, slots=True)
class Counts:
    """The same of one port, looked up once."""

    open: Gauge
    closed: dict[str, Counter]


class Connection(asyncio.Protocol):
    """One connection, from accept to loss; hands on to the HTTP protocol what comes."""

    def __init__(self, port: "Connections", serve: Callable[[], web.RequestHandler]) -> None:
        self._port = port
        self._serve = serve
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self.handler: web.RequestHandler | None = None
        self.phase = Phase.HANDSHAKE
        self.received = 0

    # ---- what the transport tells

    def accepted(self, transport: asyncio.BaseTransport) -> None:
        """Begin, over TLS with the handshake."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._port.add(self)
        self.enter(Phase.HANDSHAKE)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Expect a request: over TLS the handshake is done."""
        if self._transport is None:
            self.accepted(transport)
        self.enter(Phase.HEADERS)
        self.handler = self._serve()
        self._port.know(self, self.handler)
        self.handler.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Hand on what has come, unless that is too much."""
        if self.phase is Phase.IDLE:
            self.enter(Phase.HEADERS)
        self._port.take(self, len(data))
        if self.handler is not None and self in self._port:
            self.handler.data_received(data)

    def eof_received(self) -> None:
        """Let the transport close."""

    def pause_writing(self) -> None:
        """Wait for the caller to read, but not for ever."""
        if self.phase is Phase.IDLE:
            self.enter(Phase.UNREAD)
        if self.handler is not None:
            self.handler.pause_writing()

    def resume_writing(self) -> None:
        """Go on."""
        if self.phase is Phase.UNREAD:
            self.enter(Phase.IDLE)
        if self.handler is not None:
            self.handler.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self.lost()
        if self.handler is not None:
            self.handler.connection_lost(exc)

    # ---- what becomes of it

    def enter(self, phase: Phase) -> None:
        """Wait for the next thing, from now on."""
        if self not in self._port:
            return
        self.phase = phase
        self._port.order(self)
        self._cancel()
        seconds = self._port.limits.seconds(phase)
        if seconds is not None:
            self._timer = self._loop.call_later(seconds, self.close, phase)

    def asked(self, request: web.Request) -> None:
        """Expect the body."""
        self.enter(Phase.BODY)
        request.content.on_eof(self._complete)

    def _complete(self) -> None:
        if self.phase is Phase.BODY:  # and not answered already, without its body
            self.enter(Phase.ANSWER)

    def answered(self) -> None:
        """Expect the next request."""
        self._port.take(self, -self.received)
        self.enter(Phase.IDLE)

    def close(self, reason: str) -> None:
        """Give it up, for a reason that is counted."""
        self._port.counts.closed[reason].inc()
        self.abort()

    def abort(self) -> None:
        """Give it up."""
        self.lost()
        assert self._transport is not None
        self._transport.abort()

    def lost(self) -> None:
        """Forget it; it may have been forgotten before."""
        self._cancel()
        if self in self._port:
            self._port.remove(self)

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Connections:
    """The connections of one port."""

    def __init__(self, limits: Limits, counts: Counts) -> None:
        self.limits = limits
        self.counts = counts
        self._open: set[Connection] = set()
        self._waiting: OrderedDict[Connection, None] = OrderedDict()
        """Those without a complete request, the longest first."""
        self._by_handler: dict[web.RequestHandler, Connection] = {}
        self._received = 0
        self._changed = asyncio.Event()

    def __contains__(self, connection: Connection) -> bool:
        return connection in self._open

    def add(self, connection: Connection) -> None:
        """Count one more."""
        self._open.add(connection)
        self.counts.open.set(len(self._open))

    def know(self, connection: Connection, handler: web.RequestHandler) -> None:
        """Remember the connection of a request handler."""
        self._by_handler[handler] = connection

    def order(self, connection: Connection) -> None:
        """Put it last of those that wait, or take it out while it is being answered."""
        self._waiting.pop(connection, None)
        if connection.phase is not Phase.ANSWER:
            self._waiting[connection] = None
            self._changed.set()

    def remove(self, connection: Connection) -> None:
        """Count one less."""
        self._open.remove(connection)
        self._waiting.pop(connection, None)
        if connection.handler is not None:
            del self._by_handler[connection.handler]
        self._received -= connection.received
        self.counts.open.set(len(self._open))
        self._changed.set()

    def take(self, connection: Connection, count: int) -> None:
        """Count bytes of its request; where all are too many, close those that came least far.

        Not the largest: many that are each a little smaller than a real request would have that
        one closed, and every one that its caller sends again.
        """
        if connection not in self:
            return
        connection.received += count
        self._received += count
        while self._received > self.limits.received and self._waiting:
            stalled = next((each for each in self._waiting if each.received), None)
            if stalled is None:
                return  # all that there is belongs to requests that are being answered
            stalled.close(MEMORY)

    async def room(self) -> None:
        """Wait until there may be one more; the one that has waited longest is closed for it."""
        while len(self._open) >= self.limits.connections:
            if self._waiting:
                next(iter(self._waiting)).close(FULL)
            else:
                self._changed.clear()
                await self._changed.wait()

    def abort(self) -> None:
        """Give up all that are left."""
        for connection in [*self._open]:
            connection.abort()

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Tell the connection of its requests: that the headers are there, and the answer."""
        connection = self._by_handler.get(request.protocol)
        if connection is None:
            return await handler(request)  # it was closed a moment ago
        connection.asked(request)
        try:
            return await handler(request)
        finally:
            connection.answered()


class _Tls(SSLProtocol):
    """asyncio's TLS, which tells the connection of its accept and its end, with less memory."""

    max_size = TLS_BUFFER

    def __init__(self, connection: Connection, context: ssl.SSLContext, limits: Limits) -> None:
        self._connection = connection
        super().__init__(
            asyncio.get_running_loop(),
            connection,
            context,
            None,  # type: ignore[arg-type]  # no task waits for the handshake
            server_side=True,
            ssl_shutdown_timeout=limits.handshake,
        )

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._connection.accepted(transport)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._connection.lost()  # asyncio says nothing to it where the handshake failed


@contextlib.asynccontextmanager
async def accepting(
    listener: socket.socket,
    connections: Connections,
    serve: Callable[[], web.RequestHandler],
    tls: ssl.SSLContext | None,
) -> AsyncIterator[None]:
    """Accept connections until the end; those that are open then stay."""

    def made() -> asyncio.BaseProtocol:
        connection = Connection(connections, serve)
        return connection if tls is None else _Tls(connection, tls, connections.limits)

    task = asyncio.create_task(_accept_for_ever(listener, connections, made))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _accept_for_ever(
    listener: socket.socket, connections: Connections, made: Callable[[], asyncio.BaseProtocol]
) -> None:
    while True:
        try:
            await _accept(listener, connections, made)
        except Exception:
            log.exception("no connection can be accepted")
            await asyncio.sleep(ACCEPT_PAUSE)


async def _accept(
    listener: socket.socket, connections: Connections, made: Callable[[], asyncio.BaseProtocol]
) -> None:
    loop = asyncio.get_running_loop()
    accepted, _ = await loop.sock_accept(listener)
    try:
        await connections.room()
    except asyncio.CancelledError:
        accepted.close()
        raise
    await loop.connect_accepted_socket(made, accepted)
