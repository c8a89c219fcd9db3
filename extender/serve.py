"""Starts and stops the extender, in order."""

import asyncio
import contextlib
from dataclasses import dataclass, replace
from functools import partial

import structlog

from extender.app import Extender
from extender.memory.in_flight import InFlightPods
from extender.metrics import Metrics
from extender.settings import PREFIX, Settings
from extender.unscheduled_pods import UnscheduledPods
from extender.wake import StorageSignal, Waker
from extender.watches import Watches
from kube.api.client import Client
from kube.api.credentials import load_access
from kube.ray.wrapped_by import unwrapped, wrapped_by
from runtime.connections import ConnectionMetrics
from runtime.http_server import (
    CertificateNews,
    Health,
    Port,
    Work,
    in_background,
    listening,
    stop_signals,
    until,
)
from runtime.slicing import settle_heap
from runtime.tls import HotCertificate

log = structlog.get_logger(__name__)

BODIES = 4
"""So many bodies of the most that is allowed may be there at once; a scheduler sends one."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """What runs, put together."""

    extender: Extender
    health: Health
    tls: HotCertificate
    connections: ConnectionMetrics
    work: tuple[Work, ...]


async def serve(settings: Settings) -> None:
    """Answer kube-scheduler until told to stop."""
    stop = stop_signals()
    kubeconfig = None if settings.kubeconfig is None else str(settings.kubeconfig)
    access = await load_access(kubeconfig, setting=f"{PREFIX}KUBECONFIG")
    async with Client(access, user_agent="muster-extender") as client:
        await _serve(settings, client, stop)


async def _serve(settings: Settings, client: Client, stop: asyncio.Event) -> None:
    parts = _assemble(settings, client)
    async with contextlib.AsyncExitStack() as stack:
        address, connections = str(settings.health_address), parts.connections
        health = Port("health", address, settings.health_port, limits=settings.limits)
        await stack.enter_async_context(listening(parts.health.application(), health, connections))
        tasks = await stack.enter_async_context(in_background(parts.work))
        serving = scheduler_port(settings, parts.extender, parts.tls, connections)
        port = await stack.enter_async_context(serving)
        log.info("serving", address=str(settings.listen_address), port=port)
        await until(stop, tasks)
        log.info("stopping")


def _assemble(settings: Settings, client: Client) -> _Parts:
    metrics, unscheduled = Metrics(), UnscheduledPods()
    in_flight_pods = InFlightPods(
        settle=settings.settle_seconds,
        keep=settings.passed_seconds,
        limit=settings.passed_limit,
    )
    watches = Watches(
        client,
        in_flight_pods,
        unscheduled,
        silence=settings.silence_seconds,
        wrapper_of=wrapped_by if settings.app_wrappers else unwrapped,
        gates_off=settings.feature_gates_off,
    )
    waker = Waker(
        watches.ledger,
        in_flight_pods,
        unscheduled,
        StorageSignal(client, settings.wake_namespace),
        metrics,
        pause=settings.wake_pause_seconds,
    )
    watches.on_news = waker.tell
    tls = _certificate(settings, metrics)
    _watch_gauges(metrics, watches, in_flight_pods, unscheduled)
    checks = (("watches", watches.trusted), ("certificate", lambda: tls.usable))
    return _Parts(
        Extender(settings, watches, in_flight_pods, unscheduled, metrics),
        Health(checks, metrics.registry),
        tls,
        metrics.connections,
        (
            *(reflector.run for reflector in watches.reflectors),
            watches.devices.run,
            partial(tls.watch, settings.certificate_poll_seconds),
            partial(_once_synced, watches, waker),
        ),
    )


def _certificate(settings: Settings, metrics: Metrics) -> HotCertificate:
    return HotCertificate(
        settings.certificate_file,
        settings.key_file,
        CertificateNews(metrics.certificate_expires, metrics.certificate_refusals),
        client_ca=settings.client_ca_file,
    )


def _watch_gauges(
    metrics: Metrics, watches: Watches, in_flight_pods: InFlightPods, unscheduled: UnscheduledPods
) -> None:
    metrics.watch(
        {
            "synced": ("1 when every watch has its first list", lambda: float(watches.synced)),
            "silence_seconds": ("Since the watch furthest behind had told all", watches.silent_for),
            "placed_gangs": (
                "Gangs with a placement, whether their pods run yet or not",
                lambda: float(watches.ledger.placed_gangs),
            ),
            "reserved_pods": (
                "Pods whose room is kept for gangs",
                lambda: float(watches.ledger.reservations),
            ),
            "passed_pods": (
                "Pods passed and not seen bound yet",
                lambda: float(len(in_flight_pods)),
            ),
            "refused_pods": (
                "Pods that got no node when last asked",
                lambda: float(len(unscheduled)),
            ),
        }
    )


async def _once_synced(watches: Watches, waker: Waker) -> None:
    """Spare the calls the full collections of a heap that stays as it is; then wake at need."""
    for reflector in watches.reflectors:
        await reflector.wait_synced()
    settle_heap()
    log.info("synced")
    await waker.run()


def scheduler_port(
    settings: Settings, extender: Extender, tls: HotCertificate, connections: ConnectionMetrics
) -> contextlib.AbstractAsyncContextManager[int]:
    """Listen for kube-scheduler; gives the port."""
    limits = replace(
        settings.limits,
        received=BODIES * settings.body_limit_bytes,
        handshake=settings.handshake_seconds,
        idle=settings.keepalive_seconds,
    )
    address = str(settings.listen_address)
    at = Port("scheduler", address, settings.listen_port, tls=tls.context, limits=limits)
    return listening(extender.application(), at, connections)
