"""Compares when waiting gangs were told that they start with when they did, on a replayed trace.

    python -m benchmarks.foresee --trace DIR/muri_philly_trace3.csv --nodes 8 --gpus 8 --of 12

The replay is that of `benchmarks.queueing`, by each rule, with durations that are exact, off by a
factor of up to 3, or not told, so that they are learned. It is run twice: at first to know which
gangs wait ten minutes and more, then to ask for the forecast of some of them as they come and when
half of their wait is over, on a picture of that moment. Beside it stand the plan of starts by
declared limits (`benchmarks.slurm_plan`) and the mean wait of the last ten gangs of that size.
Errors are shares of the wait.
"""

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from math import inf, nan
from multiprocessing import get_context
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks import philly
from benchmarks.figures import Panel, draw
from benchmarks.queueing import SEED, job_of, queue
from benchmarks.simulation import BEGIN, GPU, Course, Job, Simulation, gpu_node
from benchmarks.slurm_plan import Asked, Holding, Plan
from coordinator.messages.events import NodeSeen
from coordinator.state.known import Known
from coordinator.state_machine import CoordinatorState
from forecast.asking import Pictured, forecast
from forecast.expected import ExpectedReport
from forecast.waiting_statuses import leave_out_waiting_statuses
from kube.objects import names
from scheduling.model.gang import GangKey

RULES: Final = ("Strict", "BestEffort", "Backfill")
DURATIONS: Final = ("exact", "wrong", "learned")
GPUS: Final = 8
"""Of a node."""
WRONG: Final = 3.0
"""The largest factor by which a wrong duration is off."""
LEAST: Final = 600.0
LAST: Final = 10
SOON: Final = 1.0
"""Seconds after a gang came at which is asked for the first time."""
CPU_SECONDS: Final = 4.0
"""For one forecast; each end of its range may take twice as many."""


@dataclass(frozen=True)
class Told:
    """What was told of one gang, in seconds since it came; `wait` is how long it waited."""

    wait: float
    first: float | None
    earliest: float
    latest: float
    half: float | None
    """What was told when half of its wait was over."""
    planned: float | None
    mean_of_ten: float | None
    cpu: float

    @property
    def is_inside(self) -> bool:
        """Whether it started within the range that it was told as it came, to the minute."""
        return self.earliest - 60 <= self.wait <= self.latest + 60


@dataclass(frozen=True)
class Found:
    """What one replay told."""

    rule: str
    durations: str
    told: tuple[Told, ...]

    def errors(self, what: str) -> list[float]:
        """Return how far off estimates of a kind were, in per cent of the wait."""
        pairs = ((getattr(each, what), each.wait) for each in self.told)
        return [100 * abs(said - wait) / wait for said, wait in pairs if said is not None]

    @property
    def inside(self) -> float:
        """Return the share of gangs within the range, of those that were told a time."""
        known = [each.is_inside for each in self.told if each.first is not None]
        return 100 * sum(known) / len(known) if known else nan


class Watched(Simulation):
    """A replay in which forecasts are taken at given times, of given gangs."""

    def __init__(self, nodes: int, gpus: int, rule: str, asks: Sequence[tuple[float, str]]) -> None:
        self._nodes = [gpu_node(f"node-{at:04}", gpus) for at in range(nodes)]
        self._gpus = gpus
        super().__init__(self._nodes, [queue(rule)])
        self._asks = sorted(asks)
        self.answers: dict[str, list[ExpectedReport | None]] = {}
        self.planned: dict[str, float | None] = {}
        self.means: dict[str, float | None] = {}
        self.cpu: dict[str, float] = {}

    def run(self, jobs: Sequence[Job]) -> list[Course]:
        """Let the jobs come and go; ask what is to be asked between."""
        for job in jobs:
            self._pass(job.arrives)
            self.now = job.arrives
            self._arrive(job)
        self._pass(inf)
        return list(self.courses.values())

    def _pass(self, until: float) -> None:
        while True:
            ends = self._ends[0][0] if self._ends else inf
            asked = self._asks[0][0] if self._asks else inf
            if min(ends, asked) > until or min(ends, asked) == inf:
                return
            if asked < ends:
                self._ask(*self._asks.pop(0))
            else:
                self._end_next()

    def _ask(self, at: float, name: str) -> None:
        self.now, key = max(self.now, at), next(k for k in self.courses if k.name == name)
        if name not in self.answers:
            self.planned[name] = self._plan(key)
            self.means[name] = self._mean_of_ten(self.courses[key].job)
        began = time.process_time()
        events = [*map(NodeSeen, self._nodes), *self.seen()]
        picture = Pictured(events, self.moment(), _machine, time.process_time, CPU_SECONDS)
        report = forecast(picture, until=key)
        self.cpu[name] = time.process_time() - began
        found = next((each for each in report.gangs if each.name == name), None)
        self.answers.setdefault(name, []).append(found)

    def _plan(self, key: GangKey) -> float | None:
        """Return when Slurm's way has a gang start; None where nothing is declared."""
        there = [each for each in self.courses.values() if each.ended is None]
        if any(names.EXPECTED_DURATION not in each.job.annotations for each in there):
            return None
        running = [each for each in there if each.began is not None]
        free = [self._gpus] * len(self._nodes)
        held = [_holding(each, self.now) for each in running]
        for each in held:
            for node in each.on:
                free[node] -= each.gpus
        plan = Plan(self.now, free, held)
        for other, course in self.courses.items():
            if course.began is None:
                start = plan.add(Asked(course.job.workers, _size(course.job), _said(course.job)))
                if other == key:
                    return start
        return None

    def _mean_of_ten(self, job: Job) -> float | None:
        same = (each for each in self.courses.values() if _gpus(each.job) == _gpus(job))
        waits = [(c.began, c.began - c.arrived) for c in same if c.began is not None]
        last = sorted(waits)[-LAST:]
        return sum(wait for _, wait in last) / len(last) if last else None

    def told(self) -> Iterator[Told]:
        """Yield what was told, once all has ended."""
        for key, course in self.courses.items():
            if key.name in self.answers and course.began is not None:
                yield self._of(key.name, course)

    def _of(self, name: str, course: Course) -> Told:
        arrived, planned = course.arrived, self.planned[name]
        first, half = (*self.answers[name], None)[:2]
        return Told(
            (course.began or arrived) - arrived,
            _since(first.at if first else "", arrived),
            _or(_since(first.earliest if first else "", arrived), -inf),
            _or(_since(first.latest if first else "", arrived), inf),
            _since(half.at if half else "", arrived),
            None if planned is None else planned - arrived,
            self.means[name],
            self.cpu[name],
        )


def _holding(course: Course, now: float) -> Holding:
    began = now if course.began is None else course.began
    until = began + _said(course.job)
    on = [int(pod.node.removeprefix("node-")) for pod in course.pods.values()]
    workers = on[-course.job.workers :]
    return Holding(until if until > now else 2 * now - began, workers, _size(course.job))


def _since(stamp: str, arrived: float) -> float | None:
    return datetime.fromisoformat(stamp).timestamp() - BEGIN - arrived if stamp else None


def _or(found: float | None, otherwise: float) -> float:
    return otherwise if found is None else found


def _said(job: Job) -> float:
    return float(job.annotations[names.EXPECTED_DURATION].removesuffix("s"))


def _size(job: Job) -> int:
    return int(job.requests[GPU])


def _gpus(job: Job) -> int:
    return job.workers * _size(job)


def _machine() -> CoordinatorState:
    return CoordinatorState(Known())


# ---- replays


def jobs_of(jobs: Sequence[philly.Job], gpus: int, durations: str) -> list[Job]:
    """Return the Ray clusters of a trace, which say how long they run, or do not."""
    chance, wrong = random.Random(SEED), WRONG if durations == "wrong" else 1.0
    found = [job_of(job, gpus, wrong ** chance.uniform(-1, 1)) for job in jobs]
    return [replace(each, annotations={}) for each in found] if durations == "learned" else found


def replay(
    jobs: Sequence[philly.Job], nodes: int, gpus: int, most: int, run: tuple[str, str]
) -> Found:
    """Replay a trace twice, and return what `most` of its gangs were told."""
    rule, durations = run
    clusters = jobs_of(jobs, gpus, durations)
    there = [gpu_node(f"node-{at:04}", gpus) for at in range(nodes)]
    plain = Simulation(there, [queue(rule)])
    leave_out_waiting_statuses(plain.state.known)
    ran = plain.run(clusters)
    waited = [each for each in ran if each.began and each.began - each.arrived >= LEAST]
    waited = waited[len(waited) // 3 if durations == "learned" else 0 :]  # the first ones teach
    chosen = waited[:: max(1, -(-len(waited) // most))]
    asks = [(each.arrived + SOON, each.job.name) for each in chosen]
    asks += [((each.arrived + (each.began or 0)) / 2, each.job.name) for each in chosen]
    watched = Watched(nodes, gpus, rule, asks)
    watched.run(clusters)
    return Found(rule, durations, tuple(watched.told()))


def replays(jobs: Sequence[philly.Job], nodes: int, gpus: int, most: int) -> list[Found]:
    """Replay a trace by each rule with each kind of durations, some at once."""
    runs = [(rule, durations) for durations in DURATIONS for rule in RULES]
    work = partial(replay, jobs, nodes, gpus, most)
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as workers:
        return list(workers.map(work, runs))


# ---- what is said of it

HEAD: Final = (
    "| durations | rule | gangs | told | error | p90 | half-way | p90 | in range | plan | p90 "
    "| mean of ten | p90 | CPU |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
)


def row(found: Found) -> str:
    """Return a row of the table: errors in per cent of the wait."""
    kinds = ("first", "half", "planned", "mean_of_ten")
    first, half, planned, mean = (found.errors(each) for each in kinds)
    cells = (
        found.durations,
        found.rule,
        len(found.told),
        len(first),
        *_both(first),
        *_both(half),
        f"{found.inside:.0f}",
        *_both(planned),
        *_both(mean),
        f"{percentile([each.cpu for each in found.told], 50):.1f}",
    )
    return "| " + " | ".join(map(str, cells)) + " |"


def _both(errors: Sequence[float]) -> tuple[str, str]:
    return f"{percentile(errors, 50):.1f}", f"{percentile(errors, 90):.0f}"


def percentile(values: Sequence[float], share: float) -> float:
    """Return a percentile; nan of nothing."""
    return float(np.percentile(values, share)) if values else nan


def plot(found: Sequence[Found], path: Path) -> None:
    """Draw what was told against what came, a panel for each kind of durations; in hours."""
    panels = []
    for durations in DURATIONS:
        mine = [each for each in found if each.durations == durations]
        told = {each.rule: _points(each) for each in mine}
        ends = [value for points in told.values() for value in points[0]] or [1.0]
        lines = {"as told": ([min(ends), max(ends)], [min(ends), max(ends)])}
        title = f"durations {durations}"
        panels.append(Panel(title, "waited, h", "told, h", lines, scale="log", points=told))
    draw(panels, path)


def _points(found: Found) -> tuple[list[float], list[float]]:
    known = sorted((each.wait, each.first) for each in found.told if each.first is not None)
    return [wait / 3600 for wait, _ in known], [max(told, 1.0) / 3600 for _, told in known]


def main(argv: Sequence[str] | None = None) -> None:
    """Replay one trace by each rule; print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.foresee", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--trace", type=Path, required=True, metavar="FILE")
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--gpus", type=int, default=8, help="GPUs of a node")
    parser.add_argument("--first", type=int, default=None, help="only so many jobs of the trace")
    parser.add_argument(
        "--of", type=int, default=12, help="gangs that are asked about in each replay"
    )
    parser.add_argument(
        "--plot", type=Path, default=None, metavar="FILE", help="write a PNG, or an SVG"
    )
    arguments = parser.parse_args(argv)
    jobs = philly.read_jobs(arguments.trace)[: arguments.first]
    found = replays(jobs, arguments.nodes, arguments.gpus, arguments.of)
    print(HEAD, *map(row, found), sep="\n", flush=True)
    if arguments.plot is not None:
        plot(found, arguments.plot)


if __name__ == "__main__":
    main()
