"""Answers reviews of Ray objects that are labelled for fault tolerance of their heads.

A RayCluster gets the options that say where its head keeps its state; RayJobs and RayServices are
checked. The review reads and remembers nothing: the program `headstate` sees to the user in Redis.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import structlog
from aiohttp import web

from headstate.options import FIELD, RayObject, Refused, Written, judge, read_object
from webhook.admission_review import (
    BadReview,
    Deny,
    Request,
    denied,
    patched,
    read_request,
    untouched,
)
from webhook.app import JSON, body_of, refusal_of
from webhook.metrics import Metrics
from webhook.settings import Settings

log = structlog.get_logger(__name__)

_KINDS: Final = ("RayCluster", "RayJob", "RayService")
_UNPROCESSABLE: Final = 422
_TOKEN_BYTES: Final = 10


@dataclass(frozen=True, slots=True)
class HeadReview:
    """A review as far as it matters here; `new` is None for what is none of the three kinds."""

    uid: str
    kind: str = ""
    new: RayObject | None = None
    old: RayObject | None = None


def read_head_review(body: bytes | bytearray) -> HeadReview | BadReview:
    """Read what the API server sent about a Ray object."""
    return read_request(body, _review)


def _review(request: Request) -> HeadReview | BadReview:
    kind = request.kind
    ours = kind.group == "ray.io" and kind.kind in _KINDS
    if not ours or request.sub_resource or request.operation not in ("CREATE", "UPDATE"):
        return HeadReview(request.uid)
    try:
        old = read_object(request.old_object) if request.operation == "UPDATE" else None
        return HeadReview(request.uid, kind.kind, read_object(request.object), old)
    except msgspec.ValidationError as error:
        return BadReview(400, f"not a {kind.kind} in request.object: {error}")


def answer_to(review: HeadReview, address: str, token: str) -> tuple[str, bytes]:
    """Return what became of a review, as it is counted, and the answer."""
    if review.new is None:
        return "untouched", untouched(review.uid)
    judged = judge(review.kind, review.new, review.old, address, token)
    if isinstance(judged, Refused):
        log.warning("review denied", uid=review.uid, reason=judged.message)
        return "denied", denied(review.uid, Deny(_UNPROCESSABLE, judged.message))
    if isinstance(judged, Written):
        step: dict[str, Any] = {"op": "add", "path": f"/spec/{FIELD}", "value": judged.options}
        return "protected", patched(review.uid, [step])
    return "untouched", untouched(review.uid)


class HeadStateWebhook:
    """Answers these reviews."""

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics

    async def protect(self, request: web.Request) -> web.Response:
        """Answer one request."""
        with self._metrics.seconds.time():
            try:
                body = await body_of(request, self._settings)
                review = body if isinstance(body, BadReview) else read_head_review(body)
                if isinstance(review, BadReview):
                    self._metrics.reviews["refused"].inc()
                    return refusal_of(review.status, review.message)
                token = secrets.token_hex(_TOKEN_BYTES)
                result, answered = answer_to(review, self._settings.redis_address, token)
                self._metrics.reviews[result].inc()
                return web.Response(body=answered, content_type=JSON)
            except Exception:
                log.exception("review failed")
                self._metrics.reviews["failed"].inc()
                return refusal_of(500, "internal error, see the webhook's log")
