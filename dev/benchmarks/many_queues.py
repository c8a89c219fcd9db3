"""Measures a cycle with 1,000 queues in a tree of depth 4 and 20,000 gangs that wait.

The floor is one numpy pass that holds what each gang asks for against what its queue may take.
"""

import random
import resource
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.measure import Outcome, Row, judged, ratio_within
from benchmarks.simulation import GPU, Job, Simulation, gpu_node
from kube.objects import names
from kube.objects.core import Node
from kube.objects.queues.queue import GangQueue

QUEUES, BELOW, NODES, GANGS = 1000, 10, 1000, 20_000
AIM = 50.0
"""Milliseconds for a cycle after one gang ends."""

FAIR = 1.1
"""At most so many times as long with fair sharing: what pairs differ by."""

SEED = 1


def tree(**rules: object) -> Iterator[GangQueue]:
    """Yield the queues: one at the top, each with ten below it, of 8 GPUs each."""
    yield msgspec.convert({"metadata": {"name": "q0"}, "spec": {"quota": {}}}, GangQueue)
    for at in range(1, QUEUES):
        spec = {
            "parent": f"q{(at - 1) // BELOW}",
            "quota": {GPU: 8, "cpu": "64"},
            "namespaceSelector": {},
            **rules,
        }
        yield msgspec.convert({"metadata": {"name": f"q{at}"}, "spec": spec}, GangQueue)


def jobs(count: int, queues: int = QUEUES) -> Iterator[Job]:
    """Yield gangs that take a node each and never end, in queues by chance."""
    chance = random.Random(SEED)
    for at in range(count):
        labels = {names.QUEUE: f"q{chance.randrange(min(1, queues - 1), queues)}"}
        requests = {"cpu": "8", "memory": "64Gi", GPU: "8"}
        yield Job(f"g{at:05}", float(at), 1e12, 1, requests, labels)


def measure(runs: int) -> Outcome:
    """Fill the nodes, let the rest wait, then end one gang after the other.

    The same again with fair sharing in all queues, in pairs.
    """
    simulation = Simulation(_nodes(), tree())
    arrivals = simulation.arrivals(jobs(GANGS))
    observed = _resident()
    simulation.observe(arrivals)
    memory = Row(
        "memory, floor what is observed alone", "MiB", (_resident(),), (observed,), stated=True
    )
    fair = Simulation(_nodes(), tree(fairSharing={}))
    fair.observe(fair.arrivals(jobs(GANGS)))
    pairs = [(simulation.end_one() * 1000, fair.end_one() * 1000) for _ in range(runs)]
    ours, with_fair = (tuple(times) for times in zip(*pairs, strict=True))
    row = Row("CPU of a cycle after one gang ends, floor one numpy pass", "ms", ours, _passes(runs))
    met = f"p50 ≤ {AIM:g} ms"
    waiting = len(simulation.state.known.cycles.waiting)
    shared = Row("the same with fair sharing, floor without", "ms", with_fair, ours)
    no_slower = ratio_within(shared, FAIR)
    return Outcome(
        [judged(row, met, lambda found: statistics.median(found.ours) <= AIM), no_slower, memory],
        notes=[f"{waiting} gangs wait in {QUEUES} queues"],
    )


def _nodes() -> Iterator[Node]:
    return (gpu_node(f"node-{at:04}", 8) for at in range(NODES))


def _resident() -> float:
    """Return how much memory the process has, in MiB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def _passes(runs: int) -> tuple[float, ...]:
    """Return how long numpy takes to compare all gangs with their queues, in milliseconds."""
    asked, may = np.full((GANGS, 2), 8), np.zeros((QUEUES, 2), dtype=np.int64)
    queue_of = np.arange(GANGS) % QUEUES
    times = []
    for _ in range(runs):
        began = time.process_time()
        (asked <= may[queue_of]).all(axis=1)
        times.append((time.process_time() - began) * 1000)
    return tuple(times)
