"""Connections over TLS."""

from __future__ import annotations

import ssl

import pytest

from tests.kube.fake_api import eventually
from tests.runtime.connected import BODY, GET, HALF, SOON, limits, serving


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
