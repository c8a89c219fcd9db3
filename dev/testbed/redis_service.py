"""A TCP proxy in the place of the Service: its one endpoint is where the program points it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from headstate.shell.cluster import Cluster
from testbed.heads import FakeCluster


class Service(FakeCluster):
    """An API server whose Service passes connections on; `silent` ones say nothing any more."""

    def __init__(self) -> None:
        super().__init__()
        self.port = 0
        self._target: tuple[str, int] | None = None
        self._open: dict[asyncio.Event, asyncio.StreamWriter] = {}

    async def address_of(self, server: str) -> str | None:
        """Resolve the name of a server, as the program does."""
        return await Cluster.address_of(cast(Cluster, self), server)

    async def point_to(self, address: str, port: int) -> bool:
        """Pass new connections on to there."""
        self._target = (address, port)
        return await super().point_to(address, port)

    def fall_silent(self) -> None:
        """Pass on nothing of connections that are open, and close none: a network that is cut."""
        for each in self._open:
            each.clear()

    def give_up(self) -> None:
        """Break the connections that are silent, as the kernel does at last."""
        for speaks, writer in self._open.items():
            if not speaks.is_set():
                writer.transport.abort()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        """Listen on loopback; gives the port."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self.port
        finally:
            server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        speaks = asyncio.Event()
        speaks.set()
        self._open[speaks] = writer
        with contextlib.suppress(OSError):
            assert self._target is not None
            there, to = await asyncio.open_connection(*self._target)
            with contextlib.closing(to):
                both = (_passed(reader, to, speaks), _passed(there, writer, speaks))
                tasks = [asyncio.create_task(each) for each in both]
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for each in tasks:
                    each.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        writer.close()
        del self._open[speaks]


async def _passed(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, speaks: asyncio.Event
) -> None:
    while data := await reader.read(1 << 16):
        await speaks.wait()
        writer.write(data)
        await writer.drain()
