"""Answers reviews of AppWrappers over HTTPS: notes the creator, and checks the creator's rights.

Another account creates the wrapped objects later, so the API server is asked now what the user may
create. Without its answer in time the AppWrapper is refused: the client tries again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final, Protocol

import structlog
from aiohttp import web

from kube.api.access import Access, to_create, to_keep
from kube.api.errors import KubeError
from kube.api.kinds import Kind, Served
from kube.objects import names
from kube.objects.user import User, service_account
from webhook.admission_review import ALLOW, Allow, BadReview, Deny, denied, patched, untouched
from webhook.app import JSON, body_of, refusal_of
from webhook.metrics import Metrics
from webhook.own_rights import OwnRights
from webhook.settings import Settings
from webhook.wrapping import Objects, WrappedObject, WrapReview, judge, note, read_wrap_review

log = structlog.get_logger(__name__)

REVIEWS_AT_ONCE: Final = 16
"""Questions about rights that are under way, of all AppWrappers together."""

_NEEDED: Final = frozenset(("create", "get", "delete"))
_ALLOWED: Final = (
    "allowed: kinds that Muster may create, get and delete by a ClusterRole with the label "
    f'{names.WRAPPED_OBJECTS}: "true"'
)
_SAID = 5
_FORBIDDEN, _UNPROCESSABLE, _UNAVAILABLE = 403, 422, 503


class FindsKinds(Protocol):
    """Finds the resource of a kind."""

    async def find(self, kind: Kind) -> Served | None:
        """Return what serves a kind, None where nothing does."""


IsAllowed = Callable[[User, Access], Awaitable[bool]]


class WrapWebhook:
    """Answers reviews of AppWrappers."""

    def __init__(
        self, settings: Settings, kinds: FindsKinds, is_allowed: IsAllowed, metrics: Metrics
    ) -> None:
        self._settings = settings
        self._rights = _Rights(kinds, is_allowed, service_account(settings.wrapper_account))
        self._metrics = metrics

    async def note(self, request: web.Request) -> web.Response:
        """Answer one request of the rule that may change an AppWrapper."""
        return await self._answered(request, self._note)

    async def judge(self, request: web.Request) -> web.Response:
        """Answer one request of the rule that judges what is stored."""
        return await self._answered(request, self._judge)

    async def _answered(
        self, request: web.Request, decide: Callable[[WrapReview], Awaitable[bytes]]
    ) -> web.Response:
        with self._metrics.seconds.time():
            try:
                body = await body_of(request, self._settings)
                review = body if isinstance(body, BadReview) else read_wrap_review(body)
                if isinstance(review, BadReview):
                    self._metrics.reviews["refused"].inc()
                    return refusal_of(review.status, review.message)
                return web.Response(body=await decide(review), content_type=JSON)
            except Exception:
                log.exception("review failed")
                self._metrics.reviews["failed"].inc()
                return refusal_of(500, "internal error, see the webhook's log")

    async def _note(self, review: WrapReview) -> bytes:
        patch = note(review, self._settings.managed_by)
        if isinstance(patch, Deny):
            return self._denied(review, patch)
        self._metrics.reviews["noted" if patch else "untouched"].inc()
        return patched(review.uid, patch) if patch else untouched(review.uid)

    async def _judge(self, review: WrapReview) -> bytes:
        judged = judge(review, self._settings.managed_by, self._settings.left_alone)
        if isinstance(judged, Objects):
            judged = await self._in_time(judged)
        if isinstance(judged, Deny):
            return self._denied(review, judged)
        self._metrics.reviews["untouched"].inc()
        return untouched(review.uid)

    async def _in_time(self, objects: Objects) -> Allow | Deny:
        seconds = self._settings.rights_deadline_seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._rights.judge(objects)
        except TimeoutError:
            return _unknown(f"no answer within {seconds:g} s")
        except KubeError as error:
            return _unknown(str(error))

    def _denied(self, review: WrapReview, deny: Deny) -> bytes:
        log.warning("review denied", uid=review.uid, reason=deny.message)
        self._metrics.reviews["denied"].inc()
        return denied(review.uid, deny)


class _Rights:
    """Finds out whether a user may create wrapped objects, and whether `creator` can do it."""

    def __init__(self, kinds: FindsKinds, is_allowed: IsAllowed, creator: User) -> None:
        self._kinds = kinds
        self._is_allowed = is_allowed
        self._own = OwnRights(creator, self._ask)
        self._creator = creator
        self._free = asyncio.Semaphore(REVIEWS_AT_ONCE)

    async def judge(self, objects: Objects) -> Allow | Deny:
        """Judge the kinds, then each right that is needed, once."""
        needed: dict[Access, str] = {}
        ours: dict[Access, str] = {}
        faults = []
        for each in objects.found:
            served = await self._kinds.find(each.kind)
            if served is None or not _may_be_wrapped(served):
                faults.append(_fault(each, served))
            else:
                for access in to_create(served, objects.namespace, each.content):
                    needed.setdefault(access, each.where)
                for access in to_keep(served, objects.namespace):
                    ours.setdefault(access, each.where)
        if faults:
            return Deny(_UNPROCESSABLE, _joined(faults))
        return await self._refused(objects.user, needed, ours)

    async def _refused(
        self, user: User, needed: dict[Access, str], ours: dict[Access, str]
    ) -> Allow | Deny:
        if said := await _lacking(partial(self._ask, user), needed):
            return Deny(_FORBIDDEN, f'user "{user.username}" cannot wrap this: {said}')
        if said := await _lacking(self._own.holds, ours):
            account = self._creator.username
            return Deny(_FORBIDDEN, f'"{account}" cannot create this: {said}; {_ALLOWED}')
        return ALLOW

    async def _ask(self, user: User, access: Access) -> bool:
        async with self._free:
            return await self._is_allowed(user, access)


async def _lacking(holds: Callable[[Access], Awaitable[bool]], needed: dict[Access, str]) -> str:
    """Say which rights are not held; empty where all are."""
    answers = await asyncio.gather(*(holds(access) for access in needed))
    lacking = [access for access, held in zip(needed, answers, strict=True) if not held]
    return _joined(f"{needed[access]} needs the right to {access}" for access in lacking)


def _may_be_wrapped(served: Served) -> bool:
    return served.resource.namespaced and served.verbs >= _NEEDED


def _fault(found: WrappedObject, served: Served | None) -> str:
    if served is None:
        allowed = "a kind that the API server serves"
    elif not served.resource.namespaced:
        allowed = "a kind whose objects are in a namespace"
    else:
        allowed = "a kind whose objects can be created, read and deleted"
    return f'{found.where}: "{found.kind}" is not valid; allowed: {allowed}'


def _joined(said: Iterable[str]) -> str:
    found = list(said)
    more = len(found) - _SAID
    text = "; ".join(found[:_SAID])
    return f"{text}; and {more} more" if more > 0 else text


def _unknown(reason: str) -> Deny:
    return Deny(
        _UNAVAILABLE, f"Muster cannot tell whether the user may create what is wrapped: {reason}"
    )
