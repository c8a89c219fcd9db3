"""Starts and stops the webhook, in order."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

import structlog
from aiohttp import web

from kube.api.access import is_allowed
from kube.api.client import Client
from kube.api.credentials import load_access
from kube.api.kinds import Kinds
from kube.api.resources import NAMESPACES, RAY_CLUSTERS
from kube.api.watch.pace import Selection
from kube.api.watch.reflector import Reflector
from runtime.connections import ConnectionMetrics
from runtime.http_server import CertificateNews, Health, Port, Work, in_background, listening, until
from runtime.slicing import settle_heap
from runtime.tls import HotCertificate
from webhook.app import Webhook
from webhook.cache import WRAPPERS, Cache, Marked, Reader
from webhook.dispatch.app import DispatchWebhook
from webhook.head_state import HeadStateWebhook
from webhook.hold_app import HoldWebhook, OwnerReader, WatchedQueues, WatchedQuotas
from webhook.metrics import Metrics
from webhook.settings import PREFIX, Settings
from webhook.wrap_app import WrapWebhook

log = structlog.get_logger(__name__)

BODIES = 4
"""So many bodies of the most that is allowed may be there at once; of usual ones hundreds."""


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Answer reviews until told to stop."""
    access = await load_access(_kubeconfig(settings), setting=f"{PREFIX}KUBECONFIG")
    deadline = settings.lookup_deadline_seconds
    async with Client(access, user_agent="muster-webhook", timeout=deadline) as client:
        await _serve(settings, client, stop)


async def _serve(settings: Settings, client: Client, stop: asyncio.Event) -> None:
    parts = _assemble(settings, client)
    async with contextlib.AsyncExitStack() as stack:
        address, connections = str(settings.health_address), parts.connections
        health = Port("health", address, settings.health_port, limits=settings.limits)
        await stack.enter_async_context(listening(parts.health.application(), health, connections))
        tasks = await stack.enter_async_context(in_background(parts.work))
        stack.push_async_callback(parts.reader.close)
        port = _review_port(settings, parts)
        reviews = listening(_application(parts), port, connections)
        await stack.enter_async_context(reviews)
        log.info("serving", address=str(settings.listen_address), port=settings.listen_port)
        await until(stop, tasks)
        parts.health.stop()
        log.info("stopping")
        # For as long as the Service may still send reviews here.
        await asyncio.sleep(settings.shutdown_delay_seconds)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What runs, put together."""

    webhook: Webhook
    holder: HoldWebhook
    wrapping: WrapWebhook | None
    head_state: HeadStateWebhook | None
    dispatch: DispatchWebhook | None
    health: Health
    certificate: HotCertificate
    reader: Reader
    connections: ConnectionMetrics
    work: tuple[Work, ...]


def _assemble(settings: Settings, client: Client) -> _Parts:
    metrics = Metrics()
    watched, wrappers = _reflectors(client), _wrapper_reflectors(settings, client)
    cache = Cache(*watched, metrics, wrappers=wrappers)
    metrics.watch_sync(lambda: cache.synced)
    certificate = _certificate(settings, metrics)
    queues, quotas = WatchedQueues(client), WatchedQuotas(client)
    owners = OwnerReader(client, settings.lookup_deadline_seconds)
    reader = Reader(client, settings.lookup_deadline_seconds, settings.lookups_in_flight, metrics)
    checks = (("cache", lambda: cache.synced), ("certificate", lambda: certificate.usable))
    renewal = partial(certificate.watch, settings.certificate_poll_seconds)
    return _Parts(
        Webhook(settings, cache, reader, metrics),
        HoldWebhook(settings, queues.now, quotas.of, owners, metrics),
        _wrapping(settings, client, metrics),
        HeadStateWebhook(settings, metrics) if settings.redis_address else None,
        DispatchWebhook(settings, queues.known, owners, metrics) if settings.dispatch else None,
        Health(checks, metrics.registry),
        certificate,
        reader,
        metrics.connections,
        (
            *(one.run for one in (*watched, *wrappers.values())),
            queues.run,
            quotas.run,
            renewal,
            partial(_settle, (*watched, *wrappers.values())),
        ),
    )


def _application(parts: _Parts) -> web.Application:
    application = parts.webhook.application()
    application.router.add_post("/hold", parts.holder.hold)
    if parts.wrapping is not None:
        application.router.add_post("/note-app-wrapper", parts.wrapping.note)
        application.router.add_post("/judge-app-wrapper", parts.wrapping.judge)
    if parts.head_state is not None:
        application.router.add_post("/protect-head", parts.head_state.protect)
    if parts.dispatch is not None:
        application.router.add_post("/dispatch", parts.dispatch.dispatch)
    return application


def _wrapping(settings: Settings, client: Client, metrics: Metrics) -> WrapWebhook | None:
    """Return what answers about AppWrappers, where a setting says that there are any."""
    if settings.app_wrappers == "None":
        return None
    kinds = Kinds(client, timeout=settings.rights_deadline_seconds)
    may = partial(is_allowed, client, within=settings.rights_deadline_seconds)
    return WrapWebhook(settings, kinds, may, metrics)


def _certificate(settings: Settings, metrics: Metrics) -> HotCertificate:
    news = CertificateNews(metrics.certificate_expires, metrics.certificate_refusals)
    return HotCertificate(settings.certificate_file, settings.key_file, news)


def _reflectors(client: Client) -> tuple[Reflector[Marked], Reflector[Marked]]:
    selection = Selection(metadata_only=True)
    return (
        Reflector(client, RAY_CLUSTERS, Marked, _nobody_listens, selection=selection),
        Reflector(client, NAMESPACES, Marked, _nobody_listens, selection=selection),
    )


def _wrapper_reflectors(settings: Settings, client: Client) -> dict[str, Reflector[Marked]]:
    """Return the watches of AppWrappers by API group."""
    if settings.app_wrappers == "None":
        return {}
    selection = Selection(metadata_only=True, may_be_absent=True)
    return {
        group: Reflector(client, resource, Marked, _nobody_listens, selection=selection)
        for group, resource in WRAPPERS.items()
    }


def _nobody_listens(_: object) -> None:
    """Only the store is read."""


async def _settle(watched: Iterable[Reflector[Marked]]) -> None:
    """Spare the reviews the full collections of a heap that stays as it is."""
    for one in watched:
        await one.wait_synced()
    settle_heap()
    await asyncio.Event().wait()  # the others would take its end for theirs


def _review_port(settings: Settings, parts: _Parts) -> Port:
    return Port(
        "reviews",
        str(settings.listen_address),
        settings.listen_port,
        tls=parts.certificate.context,
        limits=replace(
            settings.limits,
            received=BODIES * settings.body_limit_bytes,
            idle=settings.keepalive_seconds,
        ),
        drain=settings.drain_seconds,
    )


def _kubeconfig(settings: Settings) -> str | None:
    return None if settings.kubeconfig is None else str(settings.kubeconfig)
