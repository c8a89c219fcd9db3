"""The paths below which the page reads the cluster; each answers with the rights of the caller."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

import msgspec
from aiohttp import web

from cli.endings import Unusable
from cli.page.reading.answers import name_of, place_of, streamed
from cli.page.reading.clusters import Piece, cluster_pieces
from cli.page.reading.links import Link
from cli.page.reading.logs import pass_log
from cli.page.reading.one_cluster import read_cluster, read_why
from cli.page.reading.room import read_room
from cli.page.reading.what_if import TURN, what_if
from cli.page.safety.answers import answer
from cli.page.safety.callers import CALLER
from cli.read.home import find_home
from cli.read.ray.jobs import read_jobs
from cli.read.ray.logs import job_logs
from cli.read.ray.redis import read_redis

MOST_NAMESPACES: Final = 50

LINKS: Final = web.AppKey("links", tuple[Link, ...])
"""What is shown beside each Ray cluster."""


def add_reading(app: web.Application) -> None:
    """Add what the page reads; there are no links before `app[LINKS]` is set."""
    app[LINKS] = ()
    app[TURN] = asyncio.Lock()
    for path, handler in (
        ("/api/clusters", clusters),
        ("/api/clusters/{namespace}/{name}", cluster),
        ("/api/gangs/{namespace}/{name}/why", why),
        ("/api/jobs", jobs),
        ("/api/jobs/{namespace}/{name}/log", job_log),
        ("/api/logs/{namespace}/{name}", log),
        ("/api/redis", redis),
        ("/api/room", room),
    ):
        app.router.add_get(path, handler)
    app.router.add_post("/api/what-if", what_if)  # its files are too long for an address


def _namespaces(request: web.Request) -> tuple[str, ...]:
    """Return the namespaces that the request names, by commas; raises Unusable."""
    said = request.query.get("namespace", "")
    found = tuple(dict.fromkeys(each.strip() for each in said.split(",") if each.strip()))
    if len(found) > MOST_NAMESPACES:
        raise Unusable(f"namespace: {len(found)} names; allowed: {MOST_NAMESPACES}")
    return tuple(name_of("namespace", each) for each in found)


async def clusters(request: web.Request) -> web.StreamResponse:
    """Send Ray clusters and gangs, a line of JSON for each piece."""
    caller = request[CALLER]
    pieces = cluster_pieces(caller.client, _namespaces(request), caller.namespace)
    first = await anext(pieces)  # what cannot be read at all is an answer of its own
    stream = await streamed(request, "application/x-ndjson")
    with suppress(ConnectionError):  # the browser is gone
        await _send(stream, first)
        await _send_rest(stream, pieces)
        await stream.write_eof()
    return stream


async def _send_rest(stream: web.StreamResponse, pieces: AsyncIterator[Piece]) -> None:
    async for each in pieces:
        await _send(stream, each)


async def _send(stream: web.StreamResponse, piece: Piece) -> None:
    await stream.write(msgspec.json.encode(piece) + b"\n")


async def cluster(request: web.Request) -> web.StreamResponse:
    """Send what the page of one Ray cluster shows at once."""
    namespace, name = place_of(request)
    reader, links = request[CALLER].reader, request.app[LINKS]
    return answer(await read_cluster(reader, namespace, name, links))


async def why(request: web.Request) -> web.StreamResponse:
    """Send why a gang waits."""
    return answer(await read_why(request[CALLER].reader, *place_of(request)))


async def jobs(request: web.Request) -> web.StreamResponse:
    """Send the jobs of one namespace, or of all that the caller may list."""
    names = _namespaces(request)
    if len(names) > 1:
        raise Unusable(f"namespace: {len(names)} names; allowed: one, or none for all")
    found = await read_jobs(request[CALLER].reader, "".join(names), everywhere=False)
    return answer(found)


async def job_log(request: web.Request) -> web.StreamResponse:
    """Send in which pod and container the output of a job is."""
    found = await job_logs(request[CALLER].reader, *place_of(request))
    return answer({"pod": found[0].pod, "container": found[0].container})


async def log(request: web.Request) -> web.StreamResponse:
    """Send a log."""
    return await pass_log(request[CALLER].reader, request)


async def room(request: web.Request) -> web.StreamResponse:
    """Send the nodes with their gangs, and the queues."""
    return answer(await read_room(request[CALLER].reader, _namespaces(request)))


async def redis(request: web.Request) -> web.Response:
    """Send what the built-in Redis last reported."""
    reader = request[CALLER].reader
    return answer(await read_redis(reader, await find_home(reader)))
