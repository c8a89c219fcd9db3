"""Connections are closed by limits and deadlines, with the right reason, and busy ones never."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import pytest
import trustme
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


# ---- deadlines


@pytest.mark.parametrize("said", [b"", HALF])
async def test_headers_that_do_not_come(said: bytes) -> None:
    async with serving(limits(headers=SOON)) as server:
        caller = await server.caller(said)
        await caller.until_closed()
        assert server.closed("headers") == 1
        await eventually(lambda: server.open == 0)


async def test_the_first_byte_does_not_begin_the_deadline_anew() -> None:
    async with serving(limits(headers=1.0)) as server:
        caller = await server.caller(HALF)
        trickling = asyncio.create_task(_trickle(caller))
        await caller.until_closed()
        trickling.cancel()
        assert server.closed("headers") == 1


async def _trickle(caller: Caller) -> None:
    while True:
        caller.say(b"x")
        await asyncio.sleep(0.05)


async def test_the_headers_of_a_later_request() -> None:
    """A connection that was answered has the same time from the first byte of the next one."""
    async with serving(limits(headers=1.0)) as server:
        caller = await server.caller(GET)
        assert b"200" in await caller.answer()
        caller.say(HALF)
        await caller.until_closed()
        assert server.closed("headers") == 1


async def test_a_body_that_does_not_come() -> None:
    async with serving(limits(body=SOON)) as server:
        caller = await server.caller(BODY + b"x")
        await caller.until_closed()
        assert server.closed("body") == 1


async def test_no_next_request() -> None:
    async with serving(limits(idle=SOON)) as server:
        caller = await server.caller(GET)
        assert b"200" in await caller.answer()
        await caller.until_closed()
        assert server.closed("idle") == 1


async def test_an_answer_that_is_not_read() -> None:
    """On a busy machine a call may take longer than that to come in: then there is another."""
    async with serving(limits(headers=1.0)) as server:
        for tries in range(1, 20):
            await server.caller(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")  # reads nothing more
            await server.closed_in_all(tries, "headers", "unread")
            if server.closed("unread"):
                break
        assert server.closed("unread") == 1


async def test_an_answer_that_was_read_is_not_waited_for() -> None:
    async with serving(limits(headers=60.0, idle=SOON)) as server:
        caller = await server.caller(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        await caller.until_closed()
        assert (server.closed("unread"), server.closed("idle")) == (0, 1)


async def test_what_is_being_answered_takes_its_time() -> None:
    quick = limits(headers=SOON, body=SOON, idle=SOON)
    async with serving(quick) as server:
        caller = await server.caller(HELD)
        late = await server.caller()
        await late.until_closed()
        server.release.set()
        assert b"200" in await caller.answer()


# ---- TLS


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def tls(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    return context


@pytest.fixture
def client(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01\x02"])
async def test_a_handshake_that_does_not_come(tls: ssl.SSLContext, said: bytes) -> None:
    async with serving(limits(handshake=SOON), tls) as server:
        caller = await server.caller(said)
        await caller.until_closed()
        assert server.closed("handshake") == 1


async def test_headers_that_do_not_come_over_tls(
    tls: ssl.SSLContext, client: ssl.SSLContext
) -> None:
    async with serving(limits(headers=1.0), tls) as server:
        caller = await server.caller(HALF, tls=client)
        await caller.until_closed()
        assert server.closed("headers") == 1


async def test_a_handshake_that_fails_is_counted_out(tls: ssl.SSLContext) -> None:
    async with serving(limits(), tls) as server:
        with pytest.raises(ssl.SSLError):
            await server.caller(tls=ssl.create_default_context())
        plain = await server.caller(GET)
        await plain.until_closed()
        await eventually(lambda: server.open == 0)


async def test_a_body_and_an_answer_over_tls(tls: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Larger than the buffer of the connection, and more than once."""
    async with serving(limits(), tls) as server:
        caller = await server.caller(tls=client)
        for _ in range(3):
            caller.say(BODY + bytes(100_000))
            assert b"200" in await caller.answer()
            caller.say(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"200" in await caller.answer()


async def test_a_connection_in_its_handshake_makes_room(
    tls: ssl.SSLContext, client: ssl.SSLContext
) -> None:
    async with serving(limits(connections=2), tls) as server:
        first = await server.one_more()
        await server.one_more(b"\x16\x03\x01\x02")
        caller = await server.caller(GET, tls=client)
        assert b"200" in await caller.answer()
        await first.until_closed()
        assert server.closed("full") == 1


# ---- room


async def test_the_one_that_has_waited_longest_makes_room() -> None:
    async with serving(limits(connections=3)) as server:
        oldest, second, third = [await server.one_more(HALF) for _ in range(3)]
        caller = await server.caller(GET)
        assert b"200" in await caller.answer()
        await oldest.until_closed()
        assert (server.open, server.closed("full")) == (3, 1)
        for kept in (second, third):
            kept.say(b"st: x\r\n\r\n")
            assert b"200" in await kept.answer()


async def test_an_answer_and_the_first_byte_of_a_request_begin_the_waiting_anew() -> None:
    async with serving(limits(connections=3)) as server:
        first, second, third = [await server.one_more() for _ in range(3)]
        for caller in (second, third, first):
            caller.say(GET)
            assert b"200" in await caller.answer()
        second.say(HALF)
        caller = await server.caller(GET)
        assert b"200" in await caller.answer()
        await third.until_closed()
        second.say(b"st: x\r\n\r\n")
        assert b"200" in await second.answer()
        first.say(GET)
        assert b"200" in await first.answer()


async def test_a_connection_that_is_being_answered_makes_no_room() -> None:
    """A new connection waits, and gets in as soon as one of them is answered."""
    async with serving(limits(connections=2)) as server:
        callers = [await server.one_more(HELD) for _ in range(2)]
        await eventually(lambda: server.held == 2)
        late = await server.caller(GET)
        answering = asyncio.create_task(late.answer())
        done, _ = await asyncio.wait([answering], timeout=0.5)
        assert not done
        server.release.set()
        for caller in callers:
            assert b"200" in await caller.answer()
        assert b"200" in await answering


async def test_a_connection_with_a_slow_body_makes_room() -> None:
    async with serving(limits(connections=1)) as server:
        slow = await server.one_more(BODY + b"x")
        caller = await server.caller(GET)
        assert b"200" in await caller.answer()
        await slow.until_closed()


async def test_a_connection_answered_without_its_body_makes_room() -> None:
    async with serving(limits(connections=1)) as server:
        unknown = b"POST /none HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nx"
        early = await server.one_more(unknown)
        assert b"404" in await early.answer()
        early.say(b"x")  # complete only now
        caller = await server.caller(GET)
        assert b"200" in await caller.answer()


async def test_a_connection_closed_while_it_is_answered_is_gone() -> None:
    async with serving(limits(idle=SOON)) as server:
        gone = await server.caller(HELD)
        await eventually(lambda: server.held == 1)
        gone.writer.transport.abort()
        await eventually(lambda: server.open == 0)
        server.release.set()
        caller = await server.caller(HELD)
        await caller.until_closed()
        assert server.closed("idle") == 1


# ---- memory


async def test_the_bytes_of_all_requests_together() -> None:
    """The one that stalled first is closed for a later one, though that is larger."""
    async with serving(limits(received=250_000)) as server:
        stalled = await server.caller(BODY + bytes(90_000))
        await eventually(lambda: server.reading == 1)
        second = await server.caller(BODY + bytes(50_000))
        await eventually(lambda: server.reading == 2)
        large = await server.caller(BODY.replace(b"100000", b"180000") + bytes(180_000))
        assert b"200" in await large.answer()
        await stalled.until_closed()
        assert server.closed("memory") == 1
        second.say(bytes(50_000))
        assert b"200" in await second.answer()


async def test_bytes_of_requests_that_were_answered_do_not_count() -> None:
    async with serving(limits(received=250_000)) as server:
        caller = await server.caller()
        for _ in range(10):
            caller.say(BODY + bytes(100_000))
            assert b"200" in await caller.answer()
        gone = await server.caller(BODY + bytes(50_000))
        gone.writer.transport.abort()
        await eventually(lambda: server.open == 1)
        caller.say(BODY + bytes(100_000))
        assert b"200" in await caller.answer()


# ---- the listener


async def test_an_accept_that_fails_is_not_the_last() -> None:
    loop = asyncio.get_running_loop()
    accept = loop.sock_accept
    faults: list[Exception] = [OSError(24, "Too many open files")]

    async def failing(listener: Any) -> Any:
        if faults:
            raise faults.pop()
        return await accept(listener)

    with mock.patch.object(loop, "sock_accept", failing):
        async with serving(limits()) as server:
            caller = await server.caller(GET)
            assert b"200" in await caller.answer()
            assert not faults


async def test_at_the_end_nothing_stays_open(tls: ssl.SSLContext) -> None:
    async with serving(limits(connections=2), tls) as server:
        callers = [await server.one_more(b"\x16\x03\x01\x02") for _ in range(2)]
        server.callers.clear()  # their side stays open
    for caller in callers:
        await caller.until_closed()
        caller.writer.close()


async def test_many_at_once_are_all_answered() -> None:
    """Far more callers than connections: each of them gets its answer."""
    async with serving(limits(connections=8)) as server:

        async def call() -> bytes:
            while True:  # one that was closed to make room tries again, as Go's clients do
                caller = await server.caller(GET)
                if answer := await caller.answer():
                    caller.writer.close()
                    return answer

        answers = await asyncio.gather(*(call() for _ in range(200)))
        assert all(b"200" in answer for answer in answers)
        assert server.open <= 8
