"""What is no HTTP is refused without a word in the log; faults of ours are told."""

from __future__ import annotations

import asyncio
import logging

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from runtime.connections import ConnectionMetrics
from runtime.http_server import BadBody, Port, listening, read_body

HOST = b"Host: x\r\n\r\n"


async def said_to(request: bytes) -> bytes:
    """The status line of the answer to a request."""

    async def broken(_: web.Request) -> web.Response:
        raise ValueError("not foreseen")

    application = web.Application()
    application.router.add_get("/broken", broken)
    metrics = ConnectionMetrics("test", CollectorRegistry())
    async with listening(application, Port("odd", "127.0.0.1", 0), metrics) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        line = await asyncio.wait_for(reader.readline(), 60)
        writer.close()
        await writer.wait_closed()
    return line.strip()


@pytest.mark.parametrize(
    "request_",
    [
        b"GET \r\n/broken HTTP/1.1\r\n" + HOST,
        b"GET /broken HTTP/1.1\r\nContent-Length: -1\r\n" + HOST,
        b"GET /broken HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n" + HOST,
        b"GET /broken HTTP/9.9\r\n" + HOST,
    ],
    ids=["url", "length", "long", "version"],
)
async def test_what_is_no_http_is_refused_and_not_logged(
    request_: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    assert b" 400 " in await said_to(request_)
    assert caplog.records == []


@pytest.mark.parametrize("leave", ["abort", "close"])
async def test_a_caller_that_leaves_in_the_middle_of_a_body_is_no_fault(leave: str) -> None:
    refused: asyncio.Queue[BadBody | Exception] = asyncio.Queue()

    async def read(request: web.Request) -> web.Response:
        began.set()
        try:
            await read_body(request, 1_000, 60.0)
        except (BadBody, OSError) as error:
            refused.put_nowait(error)
        return web.Response()

    began, application = asyncio.Event(), web.Application()
    application.router.add_post("/read", read)
    metrics = ConnectionMetrics("test", CollectorRegistry())
    async with listening(application, Port("odd", "127.0.0.1", 0), metrics) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST /read HTTP/1.1\r\nContent-Length: 9\r\n" + HOST + b"half")
        await asyncio.wait_for(began.wait(), 60)
        getattr(writer.transport, leave)()
        error = await asyncio.wait_for(refused.get(), 60)
    assert isinstance(error, BadBody), repr(error)
    assert (error.status, str(error)) == (400, "the body broke off")


async def test_a_fault_of_ours_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert b" 500 " in await said_to(b"GET /broken HTTP/1.1\r\n" + HOST)
    [record] = caplog.records
    assert "ValueError: not foreseen" in caplog.text
    assert record.levelno == logging.ERROR
