"""Replays a trace of gangs through the coordinator's state machine, by each rule of a queue.

    python -m benchmarks.queueing --trace DIR/muri_philly_trace3.csv --nodes 8 --gpus 8

The jobs are those of Microsoft's Philly trace as Muri carries them (github.com/Rivendile/Muri).
Each becomes a Ray cluster: a head without devices and workers of whole nodes, or one smaller
worker. Time is simulated (`benchmarks.simulation`); every decision is the product's own. The queue
has the defaults that users get, also of ageing. Durations are told exactly, or wrong by a random
factor of 1/3 to 3, the same for all rules and for EASY (`benchmarks.easy`), which stands beside.
"""

import argparse
import json
import random
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import msgspec
import numpy as np

from benchmarks import easy, philly
from benchmarks.simulation import GPU, Job, Simulation, gpu_node
from kube.objects import names
from kube.objects.queues.queue import GangQueue

RUNS = (
    ("Strict", 1.0),
    ("BestEffort", 1.0),
    ("Backfill", 1.0),
    ("Backfill", 3.0),
    ("EASY", 1.0),
    ("EASY", 3.0),
)
"""The rules, and by which factor durations are off; Strict and BestEffort look at none."""

SEED = 20261122

LATER = 1.1
"""A gang is late that waits longer than under Strict by more than this factor, and a minute."""


@dataclass(frozen=True)
class Result:
    """One replay; times in seconds. `large` are the gangs of more GPUs than a node has.

    `waits` are those of all gangs, as they came.
    """

    rule: str
    durations: str
    gangs: int
    completion: float
    wait: float
    wait_p99: float
    large_wait: float
    large_wait_p99: float
    utilisation: float
    makespan: float
    waits: tuple[float, ...]

    def delays(self, strict: "Result") -> list[float]:
        """Return by how much each gang that is late began later than under Strict."""
        pairs = zip(self.waits, strict.waits, strict=True)
        return [ours - theirs for ours, theirs in pairs if ours > LATER * theirs + 60]


def replay(jobs: Sequence[philly.Job], nodes: int, gpus: int, rule: str, wrong: float) -> Result:
    """Let the jobs come and go; `wrong` is the largest factor by which a duration is off."""
    chance = random.Random(SEED)
    told = [job_of(job, gpus, wrong ** chance.uniform(-1, 1)) for job in jobs]
    waits = _easy(told, nodes, gpus) if rule == "EASY" else _ours(told, nodes, gpus, rule)
    return _result(rule, "exact" if wrong == 1 else "wrong", told, waits, nodes * gpus, gpus)


def queue(rule: str) -> GangQueue:
    """Return a queue for all gangs, with the defaults that users get."""
    spec = {"whenBlocked": rule, "namespaceSelector": {}}
    return msgspec.convert({"metadata": {"name": "default"}, "spec": spec}, GangQueue)


def _ours(jobs: Sequence[Job], nodes: int, gpus: int, rule: str) -> list[float]:
    simulation = Simulation((gpu_node(f"node-{at:04}", gpus) for at in range(nodes)), [queue(rule)])
    return [(each.began or 0.0) - each.arrived for each in simulation.run(jobs)]


def _easy(jobs: Sequence[Job], nodes: int, gpus: int) -> list[float]:
    gangs = [
        easy.Gang(job.arrives, job.runs, _told(job), job.workers, int(job.requests[GPU]))
        for job in jobs
    ]
    return easy.Easy(nodes, gpus).waits(gangs)


def job_of(job: philly.Job, gpus: int, off_by: float) -> Job:
    """Return the Ray cluster of a job, whose told duration is off by a factor."""
    workers, size = (-(-job.gpus // gpus), gpus) if job.gpus >= gpus else (1, job.gpus)
    requests = {"cpu": str(10 * size), "memory": f"{100 * size}Gi", GPU: str(size)}
    runs = job.runs * 3600
    told = {names.EXPECTED_DURATION: f"{max(1, round(runs * off_by))}s"}
    return Job(job.name, job.arrives * 3600, runs, workers, requests, annotations=told)


def _told(job: Job) -> float:
    return float(job.annotations[names.EXPECTED_DURATION].removesuffix("s"))


def _result(
    rule: str,
    durations: str,
    jobs: Sequence[Job],
    waited: Sequence[float],
    gpus: int,
    of_a_node: int,
) -> Result:
    waits, runs = np.array(waited), np.array([job.runs for job in jobs])
    sizes = np.array([job.workers * int(job.requests[GPU]) for job in jobs])
    large = waits[sizes > of_a_node] if (sizes > of_a_node).any() else np.zeros(1)
    makespan = float((np.array([job.arrives for job in jobs]) + waits + runs).max())
    return Result(
        rule,
        durations,
        len(jobs),
        float((waits + runs).mean()),
        float(waits.mean()),
        float(np.percentile(waits, 99)),
        float(large.mean()),
        float(np.percentile(large, 99)),
        float((runs * sizes).sum() / (gpus * makespan)),
        makespan,
        tuple(waited),
    )


def table(results: Sequence[Result]) -> str:
    """Return the results as a table in Markdown, times in thousands of seconds; Strict is first.

    The last two columns count the gangs that are late against Strict, and tell the worst.
    """
    lines = [
        "| rule | durations | completion | wait | p99 | over 8 GPUs | p99 | use | late | worst |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in results:
        delays = r.delays(results[0])
        lines.append(
            f"| {r.rule} | {r.durations} | {r.completion / 1000:.0f} | {r.wait / 1000:.0f} | "
            f"{r.wait_p99 / 1000:.0f} | {r.large_wait / 1000:.0f} | "
            f"{r.large_wait_p99 / 1000:.0f} | {r.utilisation:.0%} | "
            f"{len(delays)} | {max(delays, default=0.0) / 1000:.0f} |"
        )
    return "\n".join(lines)


def replays(jobs: Sequence[philly.Job], nodes: int, gpus: int) -> list[Result]:
    """Replay under every rule, in processes beside each other: time is simulated."""
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        rules, wrong = zip(*RUNS, strict=True)
        return list(pool.map(partial(replay, jobs, nodes, gpus), rules, wrong))


def main(argv: Sequence[str] | None = None) -> None:
    """Replay one trace; print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.queueing", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--trace", type=Path, required=True, metavar="FILE")
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--gpus", type=int, default=8, help="GPUs of a node")
    parser.add_argument("--first", type=int, default=None, help="only so many jobs of the trace")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    arguments = parser.parse_args(argv)
    jobs = philly.read_jobs(arguments.trace)[: arguments.first]
    results = replays(jobs, arguments.nodes, arguments.gpus)
    print(table(results))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(result) for result in results], indent=1))


if __name__ == "__main__":
    main()
