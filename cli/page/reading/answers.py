"""Reads names out of requests, and begins answers that are sent piece by piece."""

import re
from typing import Final

from aiohttp import web

from cli.endings import Unusable

_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


def name_of(field: str, value: str) -> str:
    """Return a name as Kubernetes allows it; raises Unusable. Nothing else may get into a path."""
    if _NAME.fullmatch(value) is None or ".." in value:
        shown = ascii(value[:100])
        raise Unusable(
            f"{field}: {shown}; allowed: at most 253 of a to z, 0 to 9, '-' and '.', the first and "
            "the last a letter or digit"
        )
    return value


def place_of(request: web.Request) -> tuple[str, str]:
    """Return the namespace and the name in the path of a request; raises Unusable."""
    found = request.match_info
    return name_of("namespace", found["namespace"]), name_of("name", found["name"])


async def streamed(request: web.Request, content_type: str) -> web.StreamResponse:
    """Begin an answer that is sent piece by piece, and that no proxy is to gather."""
    headers = {"Content-Type": content_type, "X-Accel-Buffering": "no"}
    stream = web.StreamResponse(headers=headers)
    await stream.prepare(request)
    return stream
