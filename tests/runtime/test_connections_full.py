"""Connections at the limit of a port: which makes room."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any
from unittest import mock

from tests.kube.fake_api import eventually
from tests.runtime.connected import BODY, GET, HALF, HELD, SOON, limits, serving


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
