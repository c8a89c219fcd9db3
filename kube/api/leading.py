"""Makes one replica of a program the leader, once its watches have seen all earlier writes."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import structlog

from kube.api.client import Client
from kube.api.errors import Timeout
from kube.api.leader_election import Election, Term, Timing
from kube.api.watch.reflector import Reflector
from runtime.leader_settings import LeaderSettings
from runtime.slicing import settle_heap

log = structlog.get_logger()

REFRESH_TIMEOUT = 30.0
"""Seconds for the consistent lists at the start of a term."""


def election(
    client: Client,
    namespace: str,
    lease: str,
    settings: LeaderSettings,
    floor: Callable[[], int] = lambda: 0,
) -> Election:
    """Return the election by a Lease, as the settings say."""
    timing = Timing(settings.lease_duration, settings.renew_deadline, settings.retry_period)
    return Election(client, namespace, lease, settings.identity, timing=timing, floor=floor)


async def wait_synced(watches: Iterable[Reflector[Any]]) -> None:
    """Wait until each watch has its first list."""
    for each in watches:
        await each.wait_synced()
    settle_heap()


async def lead_on_fresh_lists(
    watches: Iterable[Reflector[Any]], act: Callable[[Term], Awaitable[None]], term: Term
) -> None:
    """List anew, so that what an earlier leader wrote is seen, and only then act."""
    try:
        await asyncio.gather(*(each.refresh(REFRESH_TIMEOUT) for each in watches))
    except Timeout as error:
        log.warning("term given up: cannot see what was written before", error=str(error))
        return
    await act(term)
