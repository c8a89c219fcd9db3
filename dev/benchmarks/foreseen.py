"""Measures forecasts of a large cluster in use: 1,000 gangs wait, on 5,000 nodes.

What reading the picture takes is not in it, and is that of `fit`. How good estimates are,
`benchmarks.foresee` says of a trace.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from math import inf

from benchmarks.measure import Outcome, Row, median_within
from benchmarks.queueing import queue
from benchmarks.simulation import GPU, Job, Simulation, gpu_node
from cli.forecast.changes import Changes
from cli.forecast.what_if import what_if
from coordinator.messages.events import Event, NodeSeen
from coordinator.state.known import Known
from coordinator.state_machine import CoordinatorState
from forecast.asking import Pictured, forecast
from kube.objects import names

NODES, WAITING = 5_000, 1_000
OF_A_GANG = 10
"""Nodes that each gang takes whole."""

STARTS = 20
FORWARD_AIM, AT_ONCE_AIM, DELAYS_AIM = 6.0, 5.0, 30.0
"""Seconds: 5 % of a core while no estimate is older than two minutes; and what a user waits."""


def picture(nodes: int, waiting: int) -> tuple[Simulation, list[Event]]:
    """Return a cluster in full use with so many gangs that wait, and what is seen of it."""
    there = [gpu_node(f"node-{at:04}", 8) for at in range(nodes)]
    simulation = Simulation(there, [queue("Strict")])
    simulation.come(_job(at) for at in range(nodes // OF_A_GANG + waiting))
    return simulation, [*map(NodeSeen, there), *simulation.seen()]


def _job(at: int) -> Job:
    seconds = 3600.0 + 60 * at
    requests = {"cpu": "80", "memory": "800Gi", GPU: "8"}
    told = {names.EXPECTED_DURATION: f"{seconds:.0f}s"}
    return Job(f"gang-{at:04}", float(at), seconds, OF_A_GANG, requests, annotations=told)


def _pictured(simulation: Simulation, events: Sequence[Event], starts: float) -> Pictured:
    moment = simulation.moment()
    return Pictured(
        events, moment, lambda: CoordinatorState(Known()), time.process_time, inf, starts
    )


def measure_foresee(runs: int, nodes: int = NODES, waiting: int = WAITING) -> Outcome:
    """Measure the CPU of the first estimates, with their ranges."""
    simulation, events = picture(nodes, waiting)
    taken: list[float] = []
    told = 0
    gc.disable()  # as the programs do meanwhile
    for _ in range(runs):
        began = time.process_time()
        report = forecast(_pictured(simulation, events, STARTS))
        taken.append(time.process_time() - began)
        told = sum(bool(each.at) for each in report.gangs)
    gc.enable()
    row = Row(f"the first {STARTS} estimates and their ranges, CPU", "s", tuple(taken))
    notes = [f"{nodes} nodes, {waiting} gangs wait, {told} were told a time"]
    return Outcome([median_within(row, FORWARD_AIM)], notes=notes)


def measure_what_if(runs: int, nodes: int = NODES, waiting: int = WAITING) -> Outcome:
    """Measure what a stopped gang would do: what starts and stops at once, and the delays."""
    simulation, events = picture(nodes, waiting)
    key = next(key for key, each in simulation.courses.items() if each.began is not None)
    rows = []
    for name, starts, aim in (
        ("what starts and stops at once", 0, AT_ONCE_AIM),
        (f"the delays of the first {STARTS}", STARTS, DELAYS_AIM),
    ):
        taken: list[float] = []
        for _ in range(runs):
            began = time.process_time()
            what_if(_pictured(simulation, events, starts), Changes(stopped=(key,)))
            taken.append(time.process_time() - began)
        rows.append(median_within(Row(f"{name}, CPU", "s", tuple(taken)), aim))
    return Outcome(rows, notes=[f"{nodes} nodes, {waiting} gangs wait"])
