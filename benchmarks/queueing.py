"""Replays a trace of gangs through the coordinator's state machine, by each rule of a queue.

    python -m benchmarks.queueing --trace DIR/muri_philly_trace3.csv --nodes 8 --gpus 8

The jobs are those of Microsoft's Philly trace as Muri carries them (github.com/Rivendile/Muri).
Each becomes a Ray cluster: a head without devices and workers of whole nodes, or one smaller
worker. Time is simulated (`benchmarks.simulation`); every decision is the product's own. Durations
are told exactly, or wrong by a random factor of 1/3 to 3, the same for all rules.
"""

import argparse
import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec
import numpy as np

from benchmarks import philly
from benchmarks.simulation import GPU, Course, Job, Simulation, gpu_node
from kube.objects import names
from kube.objects.queue import GangQueue

RULES = ("Strict", "BestEffort", "Backfill")
NEVER = 10**9
"""Passes and seconds until a gang ages: the rules are to be seen alone."""

SEED = 20261122
MOST_WRONG = 3.0


@dataclass(frozen=True)
class Result:
    """One replay; times in seconds. `large` are the gangs of more GPUs than a node has."""

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


def replay(jobs: Sequence[philly.Job], nodes: int, gpus: int, rule: str, wrong: float) -> Result:
    """Let the jobs come and go; `wrong` is the largest factor by which a duration is off."""
    chance = random.Random(SEED)
    told = [_job(job, gpus, wrong ** chance.uniform(-1, 1)) for job in jobs]
    simulation = Simulation((gpu_node(f"node-{at:04}", gpus) for at in range(nodes)), [queue(rule)])
    courses = simulation.run(told)
    return _result(rule, "exact" if wrong == 1 else "wrong", courses, nodes * gpus, gpus)


def queue(rule: str) -> GangQueue:
    """Return a queue for all gangs in which none ever ages."""
    ageing = {"maxPasses": NEVER, "maxWaitSeconds": NEVER}
    spec = {"whenBlocked": rule, "namespaceSelector": {}, "ageing": ageing}
    return msgspec.convert({"metadata": {"name": "default"}, "spec": spec}, GangQueue)


def _job(job: philly.Job, gpus: int, off_by: float) -> Job:
    workers, size = (-(-job.gpus // gpus), gpus) if job.gpus >= gpus else (1, job.gpus)
    requests = {"cpu": str(10 * size), "memory": f"{100 * size}Gi", GPU: str(size)}
    runs = job.runs * 3600
    told = {names.EXPECTED_DURATION: f"{max(1, round(runs * off_by))}s"}
    return Job(job.name, job.arrives * 3600, runs, workers, requests, annotations=told)


def _result(
    rule: str, durations: str, courses: Sequence[Course], gpus: int, of_a_node: int
) -> Result:
    waits = np.array([(each.began or 0.0) - each.arrived for each in courses])
    runs = np.array([each.job.runs for each in courses])
    sizes = np.array([each.job.workers * int(each.job.requests[GPU]) for each in courses])
    large = waits[sizes > of_a_node] if (sizes > of_a_node).any() else np.zeros(1)
    makespan = max(each.ended or 0.0 for each in courses)
    return Result(
        rule,
        durations,
        len(courses),
        float((waits + runs).mean()),
        float(waits.mean()),
        float(np.percentile(waits, 99)),
        float(large.mean()),
        float(np.percentile(large, 99)),
        float((runs * sizes).sum() / (gpus * makespan)),
        float(makespan),
    )


def table(results: Sequence[Result]) -> str:
    """Return the results as a table in Markdown, times in thousands of seconds."""
    lines = [
        "| rule | durations | completion | wait | p99 | wait over 8 GPUs | p99 | GPUs in use |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r.rule} | {r.durations} | {r.completion / 1000:.0f} | {r.wait / 1000:.0f} | "
        f"{r.wait_p99 / 1000:.0f} | {r.large_wait / 1000:.0f} | {r.large_wait_p99 / 1000:.0f} | "
        f"{r.utilisation:.0%} |"
        for r in results
    ]
    return "\n".join(lines)


def replays(jobs: Sequence[philly.Job], nodes: int, gpus: int) -> list[Result]:
    """Replay under every rule; only Backfill looks at durations."""
    results = [replay(jobs, nodes, gpus, rule, 1.0) for rule in RULES]
    return [*results, replay(jobs, nodes, gpus, "Backfill", MOST_WRONG)]


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
