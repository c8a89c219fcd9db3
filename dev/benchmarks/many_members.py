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
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from benchmarks.burst import create_all
from benchmarks.gangs import NAMESPACE, Size, queue_name, ray_cluster
from benchmarks.measure import Outcome, Row, judged, median_within, quantile
from benchmarks.member_servers import MemberServer, serving
from benchmarks.plane import LEASE
from benchmarks.processes import CpuMeter, rss_bytes
from testbed import fleet
from testbed.cluster import Cluster
from testbed.errors import TestbedError
from testbed.muster import start_dispatcher
from testbed.processes import Process

AIM = 1.0
"""Seconds beyond the member's own answer."""

MEMORY_AIM = 300.0
"""MB of the dispatcher."""

WAIT_SECONDS = 300.0
IDLE_SECONDS = 20.0
_QUEUES = "/apis/muster.dev/v1alpha1/gangqueues"
_BY_QUEUE = 8
"""Gangs of a queue that members are asked for at one time."""


@dataclass(frozen=True)
class Scale:
    """How much there is."""

    members: int = 50
    gangs: int = 2000
    queues: int = 20

    def __str__(self) -> str:
        return f"{self.members} members, {self.gangs} gangs wait"


def measure(runs: int, scale: Scale = Scale()) -> Outcome:
    """Fill the manager, let members have room so often, and look at the dispatcher."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        manager = fleet.start_manager(Path(folder) / "manager", stack)
        lease = {f"MUSTER_COORDINATOR_{key}": value for key, value in LEASE.items()}
        manager.process("coordinator-0").restart(lease)  # as installed, not as in tests
        for at in range(scale.queues):
            manager.api.create(_QUEUES, _queue(queue_name(at)))
        bodies = [json.dumps(_waiting(at, scale)).encode() for at in range(scale.gangs)]
        create_all(manager.api, bodies)
        return Outcome(asyncio.run(_measure(manager, scale, runs)))


async def _measure(manager: Cluster, scale: Scale, runs: int) -> list[Row]:
    names = [f"member-{at:02}" for at in range(scale.members)]
    async with serving(names) as servers:
        for each in servers:
            await asyncio.to_thread(_join, manager, each)
        dispatcher = await asyncio.to_thread(start_dispatcher, manager, "dispatcher", LEASE)
        first = min(scale.queues * _BY_QUEUE, scale.gangs)
        await _until(lambda: _asked(servers) >= first, "gangs to be asked for")
        idle = await _idle_share(manager)
        taken: set[str] = set()
        took = [await _decision(servers, at, taken) for at in range(runs)]
        return list(_rows(took, idle, dispatcher, scale))


def _rows(took: Sequence[float], idle: float, dispatcher: Process, scale: Scale) -> Iterator[Row]:
    name = f"room on a member to its acceptance, {scale}"
    yield median_within(Row(f"{name}, p50", "s", tuple(took)), AIM)
    yield Row(f"{name}, p90", "s", (quantile(took, 0.9),))
    yield Row(f"{name}, longest", "s", (max(took),))
    memory = Row(f"memory of the dispatcher, {scale}", "MB", (rss_bytes(dispatcher.pid) / 1e6,))
    yield judged(memory, f"≤ {MEMORY_AIM:g} MB", lambda row: row.ours[0] <= MEMORY_AIM)
    yield Row(f"CPU of the dispatcher while all wait, {scale}", "share of a core", (idle,))


async def _idle_share(manager: Cluster) -> float:
    meter = CpuMeter(manager)
    await asyncio.sleep(IDLE_SECONDS)
    return meter.used().get("dispatcher", 0.0) / IDLE_SECONDS


async def _decision(servers: Sequence[MemberServer], at: int, taken: set[str]) -> float:
    """Let one member have room; returns the seconds until it is accepted.

    What was asked for a gang that runs elsewhere by now may not be withdrawn yet. Where others are
    asked for it in the same moment, the next one has the room.
    """
    waiting = [
        (server, name, uid)
        for server in servers
        for name, uid in islice(server.asked.items(), 8)
        if uid not in taken
    ]
    server, name, uid = waiting[at % len(waiting)]
    taken.add(uid)
    server.offer(name)
    answered = partial(server.is_answered, name)
    await _until(answered, f"{name} to be accepted")
    if name not in server.accepted:
        return await _decision(servers, at, taken)
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


def _waiting(at: int, scale: Scale) -> object:
    return ray_cluster(f"g{at:04}", Size(), gang=True, queue=queue_name(at % scale.queues))


def _queue(name: str) -> dict[str, object]:
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "GangQueue",
        "metadata": {"name": name},
        "spec": {"namespaceSelector": {}, "clusters": {}},
    }
