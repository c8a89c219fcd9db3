"""A server and its callers, for the tests of connections."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry

from runtime.connections import ConnectionMetrics, Limits
from runtime.http_server import Port, listening
from tests.kube.fake_api import eventually

PATIENT = 600.0
"""Seconds that no test waits for: what is closed meanwhile was closed for another reason."""
SOON = 0.2

GET = b"GET /now HTTP/1.1\r\nHost: x\r\n\r\n"
HALF = b"GET /now HTTP/1.1\r\nHo"
HELD = b"GET /held HTTP/1.1\r\nHost: x\r\n\r\n"
BODY = b"POST /read HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"


def limits(**changed: Any) -> Limits:
    """Limits that nothing reaches, but for these."""
    patient = dict.fromkeys(("handshake", "headers", "body", "idle"), PATIENT)
    return Limits(**{"connections": 100, **patient, **changed})


@dataclass
class Caller:
    """One connection to the server."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def say(self, text: bytes) -> None:
        self.writer.write(text)

    async def answer(self) -> bytes:
        """The status line of the next answer, which is read whole; empty when closed instead."""
        async with asyncio.timeout(60):
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                head = await self.reader.readuntil(b"\r\n\r\n")
                length = head.split(b"Content-Length: ")[1].split(b"\r\n")[0]
                await self.reader.readexactly(int(length))
                return head.split(b"\r\n")[0]
        return b""

    async def until_closed(self) -> None:
        async with asyncio.timeout(60):
            with contextlib.suppress(ConnectionError):
                while await self.reader.read(1 << 16):
                    pass


@dataclass
class Server:
    """A server with a few odd handlers."""

    port: int
    registry: CollectorRegistry
    tls: ssl.SSLContext | None = None
    release: asyncio.Event = field(default_factory=asyncio.Event)
    held: int = 0
    reading: int = 0
    callers: list[Caller] = field(default_factory=list)

    async def caller(self, say: bytes = b"", *, tls: ssl.SSLContext | None = None) -> Caller:
        name = "localhost" if tls is not None else None
        opened = asyncio.open_connection("127.0.0.1", self.port, ssl=tls, server_hostname=name)
        caller = Caller(*await opened)
        caller.say(say)
        self.callers.append(caller)
        return caller

    async def closed_in_all(self, count: int, *why: str) -> None:
        """Wait until so many connections were closed for one of these."""
        await eventually(lambda: sum(self.closed(each) for each in why) >= count)

    async def one_more(self, say: bytes = b"") -> Caller:
        """The same, and wait until the server has accepted it."""
        before = self.open
        caller = await self.caller(say)
        await eventually(lambda: self.open == before + 1)
        return caller

    def value(self, name: str, **labels: str) -> float:
        found = self.registry.get_sample_value(f"muster_test_{name}", {"port": "odd", **labels})
        assert found is not None
        return found

    @property
    def open(self) -> float:
        return self.value("connections")

    def closed(self, reason: str) -> float:
        return self.value("connections_closed_total", reason=reason)

    # ---- handlers

    def application(self) -> web.Application:
        application = web.Application(client_max_size=1 << 30)
        application.router.add_get("/now", self._now)
        application.router.add_get("/large", self._large)
        application.router.add_get("/held", self._held)
        application.router.add_post("/read", self._read)
        return application

    async def _now(self, _: web.Request) -> web.Response:
        return web.Response(text="now")

    async def _large(self, _: web.Request) -> web.Response:
        return web.Response(body=bytes(64 << 20))

    async def _held(self, _: web.Request) -> web.Response:
        self.held += 1
        await self.release.wait()
        return web.Response(text="held")

    async def _read(self, request: web.Request) -> web.Response:
        self.reading += 1
        return web.Response(text=str(len(await request.read())))


@contextlib.asynccontextmanager
async def serving(
    chosen: Limits, tls: ssl.SSLContext | None = None, **more: Any
) -> AsyncIterator[Server]:
    registry = CollectorRegistry()
    server = Server(0, registry, tls)
    at = Port("odd", "127.0.0.1", 0, tls=tls, limits=chosen, **more)
    metrics = ConnectionMetrics("test", registry)
    async with listening(server.application(), at, metrics) as server.port:
        yield server
        for caller in server.callers:
            caller.writer.close()
    assert server.open == 0
