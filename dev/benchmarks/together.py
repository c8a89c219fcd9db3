"""Measures what it costs the state machine that gangs start in pairs, beside the same gangs apart.

The same jobs come and go in simulated time, once with the annotations of pairs and once without.
Counted is the CPU of the state machine alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from benchmarks.measure import Outcome, Row, ratio_within
from benchmarks.queueing import queue
from benchmarks.simulation import GPU, Job, Simulation, gpu_node
from coordinator.messages.actions import Action
from coordinator.messages.events import Event
from kube.objects import names

NODES, PAIRS = 50, 200
WORKERS = 3
"""Of a gang; each takes a quarter of a node."""
EVERY, RUNS = 30.0, 1800.0
"""Seconds between two pairs, and for which a gang runs: more come than find room at once."""
AIM = 1.05


class Counted(Simulation):
    """A simulation that counts the CPU seconds of the state machine."""

    spent = 0.0

    def handle(self, events: Sequence[Event]) -> list[Action]:
        """Let the coordinator hear of events, and count what that takes."""
        began = time.process_time()
        actions = super().handle(events)
        self.spent += time.process_time() - began
        return actions


def measure(runs: int, nodes: int = NODES, pairs: int = PAIRS) -> Outcome:
    """Run both in turn."""
    found = [
        (spent([*jobs(pairs, together=True)], nodes), spent([*jobs(pairs, together=False)], nodes))
        for _ in range(runs)
    ]
    ours, floor = zip(*found, strict=True)
    row = Row(
        f"{2 * pairs} gangs from their arrival to their end, CPU",
        "s",
        ours,
        floor,
        ours_are="pairs",
        floor_is="apart",
    )
    return Outcome([ratio_within(row, AIM)], notes=[f"{nodes} nodes of 8 GPUs"])


def jobs(pairs: int, *, together: bool) -> Iterator[Job]:
    """Yield the members of pairs, the second a second after the first."""
    for at in range(pairs):
        said = {names.TOGETHER: f"pair-{at}", names.TOGETHER_SIZE: "2"} if together else {}
        for member in range(2):
            yield _job(f"gang-{at:03}-{member}", EVERY * at + member, said)


def _job(name: str, arrives: float, annotations: dict[str, str]) -> Job:
    requests = {"cpu": "8", "memory": "64Gi", GPU: "2"}
    return Job(name, arrives, RUNS, WORKERS, requests, annotations=annotations)


def spent(made: Sequence[Job], nodes: int) -> float:
    """Return how many CPU seconds the state machine takes for some jobs."""
    there = [gpu_node(f"node-{at:04}", 8) for at in range(nodes)]
    simulation = Counted(there, [queue("Strict")])
    courses = simulation.run(made)
    left = [each.job.name for each in courses if each.ended is None]
    if left:
        raise RuntimeError(f"never ended: {', '.join(left[:3])}")
    return simulation.spent
