"""Compares when waiting gangs were told that they start with when they did, on a replayed trace.

    python -m benchmarks.foresee --trace DIR/muri_philly_trace3.csv --nodes 8 --gpus 8 --every 20

The replay is that of `benchmarks.queueing`. Of each so many gangs that wait as they come, the
forecast is asked for at once, on a picture of that moment. Beside it stands the mean wait of the
last ten gangs of that size. Errors are shares of the wait, of gangs that waited ten minutes or
more.
"""

import argparse
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf
from pathlib import Path

import numpy as np

from benchmarks import philly
from benchmarks.queueing import SEED, job_of, queue
from benchmarks.simulation import BEGIN, GPU, Job, Simulation, gpu_node
from coordinator.messages.events import NodeSeen
from coordinator.state.known import Known
from coordinator.state_machine import CoordinatorState
from forecast.asking import Pictured, forecast
from forecast.expected import ExpectedReport

RUNS = (("Strict", 1.0), ("BestEffort", 1.0), ("Backfill", 1.0), ("Backfill", 3.0))
LEAST = 600.0
LAST = 10
CPU_SECONDS = 10.0


@dataclass(frozen=True)
class Told:
    """What was told of one gang as it came, and how long it waited; times in seconds."""

    wait: float
    told: float | None
    earliest: float
    latest: float
    mean_of_ten: float | None
    sure: str
    cpu: float


class Watched(Simulation):
    """A replay in which a forecast is taken of some of the gangs that have to wait."""

    def __init__(self, nodes: int, gpus: int, rule: str, every: int) -> None:
        self._nodes = [gpu_node(f"node-{at:04}", gpus) for at in range(nodes)]
        super().__init__(self._nodes, [queue(rule)])
        self._every, self._waiting = every, 0
        self._asked: dict[str, tuple[ExpectedReport | None, float]] = {}
        self._before: dict[str, float | None] = {}

    def _arrive(self, job: Job) -> None:
        super()._arrive(job)
        course = next(reversed(self.courses.values()))
        if course.began is None:
            self._waiting += 1
            if self._waiting % self._every == 0:
                self._ask(job)

    def _ask(self, job: Job) -> None:
        self._before[job.name] = self._mean_of_ten(job)
        events = [*map(NodeSeen, self._nodes), *self.seen()]
        picture = Pictured(events, self.moment(), _machine, time.process_time, CPU_SECONDS)
        began = time.process_time()
        report = forecast(picture, until=next(reversed(self.courses)))
        found = next((each for each in report.gangs if each.name == job.name), None)
        self._asked[job.name] = found, time.process_time() - began

    def _mean_of_ten(self, job: Job) -> float | None:
        size = _gpus(job)
        same = (each for each in self.courses.values() if each.began is not None)
        waits = [(c.began, c.began - c.arrived) for c in same if c.began and _gpus(c.job) == size]
        last = sorted(waits)[-LAST:]
        return sum(wait for _, wait in last) / len(last) if last else None

    def told(self) -> Iterator[Told]:
        """Yield what was told, once all has ended."""
        for key, course in self.courses.items():
            if key.name in self._asked and course.began is not None:
                found, cpu = self._asked[key.name]
                yield _told(
                    course.began - course.arrived,
                    course.arrived,
                    found,
                    cpu,
                    self._before[key.name],
                )


def _told(
    wait: float, arrived: float, found: ExpectedReport | None, cpu: float, mean: float | None
) -> Told:
    def since(stamp: str, otherwise: float) -> float:
        return datetime.fromisoformat(stamp).timestamp() - BEGIN - arrived if stamp else otherwise

    if found is None:
        return Told(wait, None, -inf, inf, mean, "Unknown", cpu)
    said = found.in_seconds
    ends = since(found.earliest, -inf), since(found.latest, inf)
    return Told(wait, said, *ends, mean, found.sure.value, cpu)


def _gpus(job: Job) -> int:
    return job.workers * int(job.requests[GPU])


def _machine() -> CoordinatorState:
    return CoordinatorState(Known())


def replay(
    jobs: Sequence[philly.Job], nodes: int, gpus: int, every: int, rule: str, wrong: float
) -> list[Told]:
    """Let the jobs come and go; `wrong` is the largest factor by which a duration is off."""
    chance = random.Random(SEED)
    told = [job_of(job, gpus, wrong ** chance.uniform(-1, 1)) for job in jobs]
    watched = Watched(nodes, gpus, rule, every)
    watched.run(told)
    return [each for each in watched.told() if each.wait >= LEAST]


def row(rule: str, wrong: float, found: Sequence[Told]) -> str:
    """Return a row of the table: errors in per cent of the wait."""
    known = [each for each in found if each.told is not None]
    errors = [
        100 * abs(each.told - each.wait) / each.wait for each in known if each.told is not None
    ]
    means = [
        100 * abs(each.mean_of_ten - each.wait) / each.wait
        for each in found
        if each.mean_of_ten is not None
    ]
    inside = sum(each.earliest - 60 <= each.wait <= each.latest + 60 for each in known)
    cells = (
        rule,
        "exact" if wrong == 1 else "wrong",
        len(found),
        len(known),
        f"{_percentile(errors, 50):.1f}",
        f"{_percentile(errors, 90):.0f}",
        f"{100 * inside / max(1, len(known)):.0f}",
        f"{_percentile(means, 50):.0f}",
        f"{_percentile(means, 90):.0f}",
        f"{_percentile([each.cpu for each in found], 50):.2f}",
    )
    return "| " + " | ".join(map(str, cells)) + " |"


HEAD = (
    "| rule | durations | gangs | told | error | p90 | in range | mean of ten | p90 | CPU |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)


def _percentile(values: Sequence[float], share: float) -> float:
    return float(np.percentile(values, share)) if values else float("nan")


def main(argv: Sequence[str] | None = None) -> None:
    """Replay one trace by each rule; print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.foresee", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--trace", type=Path, required=True, metavar="FILE")
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--gpus", type=int, default=8, help="GPUs of a node")
    parser.add_argument("--first", type=int, default=None, help="only so many jobs of the trace")
    parser.add_argument("--every", type=int, default=20, help="of so many waiting gangs one")
    arguments = parser.parse_args(argv)
    jobs = philly.read_jobs(arguments.trace)[: arguments.first]
    print(HEAD)
    for rule, wrong in RUNS:
        found = replay(jobs, arguments.nodes, arguments.gpus, arguments.every, rule, wrong)
        print(row(rule, wrong, found), flush=True)


if __name__ == "__main__":
    main()
