"""Serves the page: its files, the report, and a stream of new readings."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from cli.page.feed import Feed, read_status
from cli.page.reading.routes import add_reading
from cli.page.safety.answers import answer, fault, say_faults
from cli.page.safety.callers import CALLER, Callers, with_caller
from cli.page.safety.guards import ADDRESS, add_headers
from cli.page.writing.routes import add_writing
from cli.report.page import page_report

QUERY_LIMIT: Final = 200
"""Characters that are looked for."""

LARGEST_BODY: Final = 1 << 18

QUIET: Final = 15.0
"""Seconds after which a line is sent that says nothing, so that a lost browser is noticed."""

_KINDS: Final = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}


def _files(folder: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _files(each, f"{path}{each.name}/")
        elif PurePosixPath(each.name).suffix in _KINDS:
            yield f"{path}{each.name}", each


ASSETS: Final = dict(_files(files("cli.page").joinpath("assets"), "/"))
"""All files by their path. A request chooses among these: no path of it reaches the disk."""

ASSETS["/"] = ASSETS.pop("/index.html")


@asynccontextmanager
async def serving(page: web.Application, port: int) -> AsyncIterator[int]:
    """Serve the page on this machine alone; gives the port: any free one for 0.

    Raises OSError where it is taken.
    """
    runner = web.AppRunner(page, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        site = web.TCPSite(runner, ADDRESS, port)
        await site.start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


def application(
    callers: Callers, guards: Sequence[Middleware], feed: Feed | None
) -> web.Application:
    """Return the application; without a feed each report is read for whoever asks."""
    middlewares = [say_faults(callers.needs), *guards, with_caller(callers, ASSETS)]
    made = web.Application(middlewares=middlewares, client_max_size=LARGEST_BODY)
    made.on_response_prepare.append(add_headers)
    for path, file in ASSETS.items():
        made.router.add_get(path, _asset(file))
    made.router.add_get("/api/session", _session(callers))
    add_writing(made)
    if feed is None:
        made.router.add_get("/report", _own_report)
    else:
        made.router.add_get("/report", _report(feed))
        made.router.add_get("/changes", _changes(feed))
    add_reading(made)
    return made


def _asset(file: Traversable) -> Handler:
    body, kind = file.read_bytes(), _KINDS[PurePosixPath(file.name).suffix]

    async def asset(_: web.Request) -> web.StreamResponse:
        return web.Response(body=body, content_type=kind, charset="utf-8")

    return asset


def _session(callers: Callers) -> Handler:
    """Say who the person is, as the API server says it."""

    async def session(request: web.Request) -> web.StreamResponse:
        caller = request[CALLER]
        user = await caller.who()
        return answer(
            {
                "user": user.username,
                "groups": user.groups,
                "namespace": caller.namespace,
                "needs": callers.needs,
            }
        )

    return session


async def _own_report(request: web.Request) -> web.StreamResponse:
    found = await read_status(request[CALLER].reader)
    return answer(page_report(found, _query(request), 0, 0.0, ""))


def _query(request: web.Request) -> str:
    return request.query.get("q", "")[:QUERY_LIMIT]


def _report(feed: Feed) -> Handler:
    async def report(request: web.Request) -> web.StreamResponse:
        found = feed.page(_query(request))
        if found is None:
            return fault(503, feed.fault or "the cluster is being read for the first time")
        return answer(found)

    return report


def _changes(feed: Feed) -> Handler:
    async def changes(request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
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
