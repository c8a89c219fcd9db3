"""Answers reviews of Ray objects that may have to be sent to other clusters.

A review whose facts cannot be read is refused, because an object that KubeRay has begun with here
is sent nowhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import structlog
from aiohttp import web

from kube.api.errors import KubeError
from kube.objects.core import Namespace
from webhook.admission_review import BadReview, Deny, denied, patched, untouched
from webhook.app import JSON, body_of, refusal_of
from webhook.dispatch.judging import Judged, concerns_queues, judge, says_all_itself, without_note
from webhook.dispatch.review import DispatchReview, read_dispatch_review
from webhook.hold_app import Reads
from webhook.holding import NamespaceRead, Queues
from webhook.metrics import Metrics
from webhook.settings import Settings

log = structlog.get_logger(__name__)

UNAVAILABLE: Final = 503


class DispatchWebhook:
    """Answers these reviews; `queues` gives None while they are not known."""

    def __init__(
        self,
        settings: Settings,
        queues: Callable[[], Queues | None],
        reader: Reads,
        metrics: Metrics,
    ) -> None:
        self._settings = settings
        self._queues = queues
        self._reader = reader
        self._metrics = metrics

    async def dispatch(self, request: web.Request) -> web.Response:
        """Answer one request."""
        with self._metrics.seconds.time():
            try:
                return await self._dispatch(request)
            except Exception:
                log.exception("review failed")
                self._metrics.reviews["failed"].inc()
                return refusal_of(500, "internal error, see the webhook's log")

    async def _dispatch(self, request: web.Request) -> web.Response:
        body = await body_of(request, self._settings)
        review = body if isinstance(body, BadReview) else read_dispatch_review(body)
        if isinstance(review, BadReview):
            self._metrics.reviews["refused"].inc()
            return refusal_of(review.status, review.message)
        result, answered = _answer_to(review, await self._judged(review))
        self._metrics.reviews[result].inc()
        return web.Response(body=answered, content_type=JSON)

    async def _judged(self, review: DispatchReview) -> Judged:
        queues, created = self._queues(), review.created
        if queues is None:
            return Deny(UNAVAILABLE, "the GangQueues are not known yet; try again")
        if created is None:
            return []
        if not concerns_queues(created, queues):
            return without_note(review.kind, created)
        if says_all_itself(created, queues):
            return judge(review, created, {}, queues)
        try:
            async with asyncio.timeout(self._settings.lookup_deadline_seconds):
                found = await self._reader.read(NamespaceRead(review.namespace))
        except (KubeError, TimeoutError) as error:
            return Deny(UNAVAILABLE, f"namespace {review.namespace} cannot be read: {error}")
        labels = found.metadata.labels if isinstance(found, Namespace) else {}
        return judge(review, created, labels, queues)


def _answer_to(review: DispatchReview, judged: Judged) -> tuple[str, bytes]:
    """Return what became of a review, as it is counted, and the answer."""
    if isinstance(judged, Deny):
        log.warning("review denied", uid=review.uid, reason=judged.message)
        return "denied", denied(review.uid, judged)
    if judged:
        result = "untouched" if judged[0]["op"] == "remove" else "sent_away"
        return result, patched(review.uid, judged)
    return "untouched", untouched(review.uid)
