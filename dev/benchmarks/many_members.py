"""Measures the dispatcher with 50 members and 2,000 gangs that wait.

The manager is a control plane with its coordinator; the members answer from this process and have
no room. Then one after the other has room for one gang: the clock runs from there to the acceptance
that reaches it. In between lies the record on the manager.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.burst import create_all
from benchmarks.gangs import NAMESPACE, Size, queue_name, ray_cluster
from benchmarks.measure import Row, judged, median_within
from benchmarks.member_servers import MemberServer, serving
from benchmarks.plane import LEASE
from benchmarks.processes import CpuMeter, rss_bytes
from testbed import fleet
from testbed.cluster import Cluster
from testbed.errors import TestbedError
from testbed.muster import start_dispatcher
from testbed.processes import Process

MEMBERS, GANGS, QUEUES, DECISIONS = 50, 2000, 20, 40
AIM = 1.0
"""Seconds beyond the member's own answer."""

MEMORY_AIM = 300.0
"""MB of the dispatcher."""

WAIT_SECONDS = 300.0
IDLE_SECONDS = 20.0
_QUEUES = "/apis/muster.dev/v1alpha1/gangqueues"
_BY_QUEUE = 8
"""Gangs of a queue that members are asked for at one time."""


def rows() -> list[Row]:
    """Fill the manager, let members have room, and look at the dispatcher."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        manager = fleet.start_manager(Path(folder) / "manager", stack)
        for at in range(QUEUES):
            manager.api.create(_QUEUES, _queue(queue_name(at)))
        bodies = [json.dumps(_waiting(at)).encode() for at in range(GANGS)]
        create_all(manager.api, bodies)
        return asyncio.run(_measure(manager))


async def _measure(manager: Cluster) -> list[Row]:
    names = [f"member-{at:02}" for at in range(MEMBERS)]
    async with serving(names) as servers:
        for each in servers:
            await asyncio.to_thread(_join, manager, each)
        dispatcher = await asyncio.to_thread(start_dispatcher, manager, "dispatcher", LEASE)
        await _until(lambda: _asked(servers) >= QUEUES * _BY_QUEUE, "gangs to be asked for")
        idle = await _idle_share(manager)
        took = [await _decision(servers, at) for at in range(DECISIONS)]
        return list(_rows(took, idle, dispatcher))


def _rows(took: Sequence[float], idle: float, dispatcher: Process) -> Iterator[Row]:
    size = f"{MEMBERS} members, {GANGS} gangs wait"
    yield median_within(Row(f"room on a member to its acceptance, {size}", "s", tuple(took)), AIM)
    memory = Row(f"memory of the dispatcher, {size}", "MB", (rss_bytes(dispatcher.pid) / 1e6,))
    yield judged(memory, f"≤ {MEMORY_AIM:g} MB", lambda row: row.ours[0] <= MEMORY_AIM)
    yield Row(f"CPU of the dispatcher while all wait, {size}", "share of a core", (idle,))


async def _idle_share(manager: Cluster) -> float:
    meter = CpuMeter(manager)
    await asyncio.sleep(IDLE_SECONDS)
    return meter.used().get("dispatcher", 0.0) / IDLE_SECONDS


async def _decision(servers: Sequence[MemberServer], at: int) -> float:
    """Let one member have room; returns the seconds until it is accepted."""
    able = [each for each in servers if each.asked]
    server = able[at % len(able)]
    name = server.asked[0]
    server.offer(name)
    await _until(lambda: name in server.accepted, f"{name} to be accepted")
    return server.accepted[name] - server.offered[name]


def _asked(servers: Sequence[MemberServer]) -> int:
    return len({name for each in servers for name in each.asked})


async def _until(condition: Callable[[], bool], what: str) -> None:
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            while not condition():  # noqa: ASYNC110 - other members' tasks make it true
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise TestbedError(f"waited {WAIT_SECONDS:.0f} s in vain for {what}") from None


def _join(manager: Cluster, server: MemberServer) -> None:
    fleet.join(manager, server.name, server.kubeconfig(), namespaces=[NAMESPACE])


def _waiting(at: int) -> object:
    return ray_cluster(f"g{at:04}", Size(), gang=True, queue=queue_name(at % QUEUES))


def _queue(name: str) -> dict[str, object]:
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "GangQueue",
        "metadata": {"name": name},
        "spec": {"namespaceSelector": {}, "clusters": {}},
    }
