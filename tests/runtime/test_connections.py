"""Deadlines of connections, for each part of a request."""

from __future__ import annotations

import asyncio

import pytest

from tests.kube.fake_api import eventually
from tests.runtime.connected import BODY, GET, HALF, HELD, SOON, Caller, limits, serving

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
