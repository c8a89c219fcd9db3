"""Answers reviews of RayClusters over HTTPS: suspends them until admission, or leaves them alone.

It refuses nothing and never waits for long: a RayCluster that is not held has its pods gated, as if
this review did not exist. The creator of a RayCluster is warned of faults in its group annotations.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Protocol

import structlog
from aiohttp import web

from kube.api.client import Client
from kube.api.errors import KubeError, NotFound
from kube.api.resources import GANG_QUEUES, NAMESPACES, RAY_JOBS, RESOURCE_QUOTAS
from kube.api.watch.pace import Selection
from kube.api.watch.reflector import Reflector
from kube.objects.admission import ResourceQuota
from kube.objects.core import Namespace
from kube.objects.queues.queue import GangQueue
from kube.objects.ray import RayJob
from kube.ray.wrapped_by import unwrapped, wrapped_by
from webhook.admission_review import BadReview, patched, untouched
from webhook.app import JSON, body_of, refusal_of
from webhook.holding import (
    Hold,
    HoldReview,
    Leave,
    NamespaceRead,
    Queues,
    Read,
    decide_hold,
    queues_of,
    read_hold_review,
    warnings_of,
)
from webhook.metrics import Metrics
from webhook.quota_room import lacks_room
from webhook.settings import Settings

log = structlog.get_logger(__name__)

LEFT_ALONE = Leave([])


class WatchedQueues:
    """What the GangQueues say of RayClusters that are created, worked out where one changed.

    Where they are not known yet, none of them has anything held.
    """

    def __init__(self, client: Client) -> None:
        selection = Selection(may_be_absent=True)
        self._reflector = Reflector(
            client, GANG_QUEUES, GangQueue, self._changed, selection=selection
        )
        self._queues: Queues | None = None

    async def run(self) -> None:
        """Watch them, for ever."""
        await self._reflector.run()

    def now(self) -> Queues:
        """Return what they say now."""
        if self._queues is None:
            self._queues = queues_of(self._reflector.store.values())
        return self._queues

    def known(self) -> Queues | None:
        """Return the same; None while they are not known."""
        return self.now() if self._reflector.synced else None

    def _changed(self, _: object) -> None:
        self._queues = None


class WatchedQuotas:
    """The ResourceQuotas of all namespaces; none where they are not known yet."""

    def __init__(self, client: Client) -> None:
        self._reflector = Reflector(client, RESOURCE_QUOTAS, ResourceQuota, _nobody_listens)

    async def run(self) -> None:
        """Watch them, for ever."""
        await self._reflector.run()

    def of(self, namespace: str) -> Collection[ResourceQuota]:
        """Return those of a namespace, as they are now."""
        every = self._reflector.store.values()
        return [each for each in every if each.metadata.namespace == namespace]


def _nobody_listens(_: object) -> None:
    """Only the store is read."""


class OwnerReader:
    """Reads namespaces and RayJobs from the API server."""

    def __init__(self, client: Client, deadline: float) -> None:
        self._client = client
        self._deadline = deadline

    async def read(self, wanted: Read) -> Namespace | RayJob | None:
        """Read an object; None where there is none."""
        try:
            if isinstance(wanted, NamespaceRead):
                path = NAMESPACES.path(name=wanted.name)
                return await self._client.get(path, as_=Namespace, timeout=self._deadline)
            path = RAY_JOBS.path(wanted.namespace, wanted.name)
            return await self._client.get(path, as_=RayJob, timeout=self._deadline)
        except NotFound:
            return None


class Reads(Protocol):
    """Reads what decides beside the RayCluster."""

    async def read(self, wanted: Read) -> Namespace | RayJob | None:
        """Read an object; None where there is none."""


class HoldWebhook:
    """Answers reviews of RayClusters."""

    def __init__(
        self,
        settings: Settings,
        queues: Callable[[], Queues],
        quotas: Callable[[str], Collection[ResourceQuota]],
        reader: Reads,
        metrics: Metrics,
    ) -> None:
        self._settings = settings
        self._wrapper_of = unwrapped if settings.app_wrappers == "None" else wrapped_by
        self._queues = queues
        self._quotas = quotas
        self._reader = reader
        self._metrics = metrics

    async def hold(self, request: web.Request) -> web.Response:
        """Answer one request."""
        with self._metrics.seconds.time():
            try:
                return await self._hold(request)
            except Exception:
                log.exception("review failed")
                self._metrics.reviews["failed"].inc()
                return refusal_of(500, "internal error, see the webhook's log")

    async def _hold(self, request: web.Request) -> web.Response:
        body = await body_of(request, self._settings)
        review = body if isinstance(body, BadReview) else read_hold_review(body)
        if isinstance(review, BadReview):
            self._metrics.reviews["refused"].inc()
            return refusal_of(review.status, review.message)
        decision = await self._decided(review)
        self._metrics.reviews["held" if isinstance(decision, Hold) else "untouched"].inc()
        patch, told = decision.patch, warnings_of(review)
        answered = patched(review.uid, patch, told) if patch else untouched(review.uid, told)
        return web.Response(body=answered, content_type=JSON)

    async def _decided(self, review: HoldReview) -> Hold | Leave:
        try:
            async with asyncio.timeout(self._settings.lookup_deadline_seconds):
                return await self._asked(review)
        except (KubeError, TimeoutError) as error:
            log.warning("not held", namespace=review.namespace, error=str(error))
            return LEFT_ALONE

    async def _asked(self, review: HoldReview) -> Hold | Leave:
        queues, was_read = self._queues(), dict[Read, Namespace | RayJob | None]()
        cluster = review.cluster
        short = cluster is not None and lacks_room(cluster, self._quotas(review.namespace))
        while True:
            decision = decide_hold(review, queues, was_read, self._wrapper_of, lacks_quota=short)
            if isinstance(decision, Hold | Leave):
                return decision
            was_read[decision] = await self._reader.read(decision)
