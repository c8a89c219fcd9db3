"""A proxy that moves the scheduler's connection to another replica, as a Service may.

An address on loopback whose connections lead to one port at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from typing import Any, Self

from testbed.waiting import WAIT_SECONDS

_PIECE = 1 << 16


class Switchboard:
    """Passes bytes on to `target`; use it as `with Switchboard(port) as board`."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._open: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def turn_to(self, target: int) -> None:
        """Cut what is open; new connections lead to another port."""
        self._in_loop(self._turn_to(target))

    async def _turn_to(self, target: int) -> None:
        self._target = target
        for writer in self._open:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            there = await asyncio.open_connection("127.0.0.1", self._target)
            ends = {writer, there[1]}
            self._open |= ends
            try:
                await asyncio.gather(_pump(reader, there[1]), _pump(there[0], writer))
            finally:
                self._open -= ends
                for end in ends:
                    end.transport.abort()

    def _in_loop(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_SECONDS)

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = self._in_loop(asyncio.start_server(self._serve, "127.0.0.1", 0))
        return self

    def __exit__(self, *_: object) -> None:
        self._in_loop(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        self._server.close()
        await self._turn_to(0)
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*rest, return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(_PIECE):
        writer.write(piece)
        await writer.drain()
    writer.close()
