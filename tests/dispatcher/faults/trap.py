"""Stops the world at one request: it is carried out and nobody hears of it, or it comes late."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from http import HTTPStatus

from aiohttp import web

from tests.faults.proxied import CutError, Exchange, Fault, Match
from tests.faults.proxy import Proxy

_REFUSED = {HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY}


class Claim:
    """What the first of several may have."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def take(self) -> bool:
        """Take it; says whether it was there."""
        return self._lock.acquire(blocking=False)


class Catch(Fault):
    """Catches one request of those that match, at some point of its way."""

    def __init__(self, match: Match, claim: Claim) -> None:
        super().__init__(match)
        self.caught = False
        self._claim = claim

    async def _stop(self) -> None:
        """Hold it until the fault is lifted, if it is the first."""
        if self._claim.take():
            self.caught = True
            await self._lifted.wait()


class Unanswered(Catch):
    """The request is carried out; its client waits, and then loses the connection."""

    async def after(self, exchange: Exchange, /) -> None:
        """Hold the answer; that of a refused write is none."""
        if exchange.status in _REFUSED:
            return
        await self._stop()
        if self.caught:
            raise CutError


class Late(Catch):
    """The request is carried out when the fault is lifted, also for a client that is no more."""

    async def before(self) -> web.Response | None:
        """Hold the request."""
        await self._stop()
        return None


class Trap:
    """One request, on any of some proxies."""

    def __init__(self, kind: type[Catch], proxies: Mapping[str, Proxy], match: Match) -> None:
        claim = Claim()
        self._set = {name: (each, each.begin(kind(match, claim))) for name, each in proxies.items()}

    @property
    def is_set_off(self) -> bool:
        """Whether it has caught its request."""
        return any(catch.caught for _, catch in self._set.values())

    @property
    def where(self) -> str:
        """The name of the proxy that has caught the request."""
        return next((name for name, (_, catch) in self._set.items() if catch.caught), "")

    def open(self) -> None:
        """Let the request go, and catch none any more."""
        for proxy, catch in self._set.values():
            if catch.active:
                proxy.lift(catch)
