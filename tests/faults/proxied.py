"""What a proxy does to the requests of a client: hold, refuse, delay, silence or cut them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aiohttp import web


@dataclass(frozen=True)
class Call:
    """One request of the client."""

    method: str
    path: str
    """With its query."""
    body: bytes

    @property
    def is_write(self) -> bool:
        """Whether it changes something."""
        return self.method != "GET"

    @property
    def content(self) -> Any:
        """The body as JSON; None where there is none."""
        return json.loads(self.body) if self.body else None


@dataclass
class Exchange:
    """A request and what came of it."""

    call: Call
    status: int = 0
    """What was answered; 0 while nothing is, or where the connection was cut."""
    answer: str = ""
    """The answer to a write."""

    @property
    def is_over(self) -> bool:
        """Whether the API server (or a fault in its place) has answered."""
        return self.status != 0


Match = Callable[[Call], bool]


def every(_: Call) -> bool:
    """Match all requests."""
    return True


def reads(call: Call) -> bool:
    """Match lists, watches and gets."""
    return not call.is_write


class CutError(Exception):
    """The client's connection is to be cut."""


class Fault:
    """What happens to the requests that match, until it is lifted."""

    def __init__(self, match: Match) -> None:
        self.met: list[Exchange] = []
        self._match = match
        self._lifted = asyncio.Event()

    @property
    def active(self) -> bool:
        """Whether it was not lifted yet."""
        return not self._lifted.is_set()

    def concerns(self, call: Call) -> bool:
        """Whether the request meets the fault."""
        return self.active and self._match(call)

    async def before(self) -> web.Response | None:
        """Happen before the request is sent on; a response is given in place of the server's."""
        return None

    async def after(self, _: Exchange, /) -> None:
        """Happen once the API server has answered."""

    async def during(self, exchange: Exchange, /) -> None:
        """Happen before each piece of a stream is passed on."""

    def end(self) -> None:
        """Lift it; called in the proxy's own thread."""
        self._lifted.set()


class Hold(Fault):
    """Requests wait in the proxy, and are delivered when the fault is lifted."""

    async def before(self) -> web.Response | None:
        """Wait."""
        await self._lifted.wait()
        return None


class Refusal(Fault):
    """Requests are answered by an error, all or a share of them; streams are left alone."""

    def __init__(self, match: Match, status: int, share: float, retry_after: int) -> None:
        super().__init__(match)
        self._status = status
        self._share = share
        self._retry_after = retry_after
        self._chance = random.Random(status)

    async def before(self) -> web.Response | None:
        """Say no, as an API server says it."""
        if self._chance.random() >= self._share:
            return None
        headers = {"Retry-After": str(self._retry_after)} if self._retry_after else {}
        said = {"kind": "Status", "apiVersion": "v1", "code": self._status, "message": "a fault"}
        return web.json_response(said, status=self._status, headers=headers)


class Delay(Fault):
    """Requests are sent on late, and so are the pieces of streams."""

    def __init__(self, match: Match, seconds: float) -> None:
        super().__init__(match)
        self._seconds = seconds

    async def before(self) -> web.Response | None:
        """Wait."""
        await self._wait()
        return None

    async def during(self, _: Exchange, /) -> None:
        """Wait."""
        await self._wait()

    async def _wait(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._lifted.wait(), self._seconds)


class Silence(Fault):
    """Requests are taken and never answered nor sent on, streams stand still; nothing is closed.

    When it is lifted the streams go on, and the connections of the requests are cut.
    """

    async def before(self) -> web.Response | None:
        """Let the client wait."""
        await self._lifted.wait()
        raise CutError

    async def during(self, _: Exchange, /) -> None:
        """Let the client wait for the rest."""
        await self._lifted.wait()


class Frost(Fault):
    """Streams that are open already stand still, as if their peer had died; new ones flow."""

    def __init__(self, match: Match, opened: list[Exchange]) -> None:
        super().__init__(match)
        self._opened = opened

    async def during(self, exchange: Exchange, /) -> None:
        """Let the client of an old stream wait for the rest."""
        if any(exchange is each for each in self._opened):
            await self._lifted.wait()


class Cut(Fault):
    """Connections are cut, those of streams that are open already too."""

    async def before(self) -> web.Response | None:
        """Cut."""
        raise CutError


class LostAnswer(Fault):
    """Requests are carried out, and then the connection is cut."""

    async def after(self, _: Exchange, /) -> None:
        """Cut."""
        raise CutError
