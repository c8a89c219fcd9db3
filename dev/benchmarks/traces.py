"""Runs the packing rule on the published traces, beside the other cases of `make bench`.

The traces are not in this repository; MUSTER_TRACES names the folder that they lie in. Pods that
come one at a time (`packing`) are measured pair by pair, one seed a pair, gangs that come and go
(`philly`) once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks import defrag, foresee, packing, philly, queueing
from benchmarks.measure import Outcome, Row, beyond_within, judged, median_within, stated
from benchmarks.openb import read_machines, read_pods

VARIABLE = "MUSTER_TRACES"
NODES = "openb_node_list_gpu_node.csv"
LISTS = ("default", "multigpu20")
FIRST_SEED = 42
PHILLY = (("muri_philly_trace1.csv", 18), ("muri_philly_trace3.csv", 8))
ON_DEFAULT = 95.8
"""Per cent of the GPUs in use at 130 % arrived that the rule aims at on the list `default`."""


class NoTracesError(Exception):
    """The folder of the traces is not set."""


def folder() -> Path:
    """Return the folder of the traces."""
    named = os.environ.get(VARIABLE, "")
    if not named or not Path(named).is_dir():
        raise NoTracesError(
            f'{VARIABLE}: "{named}" is not a folder; allowed: one that holds the published traces '
            "that docs/benchmarks-packing.md names"
        )
    return Path(named)


def measure_packing(seeds: int) -> Outcome:
    """Compare the GPUs in use at 130 % arrived with first fit and the published figures."""
    rows = [_in_use(folder(), name, range(FIRST_SEED, FIRST_SEED + seeds)) for name in LISTS]
    return Outcome(rows, notes=[f"{rule}: {said}" for rule, said in _published().items()])


def _in_use(traces: Path, name: str, seeds: Sequence[int]) -> Row:
    machines = read_machines(traces / NODES)
    pods = read_pods(traces / f"openb_pod_list_{name}.csv")
    floor, ours = (
        tuple(
            float(packing.run(machines, pods, seed, packing.RULES[rule]).curve[packing.ARRIVED])
            for seed in seeds
        )
        for rule in ("first fit", "Muster")
    )
    row = Row(f"GPUs in use on {name}, floor first fit", "%", ours, floor)
    least = max(packing.PUBLISHED[name]["FGD"], ON_DEFAULT if name == "default" else 0.0)
    return judged(row, f"mean ≥ {least:g} %", lambda r: sum(r.ours) / len(r.ours) >= least)


def _published() -> dict[str, str]:
    return {
        f"published for {name}": ", ".join(
            f"{rule} {value:g} %" for rule, value in packing.PUBLISHED[name].items()
        )
        for name in LISTS
    }


def measure_philly(_runs: int) -> Outcome:
    """Compare how long gangs are kept out though perfect packing had room; one replay says it."""
    rows = []
    for file, nodes in PHILLY:
        jobs = philly.read_jobs(folder() / file)
        found = [philly.measured(file, jobs, nodes, rule) for rule in ("best fit", "Muster")]
        floor, ours = ((result.kept_out_hours,) for result in found)
        name = f"gang hours kept out on {Path(file).stem} ({nodes} nodes), floor best fit"
        rows.append(judged(Row(name, "h", ours, floor), "≤ the floor", lambda r: r.ours <= r.floor))
    return Outcome(rows)


MOST_LATE = 2.0
"""Per cent of the gangs that may begin later under Backfill than under Strict, by more than a tenth
of their wait."""

EASY = 412_000.0
"""Seconds of average completion on trace 3 under EASY backfilling, with 8 nodes of 8 GPUs.

Measured with a simulator of gangs and nodes that is not Muster's; first in, first out gives 991,000
there and best effort 481,000, as Muster's rules do without ageing.
"""


def measure_queueing(_runs: int) -> Outcome:
    """Compare the rules for blocked gangs on a trace of nearly a thousand; one replay says it."""
    file, nodes = PHILLY[1]
    found = queueing.replays(philly.read_jobs(folder() / file), nodes, 8)
    strict, _, backfill, wrong, _, easy = found
    rows = [
        judged(
            _row("completion, Backfill, floor EASY", backfill.completion, EASY),
            "≤ the floor",
            lambda row: row.ours <= row.floor,
        ),
        judged(
            _row(
                "wait over 8 GPUs, Backfill, floor Strict", backfill.large_wait, strict.large_wait
            ),
            "≤ the floor",
            lambda row: row.ours <= row.floor,
        ),
        median_within(Row("late gangs, Backfill", "%", (_late(backfill, strict),)), MOST_LATE),
        stated(_row("completion, Backfill, wrong durations", wrong.completion, EASY)),
        stated(
            _row(
                "wait over 8 GPUs, Backfill, wrong durations, floor EASY",
                wrong.large_wait,
                easy.large_wait,
            )
        ),
        stated(Row("late gangs, Backfill, wrong durations", "%", (_late(wrong, strict),))),
    ]
    notes = ["queues have the defaults that users get", *queueing.table(found).splitlines()]
    return Outcome(rows, notes=notes)


def _row(name: str, ours: float, floor: float) -> Row:
    return Row(name, "s", (ours,), (floor,))


def measure_defrag(seeds: int) -> Outcome:
    """Count the large gangs that moves let start on a full cluster, beside those without moves."""
    machines, rows, notes = read_machines(folder() / NODES), [], list(defrag.HEAD.splitlines())
    for name in LISTS:
        pods = read_pods(folder() / f"openb_pod_list_{name}.csv")
        found = [defrag.run(machines, pods, FIRST_SEED + at) for at in range(seeds)]
        without = tuple(float(each.without) for each in found)
        ours = tuple(float(each.without + each.moved) for each in found)
        row = Row(f"gangs of {defrag.SIZE} GPUs that start on {name}", "gangs", ours, without)
        rows.append(judged(row, "> the floor", lambda row: sum(row.ours) > sum(row.floor)))
        notes.append(defrag.row(name, found))
    return Outcome(rows, notes=notes)


NODES_FORESEEN = 8
"""Of 8 GPUs, for both traces."""
EXACT_AIM, EXACT_P90_AIM, WRONG_AIM = 5.0, 60.0, 60.0
"""Per cent of the wait by which an estimate may be off as a gang comes: median, p90, median."""
WITHIN_AIM = (75.0, 90.0)
"""Per cent of the gangs that are to start within their range, with wrong and learned durations."""
BESIDE = 5.0
"""Per cent of the wait by which an estimate may be worse than a baseline."""


def measure_estimates(gangs: int) -> Outcome:
    """Compare when `gangs` of each replay were told that they start with when they did."""
    rows, notes = [], []
    for file, _ in PHILLY:
        jobs = philly.read_jobs(folder() / file)
        found = foresee.replays(jobs, NODES_FORESEEN, foresee.GPUS, gangs)
        rows += [row for each in found for row in _of_estimates(Path(file).stem, each)]
        notes += [Path(file).stem, *foresee.HEAD.splitlines(), *map(foresee.row, found)]
    return Outcome(rows, notes=notes)


def _of_estimates(trace: str, found: foresee.Found) -> Iterator[Row]:
    """Yield what is aimed at of one replay: errors as gangs come, and how many start in range."""
    where = f"{found.durations} durations, {found.rule}, {trace}"
    first = found.errors("first")
    if not first:
        return
    median = foresee.percentile(first, 50)
    if found.durations == "exact":
        yield median_within(Row(f"error, {where}", "%", (median,)), EXACT_AIM)
        p90 = Row(f"error, p90, {where}", "%", (foresee.percentile(first, 90),))
        yield median_within(p90, EXACT_P90_AIM)
    elif found.durations == "wrong":
        yield median_within(Row(f"error, {where}", "%", (median,)), WRONG_AIM)
    for kind, name in (("planned", "plan of starts"), ("mean_of_ten", "mean of ten")):
        errors = found.errors(kind)
        if errors:
            beside = (foresee.percentile(errors, 50),)
            yield beyond_within(
                Row(f"error, floor {name}, {where}", "%", (median,), beside), BESIDE
            )
    if found.durations != "exact":
        low, high = WITHIN_AIM
        yield judged(
            Row(f"within the range, {where}", "%", (found.inside,)),
            f"{low:g} to {high:g} %",
            lambda row: low <= row.ours[0] <= high,
        )


def _late(result: queueing.Result, strict: queueing.Result) -> float:
    return 100 * len(result.delays(strict)) / result.gangs
