"""A proxy that makes the way between a coordinator and its API server slow, lossy or dead.

A proxy on loopback that forwards every request over TLS, and meanwhile does to the ones that
match a fault what the fault says. A request that is held is delivered when it is let go, also
where the client has long given up: such a late write is what fencing is for.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import selectors
import ssl
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import Any, Self, TypeVar

import aiohttp
from aiohttp import web

from testbed.closing import Closing
from testbed.waiting import WAIT_SECONDS
from tests.faults.proxied import (
    Call,
    Cut,
    CutError,
    Delay,
    Exchange,
    Fault,
    Frost,
    Hold,
    LostAnswer,
    Match,
    Refusal,
    Silence,
    every,
)

T = TypeVar("T")

_HOP_BY_HOP = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}
_NO_LIMIT = 1 << 30
_LAST_LOOKS = 2000
"""How often it is looked whether closed connections have let go of their sockets, each ms."""


F = TypeVar("F", bound=Fault)


class Proxy(Closing):
    """Stands between one client and the API server; use it as `with Proxy(...) as proxy`."""

    def __init__(
        self, server: str, ca_file: Path | None, tls: ssl.SSLContext | None = None
    ) -> None:
        """`tls` has the certificate that clients are shown; without it they come by plain HTTP."""
        self.log: list[Exchange] = []
        self.url = ""
        self._server = server
        self._tls = tls
        self._ca_file = ca_file
        self._faults: list[Fault] = []
        self._streams: list[tuple[web.Request, Exchange]] = []
        self._sockets = selectors.DefaultSelector()
        self._loop = asyncio.SelectorEventLoop(self._sockets)
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)

    # --- for tests

    @property
    def writes(self) -> list[Exchange]:
        """What the client has tried to write, in the order in which it came."""
        return [exchange for exchange in list(self.log) if exchange.call.is_write]

    def kubeconfig(self, original: Path, path: Path) -> Path:
        """Write a kubeconfig with the user of `original` that leads through the proxy."""
        config = json.loads(original.read_text())
        config["clusters"][0]["cluster"] = {"server": self.url}
        path.write_text(json.dumps(config))
        return path

    def begin(self, fault: F) -> F:
        """Have a fault happen until it is lifted."""
        self._faults.append(fault)
        return fault

    def hold(self, match: Match) -> Hold:
        """Hold the requests that match until the fault is lifted; they are sent then."""
        return self.begin(Hold(match))

    def refuse(
        self, status: int, match: Match = every, *, share: float = 1.0, retry_after: int = 0
    ) -> Refusal:
        """Answer a share of the requests that match with an error."""
        return self.begin(Refusal(match, status, share, retry_after))

    def delay(self, seconds: float, match: Match = every) -> Delay:
        """Send requests that match on late, and pass the pieces of streams on late."""
        return self.begin(Delay(match, seconds))

    def silence(self, match: Match = every) -> Silence:
        """Answer no request that matches and stop the streams, without closing anything."""
        return self.begin(Silence(match))

    def freeze(self, match: Match = every) -> Frost:
        """Stop the streams that are open, and let everything new pass."""
        return self.begin(Frost(match, [exchange for _, exchange in list(self._streams)]))

    def cut_streams(self, match: Match = every) -> None:
        """Cut the streams that are open."""
        self._in_loop(self._cut_streams(match))

    def cut(self, match: Match = every) -> Cut:
        """Cut the connections of all that match, now and until the fault is lifted."""
        fault = self.begin(Cut(match))
        self.cut_streams(match)
        return fault

    def lose_answers(self, match: Match) -> LostAnswer:
        """Carry the requests out and cut the connection in place of the answer."""
        return self.begin(LostAnswer(match))

    def lift(self, fault: Fault) -> None:
        """End a fault; on return no new request meets it."""

        async def end() -> None:
            fault.end()
            self._faults.remove(fault)

        self._in_loop(end())

    @contextlib.contextmanager
    def during(self, fault: F) -> Iterator[F]:
        """Lift the fault at the end of the block."""
        try:
            yield fault
        finally:
            self.lift(fault)

    # --- its thread

    def __enter__(self) -> Self:
        self._thread.start()
        self._in_loop(self._open())
        return self

    def close(self) -> None:
        self._in_loop(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _in_loop(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_SECONDS)

    async def _open(self) -> None:
        trust = None if self._ca_file is None else ssl.create_default_context(cafile=self._ca_file)
        self._upstream = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=trust or False),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(),
            read_bufsize=1 << 20,
        )
        application = web.Application(client_max_size=_NO_LIMIT)
        application.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"{'http' if self._tls is None else 'https'}://{host}:{port}"

    async def _close(self) -> None:
        for fault in self._faults:
            fault.end()
        await self._cut_streams(every)
        await self._runner.cleanup()
        await self._upstream.close()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        for _ in range(_LAST_LOOKS):
            if len(self._sockets.get_map()) == 1:  # the loop's own
                return
            await asyncio.sleep(0.001)

    async def _cut_streams(self, match: Match) -> None:
        for request, exchange in self._streams:
            if match(exchange.call):
                _abort(request)

    # --- one request

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        call = Call(request.method, request.path_qs, await request.read())
        exchange = Exchange(call)
        self.log.append(exchange)
        faults = [fault for fault in self._faults if fault.concerns(call)]
        try:
            for fault in faults:
                fault.met.append(exchange)
                if (given := await fault.before()) is not None:
                    exchange.status = given.status
                    return given
            return await self._forward(request, exchange, faults)
        except (CutError, aiohttp.ClientError, OSError):
            _abort(request)
            return web.Response()

    async def _forward(
        self, request: web.Request, exchange: Exchange, faults: list[Fault]
    ) -> web.StreamResponse:
        call = exchange.call
        async with self._upstream.request(
            call.method,
            self._server + call.path,
            data=call.body or None,
            headers=_without(request.headers, _HOP_BY_HOP),
        ) as answer:
            if "watch=" in call.path and answer.status == web.HTTPOk.status_code:
                return await self._stream(request, exchange, answer)
            body = await answer.read()
            if call.is_write:
                exchange.answer = body.decode(errors="replace")
            exchange.status = answer.status
            for fault in faults:
                await fault.after(exchange)
            headers = _without(answer.headers, _HOP_BY_HOP)
            return web.Response(status=answer.status, body=body, headers=headers)

    async def _stream(
        self, request: web.Request, exchange: Exchange, answer: aiohttp.ClientResponse
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers=_without(answer.headers, _HOP_BY_HOP))
        response.enable_chunked_encoding()
        await response.prepare(request)
        exchange.status = answer.status
        opened = (request, exchange)
        self._streams.append(opened)
        try:
            async for piece in self._pieces(exchange, answer):
                await response.write(piece)
        finally:
            self._streams.remove(opened)
        return response

    async def _pieces(
        self, exchange: Exchange, answer: aiohttp.ClientResponse
    ) -> AsyncIterator[bytes]:
        async for piece in answer.content.iter_any():
            for fault in list(self._faults):
                if fault.concerns(exchange.call):
                    await fault.during(exchange)
            yield piece


def _without(headers: Any, names: set[str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in names}


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()
