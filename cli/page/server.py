"""Serves the page on this machine: three files, the report, and a stream of new readings."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from importlib.resources import files

import msgspec
from aiohttp import web

from cli.page.feed import Feed

ADDRESS = "127.0.0.1"
"""The page has no log-in of its own: what its reader may read, all see who reach it."""

QUERY_LIMIT = 200
"""Characters that are looked for."""

QUIET = 15.0
"""Seconds after which a line is sent that says nothing, so that a lost browser is noticed."""

ASSETS = {
    "/": ("index.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
}

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(feed: Feed, port: int) -> AsyncIterator[int]:
    """Serve the page; gives the port: any free one for 0. Raises OSError where it is taken."""
    runner = web.AppRunner(application(feed), access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        site = web.TCPSite(runner, ADDRESS, port)
        await site.start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


def application(feed: Feed) -> web.Application:
    """Return the application; it only reads."""
    made = web.Application(middlewares=[_of_this_machine])
    for path, (name, kind) in ASSETS.items():
        made.router.add_get(path, _asset(name, kind))
    made.router.add_get("/report", _report(feed))
    made.router.add_get("/changes", _changes(feed))
    return made


@web.middleware
async def _of_this_machine(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse a name that is not this machine's: a page of others could have it lead here."""
    name = request.host.rpartition(":")[0] if ":" in request.host else request.host
    if name not in (ADDRESS, "localhost"):
        raise web.HTTPMisdirectedRequest(text=f"open it as http://{ADDRESS}:PORT/\n")
    return await handler(request)


def _asset(name: str, kind: str) -> Handler:
    body = files("cli.page").joinpath("assets", name).read_bytes()

    async def asset(_: web.Request) -> web.StreamResponse:
        return web.Response(body=body, content_type=kind, charset="utf-8", headers=HEADERS)

    return asset


def _report(feed: Feed) -> Handler:
    async def report(request: web.Request) -> web.StreamResponse:
        query = request.query.get("q", "")[:QUERY_LIMIT]
        found = feed.page(query)
        if found is None:
            said = {"fault": feed.fault or "the cluster is being read for the first time"}
            return web.json_response(said, status=503, headers=HEADERS)
        body = msgspec.json.encode(found)
        return web.Response(body=body, content_type="application/json", headers=HEADERS)

    return report


def _changes(feed: Feed) -> Handler:
    async def changes(request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        await stream.prepare(request)
        with suppress(ConnectionResetError):  # the browser is gone
            await _tell(feed, stream)
        return stream

    return changes


async def _tell(feed: Feed, stream: web.StreamResponse) -> None:
    version = feed.version
    while True:
        await stream.write(f"data: {version}\n\n".encode())
        version = await _next(feed, version)


async def _next(feed: Feed, version: int) -> int:
    """Wait for another reading, for a bounded time."""
    try:
        async with asyncio.timeout(QUIET):
            return await feed.after(version)
    except TimeoutError:
        return feed.version
