"""Answers reviews over HTTPS, within their deadline.

A review is answered with an AdmissionReview. A request that is no review gets a 4xx and a JSON
message. A review whose facts are not known before the deadline is refused, never allowed: KubeRay
tries again.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

import orjson
import structlog
from aiohttp import web

from runtime.http_server import BadBody, read_body
from webhook.admission_review import Allow, BadReview, Deny
from webhook.cache import Found, Unknown
from webhook.metrics import Metrics
from webhook.owners import Gone, Key, Lookup, Marks
from webhook.review import (
    Answer,
    Ask,
    Gate,
    Review,
    answer,
    decide,
    read_review,
    without_field_owners,
)
from webhook.settings import Settings

log = structlog.get_logger(__name__)

JSON = "application/json"
_RESULTS: dict[type[Answer], str] = {Allow: "untouched", Gate: "gated", Deny: "denied"}


class Reads(Protocol):
    """Reads what the cache does not hold."""

    async def read(self, key: Key) -> Found:
        """Read one object from the API server."""


class _Answers:
    """What was read for one review.

    The cache is not looked at any more: it was behind for one object, so it may be for the other
    (a namespace labelled just before the Ray cluster in it was made).
    """

    def __init__(self) -> None:
        self._read: dict[Key, Marks | Gone] = {}

    def find(self, key: Key) -> Marks | Gone | None:
        return self._read.get(key)

    def note(self, key: Key, found: Marks | Gone) -> None:
        self._read[key] = found


class Webhook:
    """Answers reviews."""

    def __init__(self, settings: Settings, lookup: Lookup, reader: Reads, metrics: Metrics) -> None:
        self._settings = settings
        self._lookup = lookup
        self._reader = reader
        self._metrics = metrics

    def application(self) -> web.Application:
        """Return what listens for the API server."""
        application = web.Application()
        application.router.add_post("/mutate", self.mutate)
        return application

    async def mutate(self, request: web.Request) -> web.Response:
        """Answer one request."""
        with self._metrics.seconds.time():
            try:
                return await self._mutate(request)
            except Exception:
                log.exception("review failed")
                return self._refusal("failed", 500, "internal error, see the webhook's log")

    async def _mutate(self, request: web.Request) -> web.Response:
        body = await body_of(request, self._settings)
        review = body if isinstance(body, BadReview) else read_review(body)
        if isinstance(review, BadReview):
            return self._refusal("refused", review.status, review.message)
        decision = await self._decided(review)
        if isinstance(decision, Deny):
            log.warning("review denied", uid=review.uid, reason=decision.message)
        self._metrics.reviews[_RESULTS[type(decision)]].inc()
        if not self._settings.track_field_owners:
            decision = without_field_owners(review, decision)
        return web.Response(body=answer(review, decision), content_type=JSON)

    def _refusal(self, result: str, status: int, message: str) -> web.Response:
        self._metrics.reviews[result].inc()
        return refusal_of(status, message)

    async def _decided(self, review: Review) -> Answer:
        decision = decide(review, self._lookup)
        if not isinstance(decision, Ask):
            return decision
        seconds = self._settings.lookup_deadline_seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._asked(review, decision.key)
        except TimeoutError:
            return _undecided(decision.key, f"no answer within {seconds:g} s")

    async def _asked(self, review: Review, key: Key) -> Answer:
        answers = _Answers()
        while True:
            found = await self._reader.read(key)
            if isinstance(found, Unknown):
                return _undecided(key, found.reason)
            answers.note(key, found)
            decision = decide(review, answers)
            if not isinstance(decision, Ask):
                return decision
            key = decision.key


async def body_of(request: web.Request, settings: Settings) -> bytearray | BadReview:
    """Read the body of a review, within its limits."""
    limit, seconds = settings.body_limit_bytes, settings.read_timeout_seconds
    if request.content_type != JSON:
        return BadReview(415, f"Content-Type is {request.content_type!r}, allowed is {JSON}")
    try:
        return await read_body(request, limit, seconds)
    except BadBody as error:
        return BadReview(error.status, str(error))


def refusal_of(status: int, message: str) -> web.Response:
    """Return the answer to what is no review, or cannot be answered."""
    body = orjson.dumps({"code": status, "message": message})
    return web.Response(status=status, body=body, content_type=JSON)


def _undecided(key: Key, reason: str) -> Deny:
    return Deny(503, f"Muster cannot tell whether the pod belongs to a gang: {key}: {reason}")
