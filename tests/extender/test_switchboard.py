"""The switchboard leads to one replica at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.extender.switchboard import Switchboard


async def _echoing(tag: bytes) -> asyncio.Server:
    """A server that puts its tag before what it hears."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(100):
            writer.write(tag + piece)
        writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", 0)


@pytest.fixture
async def ports() -> AsyncIterator[list[int]]:
    servers = [await _echoing(tag) for tag in (b"first ", b"second ")]
    yield [server.sockets[0].getsockname()[1] for server in servers]
    for server in servers:
        server.close()


async def test_what_is_open_is_cut_and_what_is_new_leads_elsewhere(ports: list[int]) -> None:
    """A connection that stayed would let the old replica answer, and no replica would lag."""
    with Switchboard(ports[0]) as board:
        port = int(board.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"call")
        assert await reader.readexactly(10) == b"first call"
        await asyncio.to_thread(board.turn_to, ports[1])
        assert await _rest(reader) == b""
        writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"call")
        assert await reader.readexactly(11) == b"second call"
        writer.close()


async def _rest(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
