"""Measures what a scrape of the coordinator's metrics costs, and for how long it holds the loop.

5,000 nodes of 8 GPUs in 30 pools, 10,000 gangs in 50 queues, half of which run. The floor is to
write the page from values that are there already.
"""

import asyncio
import statistics
import time
from collections.abc import Iterator
from typing import cast

import msgspec
from prometheus_client import generate_latest

from benchmarks.measure import Outcome, Row, judged
from benchmarks.simulation import GPU, Job, Simulation, gpu_node
from coordinator.settings import Settings
from coordinator.shell import scrape
from coordinator.shell.app import Coordinator
from kube.api.client import Client
from kube.objects import names
from kube.objects.core import Node
from kube.objects.queues.queue import GangQueue

LABEL = "nvidia.com/gpu.product"
NODES, GANGS, QUEUES, POOLS = 5000, 10_000, 50, 30
PAGE, HOLD = 20.0, 10.0
"""Aims in milliseconds: for the page, and for the loop, which does nothing else meanwhile."""


def measure(runs: int) -> Outcome:
    """Fill the nodes, let as many gangs wait, and scrape."""
    simulation = Simulation(_nodes(), _queues())
    simulation.come(_jobs())
    coordinator = Coordinator(Settings(), cast(Client, None))
    coordinator.loop.state = simulation.state
    pages, holds = asyncio.run(_scrape(coordinator, runs))
    floor = _floor(runs)
    met = f"p50 ≤ {PAGE:g} ms"
    page = Row("CPU of a scrape, floor the writing of the page", "ms", pages, floor)
    hold = Row("of which the loop is held, floor the same", "ms", holds, floor)
    return Outcome(
        [
            judged(page, met, lambda found: statistics.median(found.ours) <= PAGE),
            judged(hold, f"max ≤ {HOLD:g} ms", lambda found: max(found.ours) <= HOLD),
        ],
        notes=[f"{len(generate_latest()) // 1024} KiB, {len(simulation.state.known.views)} gangs"],
    )


async def _scrape(
    coordinator: Coordinator, runs: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the CPU of each scrape, and that of the loop's own thread, in milliseconds."""
    pages, holds = [], []
    await scrape.page(coordinator)
    for _ in range(runs):
        began, mine = time.process_time(), time.thread_time()
        await scrape.page(coordinator)
        holds.append((time.thread_time() - mine) * 1000)
        pages.append((time.process_time() - began) * 1000)
    return tuple(pages), tuple(holds)


def _floor(runs: int) -> tuple[float, ...]:
    times = []
    for _ in range(runs):
        began = time.process_time()
        generate_latest()
        times.append((time.process_time() - began) * 1000)
    return tuple(times)


def _nodes() -> Iterator[Node]:
    for at in range(NODES):
        bare, labels = gpu_node(f"node-{at:04}", 8), {LABEL: f"model-{at % POOLS}"}
        yield msgspec.structs.replace(
            bare, metadata=msgspec.structs.replace(bare.metadata, labels=labels)
        )


def _queues() -> Iterator[GangQueue]:
    for at in range(QUEUES):
        spec = {"quota": {GPU: 8 * NODES // QUEUES, "cpu": "6400"}, "namespaceSelector": {}}
        yield msgspec.convert({"metadata": {"name": f"q{at}"}, "spec": spec}, GangQueue)


def _jobs() -> Iterator[Job]:
    for at in range(GANGS):
        requests = {"cpu": "8", "memory": "64Gi", GPU: "8"}
        yield Job(f"g{at:05}", float(at), 1e12, 1, requests, {names.QUEUE: f"q{at % QUEUES}"})
