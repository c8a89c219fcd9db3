"""Reports the holder of kube-scheduler's Lease, which changes with each of its starts."""

import asyncio
from collections.abc import Callable, Iterable

import msgspec
import structlog

from coordinator.messages.events import Event, SchedulerSeen
from kube.api.client import Client
from kube.api.errors import KubeError
from kube.api.resources import LEASES

log = structlog.get_logger()

EVERY = 2.0  # seconds; kube-scheduler itself renews its Lease as often
_PATH = LEASES.path("kube-system", "kube-scheduler")


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str = ""


class _Lease(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


async def follow(client: Client, feed: Callable[[Iterable[Event]], None]) -> None:
    """Read the Lease again and again, and tell of its holder; without one nothing is told."""
    known, fault = "", ""
    while True:
        try:
            holder = (await client.get(_PATH, as_=_Lease)).spec.holder_identity
        except KubeError as error:
            if str(error) != fault:
                fault = str(error)
                log.info("lease of kube-scheduler not read", error=fault)
        else:
            if holder and holder != known:
                feed([SchedulerSeen(holder)])
            known = holder or known
        await asyncio.sleep(EVERY)
