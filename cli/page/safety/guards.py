"""Refuses requests that Muster's page never sends: writes of other sites, unknown host names.

A write has a header that no form and no other site can send, and names an origin that is ours. On a
laptop that header is the secret of this start, for every user of the machine reaches 127.0.0.1.
"""

import hmac
import secrets
from collections.abc import Collection
from typing import Final

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

from cli.page.safety.answers import Refused

ADDRESS: Final = "127.0.0.1"
"""Where the page of a laptop is."""

WRITE: Final = "X-Muster-Write"
"""The header of each write; its value is the secret, where there is one."""

HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

_READS: Final = (hdrs.METH_GET, hdrs.METH_HEAD)


def new_secret() -> str:
    """Return a secret for one start."""
    return secrets.token_urlsafe(32)


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Have each answer say what a browser may make of it."""
    response.headers.update(HEADERS)


@web.middleware
async def of_this_machine(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse a name that is not this machine's: a page of others could have it lead here."""
    name = request.host.rpartition(":")[0] if ":" in request.host else request.host
    if name not in (ADDRESS, "localhost"):
        raise Refused(421, f"open it as http://{ADDRESS}:PORT/")
    return await handler(request)


def only_our_writes(scheme: str, secret: str, origins: Collection[str] = ()) -> Middleware:
    """Return the middleware that refuses writes which no page of ours sends.

    `origins` are names that a proxy in front has. An empty secret is none: any value will do.
    """

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method not in _READS:
            _check_site(request, {f"{scheme}://{request.host}", *origins})
            _check_write(request, secret)
        return await handler(request)

    return middleware


def _check_site(request: web.Request, ours: Collection[str]) -> None:
    if request.headers.getall(hdrs.ORIGIN, []) not in [[each] for each in ours]:
        raise Refused(403, "this write comes from no page of Muster")
    if request.headers.get("Sec-Fetch-Site", "same-origin") != "same-origin":
        raise Refused(403, "this write comes from another site")
    if request.content_type != "application/json":
        raise Refused(415, "allowed: application/json")


def _check_write(request: web.Request, secret: str) -> None:
    said = request.headers.get(WRITE, "")
    if not said:
        raise Refused(403, f"a write needs the header {WRITE}", needs=secret and "secret")
    if secret and not hmac.compare_digest(said.encode(), secret.encode()):
        raise Refused(403, "the secret is of another start of muster dashboard", needs="secret")
