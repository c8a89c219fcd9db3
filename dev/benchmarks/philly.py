"""Measures the holes that a packing rule leaves as gangs come and go, and the gangs kept out.

    python -m benchmarks.philly --traces DIR --runs muri_philly_trace1.csv:18 ...

The jobs are those of Microsoft's Philly trace as Muri carries them (github.com/Rivendile/Muri,
times in milliseconds). Each becomes a Ray cluster: a head without devices and workers of eight
GPUs, or one worker of four, two or one. Nodes have eight GPUs. At each arrival and departure all
waiting gangs are decided by the product's own `run_cycle`; only the order of nodes is exchanged.

`possible` is counted against perfect packing: the sizes are powers of two, so running pods could
always be packed into whole nodes, and what is idle would be whole nodes and one rest.
"""

import argparse
import csv
import heapq
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from unittest.mock import patch

import numpy as np

from benchmarks.figures import Panel, draw
from scheduling.cycle import run_cycle
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.amounts import Amounts, Positions
from scheduling.model.gang import GangKey, Group, PendingGang
from scheduling.model.node import Node
from scheduling.model.placement import Placement
from scheduling.model.pod import PodShape
from scheduling.model.verdict import Admitted
from scheduling.placement import independent
from scheduling.scoring.node_scores import Cost, best_nodes
from scheduling.state.node_table import NodeTable

GPU = "nvidia.com/gpu"
GPUS = 8
SIZES = (8, 4, 2, 1)
GIBIBYTE = 2**30
MACHINE = {"cpu": 96_000, "memory": 1024 * GIBIBYTE, GPU: GPUS, "pods": 110}
HEAD = PodShape((("cpu", 2_000), ("memory", 8 * GIBIBYTE), ("pods", 1)))

Order = Callable[[PodShape, FreeCapacity, Positions, Cost, int], Positions]


# --- the jobs -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Job:
    """A job of the trace, times in hours."""

    name: str
    gpus: int
    arrives: float
    runs: float


def read_jobs(path: Path) -> list[Job]:
    """Read a trace, in order of arrival."""
    hour = 3_600_000
    with path.open(newline="", encoding="utf-8") as file:
        jobs = [
            Job(
                f"job-{int(row['job_id']):05}",
                int(row["num_gpu"]),
                float(row["submit_time"]) / hour,
                float(row["duration"]) / hour,
            )
            for row in csv.DictReader(file)
        ]
    return sorted(jobs, key=lambda job: (job.arrives, job.name))


def worker(gpus: int) -> PodShape:
    """Return the shape of a worker: ten cores and 100 GiB beside each GPU."""
    requests = {"cpu": 10_000 * gpus, "memory": 100 * GIBIBYTE * gpus, GPU: gpus, "pods": 1}
    return PodShape(tuple(sorted(requests.items())))


def gang_of(job: Job) -> PendingGang:
    """Return the Ray cluster of a job: whole nodes from eight GPUs on, one worker below."""
    count, size = (-(-job.gpus // GPUS), GPUS) if job.gpus >= GPUS else (1, job.gpus)
    groups = Group("head", "", HEAD, 1), Group("workers", "", worker(size), count)
    return PendingGang(GangKey("philly", job.name), 0, job.arrives, groups)


# --- the rules ------------------------------------------------------------------------------


def first_fit(
    shape: PodShape, room: FreeCapacity, nodes: Positions, cost: Cost, count: int = 1
) -> Positions:
    """Take nodes by name."""
    del shape, room, cost, count
    return nodes


def best_fit(
    shape: PodShape, room: FreeCapacity, nodes: Positions, cost: Cost, count: int = 1
) -> Positions:
    """Take the fullest node first: what is left of CPU and GPUs, as shares of a node."""
    del shape, cost, count
    return nodes[np.argsort(_left(room)[nodes], kind="stable")]


def spread(
    shape: PodShape, room: FreeCapacity, nodes: Positions, cost: Cost, count: int = 1
) -> Positions:
    """Take the emptiest node first, as kube-scheduler does unless told otherwise."""
    del shape, cost, count
    return nodes[np.argsort(-_left(room)[nodes], kind="stable")]


def _left(room: FreeCapacity) -> Amounts:
    rows = [room.columns.row[name] for name in ("cpu", GPU)]
    free, whole = room.free[rows], room.columns.allocatable[rows]
    shares: Amounts = (free * 1000 // whole).sum(axis=0)
    return shares


RULES: Mapping[str, Order] = {
    "first fit": first_fit,
    "best fit": best_fit,
    "spread": spread,
    "Muster": best_nodes,
}


# --- one run --------------------------------------------------------------------------------


@dataclass(slots=True)
class Tally:
    """What was seen, weighted by time; `kept_out` are the gangs refused though possible."""

    hours: float = 0.0
    idle: float = 0.0
    stranded: float = 0.0
    holes: dict[int, float] = field(default_factory=lambda: dict.fromkeys(SIZES, 0.0))
    kept_out_hours: float = 0.0
    kept_out: set[str] = field(default_factory=set)
    waited: list[float] = field(default_factory=list)
    over_time: list[tuple[float, ...]] = field(default_factory=list)


class Replay:
    """The cluster with its waiting and running gangs, from one event to the next."""

    def __init__(self, nodes: int) -> None:
        self._table = NodeTable()
        for at in range(nodes):
            self._table.put_node(
                Node(f"node-{at:04}", {}, (), unschedulable=False, allocatable=MACHINE)
            )
        self._waiting: dict[GangKey, tuple[Job, PendingGang]] = {}
        self._leaving: list[tuple[float, str, Placement]] = []
        self._now = 0.0
        self.tally = Tally()

    def run(self, jobs: Sequence[Job]) -> Tally:
        """Let the jobs come and go; what is seen ends with the last arrival."""
        for job in jobs:
            while self._leaving and self._leaving[0][0] <= job.arrives:
                at, _, placement = heapq.heappop(self._leaving)
                self._pass(at)
                self._use(placement, -1)
                self._decide()
            self._pass(job.arrives)
            gang = gang_of(job)
            self._waiting[gang.key] = job, gang
            self._decide()
        return self.tally

    def _decide(self) -> None:
        pending = [gang for _, gang in self._waiting.values()]
        for decision in run_cycle(pending, self._table.snapshot()):
            if isinstance(decision.verdict, Admitted):
                self._start(decision.key, decision.verdict.placement)

    def _start(self, key: GangKey, placement: Placement) -> None:
        job, _ = self._waiting.pop(key)
        self._use(placement, +1)
        heapq.heappush(self._leaving, (self._now + job.runs, job.name, placement))
        self.tally.waited.append(self._now - job.arrives)

    def _use(self, placement: Placement, sign: int) -> None:
        for assignment in placement.assignments:
            for node, pods in assignment.nodes:
                self._table.use(node, assignment.requests, sign * pods)

    def _pass(self, now: float) -> None:
        """Count what stands until `now`."""
        lasted, self._now, seen = now - self._now, now, self.tally
        columns = self._table.snapshot()
        idle = columns.free[columns.row[GPU]]
        seen.hours += lasted
        seen.idle += lasted * int(idle.sum())
        seen.stranded += lasted * stranded(idle)
        holes = holes_of(idle)
        for size, number in holes.items():
            seen.holes[size] += lasted * number
        kept_out = list(self._kept_out(int(idle.sum())))
        seen.kept_out |= set(kept_out)
        seen.kept_out_hours += lasted * len(kept_out)
        seen.over_time.append((now, *holes.values()))

    def _kept_out(self, idle: int) -> Iterator[str]:
        """Yield the gangs that wait though perfect packing would have room."""
        for job, _ in self._waiting.values():
            asks = -(-job.gpus // GPUS) * GPUS if job.gpus > GPUS else job.gpus
            if asks <= idle:
                yield job.name


def holes_of(idle: Amounts) -> dict[int, int]:
    """Return how many holes of each size there are: seven idle GPUs of a node are 4 + 2 + 1."""
    return {size: int((idle & size > 0).sum()) for size in SIZES}


def stranded(idle: Amounts) -> int:
    """Return the GPUs idle on nodes in part use, beyond the rest that perfect packing leaves."""
    total = int(idle.sum())
    return total - total % GPUS - GPUS * int((idle == GPUS).sum())


# --- all runs -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Result:
    """One rule on one trace; means over time but for the gangs."""

    trace: str
    nodes: int
    rule: str
    gangs: int
    kept_out: int
    kept_out_hours: float
    mean_wait_hours: float
    idle: float
    stranded: float
    holes: dict[int, float]
    over_time: list[tuple[float, ...]]


def measured(trace: str, jobs: Sequence[Job], nodes: int, rule: str) -> Result:
    """Replay the jobs with one rule in the place of the product's own."""
    with patch.object(independent, "best_nodes", RULES[rule]):
        seen = Replay(nodes).run(jobs)
    return Result(
        trace,
        nodes,
        rule,
        len(jobs),
        len(seen.kept_out),
        round(seen.kept_out_hours, 1),
        round(float(np.mean(seen.waited)), 2),
        round(seen.idle / seen.hours, 2),
        round(seen.stranded / seen.hours, 2),
        {size: round(held / seen.hours, 2) for size, held in seen.holes.items()},
        seen.over_time,
    )


def table(results: Sequence[Result]) -> str:
    """Return the results as a table in Markdown."""
    lines = [
        "| trace (nodes) | rule | kept out (gang hours) | stranded | idle | holes | wait, h |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r.trace} ({r.nodes}) | {r.rule} | {r.kept_out} of {r.gangs} ({r.kept_out_hours:.0f})"
        f" | {r.stranded:.2f} | {r.idle:.2f} | {' / '.join(f'{n:.2f}' for n in r.holes.values())}"
        f" | {r.mean_wait_hours:.1f} |"
        for r in results
    ]
    return "\n".join(lines)


def panel(name: str, results: Sequence[Result]) -> Panel:
    """Draw the idle GPUs that are in no whole node, over time."""
    lines = {}
    for result in (each for each in results if each.trace == name):
        times, _, *smaller = zip(*result.over_time, strict=True)
        idle = np.array(smaller).T @ SIZES[1:]
        lines[result.rule] = times, [float(value) for value in _smooth(idle)]
    return Panel(name, "hours", "idle GPUs outside whole nodes (mean of 50 events)", lines)


def _smooth(values: Amounts) -> Sequence[float]:
    window = np.ones(min(50, len(values)))
    smooth: Sequence[float] = np.convolve(values, window / len(window), mode="same").tolist()
    return smooth


def _run_of(text: str) -> tuple[str, int]:
    """Read FILE:NODES."""
    file, _, nodes = text.rpartition(":")
    return file, int(nodes)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.philly", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--traces", type=Path, required=True, metavar="DIR")
    runs = [("muri_philly_trace1.csv", 18), ("muri_philly_trace3.csv", 8)]
    parser.add_argument("--runs", nargs="+", type=_run_of, default=runs, metavar="FILE:NODES")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write a PNG there")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Replay every trace with every rule; print a table."""
    arguments = _arguments(argv)
    results = []
    for file, nodes in arguments.runs:
        jobs = read_jobs(arguments.traces / file)
        name = Path(file).stem.removeprefix("muri_")
        results += [measured(name, jobs, nodes, rule) for rule in RULES]
    print(table(results))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(result) for result in results], indent=1))
    if arguments.plot:
        draw(
            [panel(name, results) for name in dict.fromkeys(r.trace for r in results)],
            arguments.plot,
        )


if __name__ == "__main__":
    main()
