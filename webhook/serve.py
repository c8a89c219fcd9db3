"""In which order does the webhook start, and in which does it stop?"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import structlog
from aiohttp import web

from kube.auth import load_access
from kube.client import Client
from kube.resources import NAMESPACES, RAY_CLUSTERS
from kube.tls import HotCertificate
from kube.watch import Reflector, Selection, settle_heap
from webhook.app import Health, Webhook
from webhook.cache import Cache, Marked, Reader
from webhook.metrics import Metrics
from webhook.settings import Settings

log = structlog.get_logger(__name__)

Work = Callable[[], Coroutine[Any, Any, None]]


class CertificateNews:
    """Puts what happens to the certificate into the log and the metrics."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def certificate_loaded(self, expires: datetime) -> None:
        """Tell of a new certificate in use."""
        self._metrics.certificate_loaded(expires)
        log.info("certificate loaded", expires=expires.isoformat())

    def certificate_refused(self, reason: str) -> None:
        """Tell of a pair that stays unused."""
        self._metrics.certificate_refused()
        log.error("certificate refused, the one before stays in use", reason=reason)


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Answer reviews until told to stop."""
    access = await load_access(_kubeconfig(settings))
    deadline = settings.lookup_deadline_seconds
    async with Client(access, user_agent="muster-webhook", timeout=deadline) as client:
        await _serve(settings, client, stop)


async def _serve(settings: Settings, client: Client, stop: asyncio.Event) -> None:
    parts = _assemble(settings, client)
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(_health_port(settings, parts.health))
        tasks = await stack.enter_async_context(_in_background(parts.work))
        stack.push_async_callback(parts.reader.close)
        await stack.enter_async_context(_review_port(settings, parts))
        log.info("serving", address=str(settings.listen_address), port=settings.listen_port)
        await _until(stop, tasks)
        parts.health.stop()
        log.info("stopping")
        # For as long as the Service may still send reviews here.
        await asyncio.sleep(settings.shutdown_delay_seconds)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What runs, put together."""

    webhook: Webhook
    health: Health
    certificate: HotCertificate
    reader: Reader
    work: tuple[Work, ...]


def _assemble(settings: Settings, client: Client) -> _Parts:
    metrics = Metrics()
    watched = _reflectors(client)
    cache = Cache(*watched, metrics)
    metrics.watch_sync(lambda: cache.synced)
    certificate = _certificate(settings, metrics)
    reader = Reader(client, settings.lookup_deadline_seconds, settings.lookups_in_flight, metrics)
    checks = (("cache", lambda: cache.synced), ("certificate", lambda: certificate.usable))
    renewal = partial(certificate.watch, settings.certificate_poll_seconds)
    return _Parts(
        Webhook(settings, cache, reader, metrics),
        Health(checks, metrics),
        certificate,
        reader,
        (*(one.run for one in watched), renewal, partial(_settle, watched)),
    )


def _certificate(settings: Settings, metrics: Metrics) -> HotCertificate:
    news = CertificateNews(metrics)
    return HotCertificate(settings.certificate_file, settings.key_file, news)


def _reflectors(client: Client) -> tuple[Reflector[Marked], Reflector[Marked]]:
    selection = Selection(metadata_only=True)
    return (
        Reflector(client, RAY_CLUSTERS, Marked, _nobody_listens, selection=selection),
        Reflector(client, NAMESPACES, Marked, _nobody_listens, selection=selection),
    )


def _nobody_listens(_: object) -> None:
    """Only the store is read."""


async def _settle(watched: Iterable[Reflector[Marked]]) -> None:
    """Spare the reviews the full collections of a heap that stays as it is."""
    for one in watched:
        await one.wait_synced()
    settle_heap()
    await asyncio.Event().wait()  # the others would take its end for theirs


async def _until(stop: asyncio.Event, tasks: list[asyncio.Task[None]]) -> None:
    """Wait for the end; a task that ends before is a bug, and comes out here."""
    stopped = asyncio.create_task(stop.wait())
    try:
        done, _ = await asyncio.wait([stopped, *tasks], return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
    for task in done - {stopped}:
        task.result()
        raise AssertionError(f"{task.get_name()} ended")


@contextlib.asynccontextmanager
async def _in_background(
    work: Iterable[Work],
) -> AsyncIterator[list[asyncio.Task[None]]]:
    tasks = [asyncio.create_task(one()) for one in work]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def _review_port(settings: Settings, parts: _Parts) -> AsyncIterator[None]:
    runner = web.AppRunner(
        parts.webhook.application(),
        access_log=None,
        keepalive_timeout=settings.keepalive_seconds,
        shutdown_timeout=settings.drain_seconds,
        # The API server does not compress, and a small body must not become a large one.
        auto_decompress=False,
    )
    async with _running(runner):
        await _listen(runner, settings, parts.certificate)
        yield


@contextlib.asynccontextmanager
async def _health_port(settings: Settings, health: Health) -> AsyncIterator[None]:
    runner = web.AppRunner(health.application(), access_log=None, shutdown_timeout=1.0)
    async with _running(runner):
        await web.TCPSite(runner, str(settings.health_address), settings.health_port).start()
        yield


@contextlib.asynccontextmanager
async def _running(runner: web.AppRunner) -> AsyncIterator[None]:
    await runner.setup()
    try:
        yield
    finally:
        await runner.cleanup()


async def _listen(runner: web.AppRunner, settings: Settings, certificate: HotCertificate) -> None:
    # A Ray cluster of a thousand workers is created over few connections, but an API server that
    # comes back opens many at once.
    site = web.TCPSite(
        runner,
        str(settings.listen_address),
        settings.listen_port,
        ssl_context=certificate.context,
        backlog=512,
    )
    await site.start()


def _kubeconfig(settings: Settings) -> str | None:
    return None if settings.kubeconfig is None else str(settings.kubeconfig)
