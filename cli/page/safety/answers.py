"""Answers as JSON; a fault is one line, with the HTTP status that says whose fault it is."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from cli.endings import Absent, Ending, NotAllowed, NotServed, Outdated, StandsInTheWay, Unusable
from kube.api.errors import ApiError, KubeError, Timeout

_BAD_GATEWAY: Final = 502
_STATUS: Final[Mapping[type[Ending], int]] = {
    Unusable: 400,
    NotAllowed: 403,
    Absent: 404,
    NotServed: 404,
    Outdated: 409,
    StandsInTheWay: 422,
}


class Refused(Exception):  # noqa: N818 - an answer, not a fault of ours
    """The page itself refuses; `needs` is what the person has to give first."""

    def __init__(self, status: int, text: str, needs: str = "") -> None:
        self.status = status
        self.needs = needs
        super().__init__(text)


def answer(found: object, status: int = 200) -> web.Response:
    """Return something as JSON."""
    return web.Response(
        body=msgspec.json.encode(found), status=status, content_type="application/json"
    )


def fault(status: int, text: str, needs: str = "") -> web.Response:
    """Return why something was not done."""
    said: dict[str, Any] = {"fault": " ".join(text.split())}
    found = answer(said | ({"needs": needs} if needs else {}), status)
    if status == web.HTTPUnauthorized.status_code:
        found.headers["WWW-Authenticate"] = "Bearer"
    return found


def status_of(error: BaseException | None) -> int:
    """Return the status that fits: the API server's own, where it answered."""
    while error is not None:
        match error:
            case ApiError(status=status):
                return status if status < web.HTTPInternalServerError.status_code else _BAD_GATEWAY
            case Timeout():
                return 504
            case Ending() if type(error) in _STATUS and error.__cause__ is None:
                return _STATUS[type(error)]
        error = error.__cause__
    return _BAD_GATEWAY


def say_faults(needs: str) -> Middleware:
    """Return the middleware that answers faults; a 401 of the API server asks for `needs`."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except Refused as error:
            return fault(error.status, str(error), error.needs)
        except (Ending, KubeError) as error:
            status = status_of(error)
            return fault(status, str(error), needs if status == _UNAUTHORIZED else "")

    return middleware


_UNAUTHORIZED: Final = web.HTTPUnauthorized.status_code
