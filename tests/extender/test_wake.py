"""kube-scheduler is made to try refused pods again when room comes free for one, and only then."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from extender.ledger import Ledger
from extender.memory.in_flight import InFlightPods
from extender.metrics import Metrics
from extender.unscheduled_pods import UnscheduledPods
from extender.wake import Waker
from kube.api.errors import Unreachable
from tests.extender.worlds import (
    as_gang,
    as_node,
    as_watched_pod,
    gang,
    node,
    pod,
)


class Bell:
    """Counts the signals; the first so many fail."""

    def __init__(self) -> None:
        self.rung = asyncio.Semaphore(0)
        self.count = 0
        self.failures = 0

    async def send(self) -> None:
        if self.failures:
            self.failures -= 1
            raise Unreachable("no way", sent=False)
        self.count += 1
        self.rung.release()


@pytest.fixture
def bell() -> Bell:
    return Bell()


@contextlib.asynccontextmanager
async def waking(known: Ledger, unscheduled: UnscheduledPods, bell: Bell) -> AsyncIterator[Waker]:
    in_flight_pods = InFlightPods(settle=0.0, keep=30.0, limit=10)
    waker = Waker(
        known, in_flight_pods, unscheduled, bell, Metrics(), pause=0.01, clock=lambda: 1.0
    )
    task = asyncio.create_task(waker.run())
    try:
        yield waker
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_it_rings_when_room_comes_free(
    known: Ledger, bell: Bell, unscheduled: UnscheduledPods
) -> None:
    unscheduled.note(as_watched_pod(pod("p", gpu=1)))
    async with waking(known, unscheduled, bell) as waker:
        known.put_gang(as_gang(gang(slots={"a": 1})))
        waker.tell()
        await asyncio.wait_for(bell.rung.acquire(), 60)
    assert bell.count == 1


async def test_it_rings_again_where_it_failed(
    known: Ledger, bell: Bell, unscheduled: UnscheduledPods
) -> None:
    bell.failures = 2
    unscheduled.note(as_watched_pod(pod("p", gpu=1)))
    known.put_gang(as_gang(gang(slots={"a": 1})))
    async with waking(known, unscheduled, bell):
        await asyncio.wait_for(bell.rung.acquire(), 60)
    assert bell.failures == 0


async def test_reports_of_kubelets_wake_no_pod(
    known: Ledger, bell: Bell, unscheduled: UnscheduledPods
) -> None:
    unscheduled.note(as_watched_pod(pod("p", gpu=1)))
    known.freed.clear()
    known.put_node(as_node(node("a")))
    assert not known.freed
    known.put_node(as_node(node("c")))
    assert known.freed == {"c"}
