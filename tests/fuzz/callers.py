"""Calls a server of ours over TLS, one kept connection, with any bytes for a body."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from dataclasses import dataclass

_HEAD = (
    "POST {} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"
)

SOON = 0.2
"""Seconds in which an answer to a broken request mostly comes; nothing fails where it does not."""


@dataclass(frozen=True)
class Answer:
    """Status and body of an answer."""

    status: int
    body: bytes


class Caller:
    """One connection, made anew after the server closed it."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        self._port = port
        self._context = context
        self._open: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: bytes) -> Answer:
        """Send a body; raises OSError or EOFError where no answer comes."""
        try:
            return await self._posted(path, body)
        except (OSError, EOFError):
            await self.close()
            raise

    async def _posted(self, path: str, body: bytes) -> Answer:
        reader, writer = await self._connection()
        writer.write(_HEAD.format(path, len(body)).encode() + body)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
        answer = Answer(
            int(head.split()[1]), await reader.readexactly(int(fields[b"content-length"]))
        )
        # What is left of a body that is too large may end the connection any moment.
        if fields.get(b"connection") == b"close" or answer.status == 413:
            await self.close()
        return answer

    async def send(self, request: bytes) -> Answer | None:
        """Send any bytes on a connection of their own.

        None where no answer comes soon: the server waits for more, or has ended the connection.
        """
        reader, writer = await self._connected()
        with contextlib.suppress(OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
            async with asyncio.timeout(SOON):
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                answer = Answer(int(head.split()[1]), head)
                writer.transport.abort()
                return answer
        writer.transport.abort()
        return None

    async def close(self) -> None:
        """End the connection, if there is one."""
        if self._open is not None:
            self._open[1].close()
            self._open = None

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._open is None:
            self._open = await self._connected()
        return self._open

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(
            "127.0.0.1", self._port, ssl=self._context, server_hostname="127.0.0.1"
        )
