"""Sends requests at a given rate, or as fast as they are answered, and times the answers.

A small HTTP/1.1 client over TLS that keeps its connections. At a rate, the clock of each request
starts when it was due and not when it was sent: a server that stalls is charged for all that had
to wait meanwhile.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CONNECTIONS = 8


@dataclass(frozen=True)
class Target:
    """Where the requests go."""

    port: int
    ca_file: Path
    path: str = "/mutate"
    context: ssl.SSLContext | None = None
    """What is trusted and shown; the authority in the file, and nothing, where none is given."""

    async def connect(self) -> Connection:
        """Open one connection."""
        context = self.context or ssl.create_default_context(cafile=str(self.ca_file))
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=context)
        return Connection(self.path, reader, writer)


class Connection:
    """One connection, for one request at a time."""

    def __init__(
        self, path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        )
        self._reader = reader
        self._writer = writer

    @property
    def serial(self) -> str:
        """The number of the certificate that the server showed."""
        shown = self._writer.get_extra_info("peercert") or {}
        return str(shown.get("serialNumber", ""))

    async def post(self, body: bytes) -> bytes:
        """Send a body and return the answer's; anything but a 200 is an error."""
        self._writer.write(f"{self._head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        head = await self._reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise OSError(f"answered {head[:100]!r}")
        return await self._reader.readexactly(_length(head))

    async def close(self) -> None:
        """End the connection."""
        self._writer.close()
        await self._writer.wait_closed()


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    raise OSError(f"an answer without a length: {head!r}")


async def at_rate(target: Target, bodies: Sequence[bytes], rate: float, count: int) -> list[float]:
    """Seconds from when each of `count` requests was due to its answer."""
    connections = [await target.connect() for _ in range(CONNECTIONS)]
    for connection in connections:
        await connection.post(bodies[0])
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for connection in connections:
        free.put_nowait(connection)
    began = time.perf_counter() + 0.05
    took = await asyncio.gather(
        *(_due(free, bodies[n % len(bodies)], began + n / rate) for n in range(count))
    )
    for connection in connections:
        await connection.close()
    return list(took)


async def _due(free: asyncio.Queue[Connection], body: bytes, due: float) -> float:
    await asyncio.sleep(max(0.0, due - time.perf_counter()))
    # The event loop may wake us late; that is the load's fault and not the server's.
    since = max(due, time.perf_counter()) if free.qsize() else due
    connection = await free.get()
    await connection.post(body)
    took = time.perf_counter() - since
    free.put_nowait(connection)
    return took


async def at_most(target: Target, bodies: Sequence[bytes], seconds: float) -> float:
    """Answers a second when every connection asks again at once."""
    ends = time.perf_counter() + seconds
    counts = await asyncio.gather(*(_again(target, bodies, ends) for _ in range(CONNECTIONS)))
    return sum(counts) / seconds


async def _again(target: Target, bodies: Sequence[bytes], ends: float) -> int:
    connection = await target.connect()
    count = 0
    while time.perf_counter() < ends:
        await connection.post(bodies[count % len(bodies)])
        count += 1
    await connection.close()
    return count
