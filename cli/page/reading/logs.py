"""Passes the log of a container on piece by piece, whatever its size: nothing of it is kept."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from aiohttp import web

from cli.endings import Ending, Unusable
from cli.page.reading.answers import name_of, place_of, streamed
from cli.read.reader import Reader

MOST_LINES: Final = 10_000_000
TAIL: Final = "1000"
"""The lines from the end where none is asked for; `all` asks for the whole log."""


def log_params(query: Mapping[str, str]) -> dict[str, str]:
    """Return what the API server is asked; raises Unusable. Nothing else is passed on."""
    found = {"container": name_of("container", query.get("container", ""))}
    tail = query.get("tail", TAIL)
    if tail != "all":
        if not (tail.isascii() and tail.isdigit() and int(tail) <= MOST_LINES):
            raise Unusable(f"tail: {tail[:100]!a}; allowed: all, or 0 to {MOST_LINES}")
        found["tailLines"] = tail
    for each in ("follow", "previous", "timestamps"):
        if query.get(each) == "true":
            found[each] = "true"
    return found


async def pass_log(reader: Reader, request: web.Request) -> web.StreamResponse:
    """Answer with a log. One that breaks off ends with a line that says why.

    The next piece is read when the browser has taken the one before.
    """
    namespace, pod = place_of(request)
    params = log_params(request.query)
    async with reader.log(namespace, pod, params) as pieces:
        stream = await streamed(request, "text/plain; charset=utf-8")
        with suppress(ConnectionError):  # the browser is gone
            try:
                async for piece in pieces:
                    await stream.write(piece)
            except Ending as ending:
                await stream.write(f"\n{ending}\n".encode())
            await stream.write_eof()
    return stream
