"""The proxy does what the fault tests rely on. Without a control plane."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import AsyncIterator, Iterator
from contextlib import closing

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from testbed.waiting import wait_until
from tests.faults.proxied import Call, every
from tests.faults.proxy import Proxy

PATH = "/api/v1/things"


class Origin:
    """A server that counts what it is asked and streams what it is told."""

    def __init__(self) -> None:
        self.bodies: list[str] = []
        self.lines: asyncio.Queue[str] = asyncio.Queue()

    async def write(self, request: web.Request) -> web.Response:
        self.bodies.append(await request.text())
        return web.json_response({}, status=201)

    async def watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while line := await self.lines.get():
            await response.write(line.encode())
        return response


@pytest.fixture
async def origin() -> AsyncIterator[tuple[Origin, str]]:
    origin = Origin()
    application = web.Application()
    application.router.add_post(PATH, origin.write)
    application.router.add_get(PATH, origin.watch)
    async with TestServer(application) as server:
        yield origin, f"http://127.0.0.1:{server.port}"


@pytest.fixture
def proxy(origin: tuple[Origin, str]) -> Iterator[Proxy]:
    with Proxy(origin[1], None) as proxy:
        yield proxy


def post(proxy: Proxy, seconds: float = 5.0) -> int:
    """The status that a client gets; 0 where the connection was cut, -1 where none came."""
    address = proxy.url.removeprefix("http://")
    with closing(http.client.HTTPConnection(address, timeout=seconds)) as connection:
        try:
            connection.request("POST", PATH, b"{}")
            return connection.getresponse().status
        except TimeoutError:
            return -1
        except (OSError, http.client.HTTPException):
            return 0


async def test_a_held_write_arrives_after_its_client_has_gone(
    origin: tuple[Origin, str], proxy: Proxy
) -> None:
    """A late write is the whole point: dropped with its client it would test no fence."""
    hold = proxy.hold(every)
    client = asyncio.create_task(asyncio.to_thread(post, proxy, 0.5))
    await asyncio.to_thread(wait_until, lambda: hold.met, "the write to be held")
    assert await client == -1
    assert origin[0].bodies == []
    proxy.lift(hold)
    await asyncio.to_thread(wait_until, lambda: hold.met[0].is_over, "the write to arrive")
    assert origin[0].bodies == ["{}"]
    assert hold.met[0].status == 201


async def test_a_share_is_refused_and_the_rest_passes(
    origin: tuple[Origin, str], proxy: Proxy
) -> None:
    """A fault for a share of the requests must leave some through, or it is an outage."""
    fault = proxy.refuse(429, every, share=0.5)
    got = [await asyncio.to_thread(post, proxy) for _ in range(20)]
    assert set(got) == {201, 429}
    assert len(origin[0].bodies) == got.count(201)
    proxy.lift(fault)
    assert await asyncio.to_thread(post, proxy) == 201


@pytest.mark.parametrize("fault", ["cut", "lose_answers"])
async def test_a_cut_is_no_answer(origin: tuple[Origin, str], proxy: Proxy, fault: str) -> None:
    """Cut before it is sent on, a request has no effect; cut after, it has one, untold."""
    getattr(proxy, fault)(every)
    assert await asyncio.to_thread(post, proxy) == 0
    assert len(origin[0].bodies) == (1 if fault == "lose_answers" else 0)


async def test_a_stream_stands_still_in_silence_and_ends_with_a_cut(
    origin: tuple[Origin, str], proxy: Proxy
) -> None:
    """A blinded watch must neither end nor tell anything, or its client knows at once."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
    writer.write(f"GET {PATH}?watch=true HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    origin[0].lines.put_nowait("one\n")
    assert b"one" in await reader.readuntil(b"one")
    fault = await asyncio.to_thread(proxy.silence, lambda call: "watch" in call.path)
    origin[0].lines.put_nowait("two\n")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.readuntil(b"two"), 0.2)
    proxy.lift(fault)
    assert b"two" in await reader.readuntil(b"two")
    proxy.cut(lambda call: isinstance(call, Call) and "watch" in call.path)
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await reader.readuntil(b"three")
    writer.close()
    origin[0].lines.put_nowait("")
