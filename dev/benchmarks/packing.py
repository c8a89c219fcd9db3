"""Measures how many of a cluster's GPUs a packing rule brings to use.

    python -m benchmarks.packing --traces DIR --nodes FILE --pods FILE... --seeds 42-51

The experiment of the FGD paper (Weng et al., "Beware of Fragmentation", USENIX ATC 2023), so that
the figures stand beside those published with it: pods come one at a time and none leaves; one that
fits nowhere fails; they come until 130 % of the GPUs have been asked for. Equal scores fall to the
first node of an order that is drawn once per seed. A share of a GPU goes to the device it fills
best; devices are modelled here only, the rule is the product's own
(`scheduling.scoring.node_scores`).
"""

import argparse
import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.figures import Panel, draw
from benchmarks.openb import MOST_ON_NODE, Cluster, Machine, Pod, arrivals, read_machines, read_pods
from scheduling.model.amounts import Amounts, Positions
from scheduling.scoring.node_scores import PARTS, strands, typical_use

Curve = NDArray[np.float64]
Score = Callable[[Pod, Positions], Amounts]
"""What a rule says of the nodes at these positions for a pod: the lowest is taken."""

ARRIVED = 130
"""Per cent of the GPUs that are asked for in the end."""

LOOKED_AT = (100, ARRIVED)

PICTURE = 20
"""Pods decided on one picture of what is typical; a scheduler does not look anew for each."""

PUBLISHED = {
    "default": {"best fit": 93.08, "FGD": 95.39},
    "cpu050": {"best fit": 93.79, "FGD": 95.21},
    "cpu100": {"best fit": 93.44, "FGD": 95.35},
    "cpu200": {"best fit": 92.40, "FGD": 95.05},
    "cpu250": {"best fit": 91.45, "FGD": 93.41},
    "gpushare40": {"best fit": 91.69, "FGD": 94.15},
    "gpushare60": {"best fit": 89.36, "FGD": 91.40},
    "gpushare80": {"best fit": 87.01, "FGD": 89.31},
    "gpushare100": {"best fit": 85.01, "FGD": 86.90},
    "gpuspec10": {"best fit": 93.31, "FGD": 94.95},
    "gpuspec20": {"best fit": 93.30, "FGD": 94.84},
    "gpuspec25": {"best fit": 93.23, "FGD": 94.74},
    "gpuspec33": {"best fit": 93.09, "FGD": 94.55},
    "multigpu20": {"best fit": 93.93, "FGD": 95.65},
    "multigpu30": {"best fit": 94.72, "FGD": 96.46},
    "multigpu40": {"best fit": 95.23, "FGD": 96.99},
    "multigpu50": {"best fit": 95.74, "FGD": 97.18},
}
"""Allocation in per cent at 130 % arrived, mean of ten seeds, as published: file
experiments/analysis/expected_results/analysis_allo_discrete.csv of the paper's artefact
(github.com/hkust-adsl/kubernetes-scheduler-simulator)."""


# --- the rules ------------------------------------------------------------------------------


def first_fit(cluster: Cluster) -> Score:
    """Take the first node in the order of the seed."""
    del cluster
    return lambda _, nodes: np.zeros(len(nodes), dtype=np.int64)


def best_fit(cluster: Cluster) -> Score:
    """Take the node with the least left, as the paper's BestFit counts it: in whole per cents."""

    def score(pod: Pod, nodes: Positions) -> Amounts:
        cpu = (cluster.left[0, nodes] - pod.cpu) / 128_000
        gpu = (cluster.idle[nodes] - pod.asks) / 8_000
        fullness: Amounts = np.trunc(100 * (1 - (cpu + gpu) / 2)).astype(np.int64)
        return -fullness

    return score


def muster(cluster: Cluster) -> Score:
    """Take the node that the product's `order_nodes` puts first, devices counted in parts."""
    seen, typical = 0, [0, 0]

    def score(pod: Pod, nodes: Positions) -> Amounts:
        nonlocal seen, typical
        if seen % PICTURE == 0:
            in_use = cluster.size * PARTS - cluster.idle
            typical = typical_use(in_use, cluster.offered - cluster.left)
        seen += 1
        idle, left = cluster.idle[nodes], cluster.left[:, nodes]
        asked = np.array([[pod.cpu], [pod.memory]])
        added = strands(idle, pod.asks, left, asked, typical)
        share = idle // np.maximum(cluster.size[nodes], 1)
        tightness = 0 if pod.devices else cluster.fitting_times(pod, nodes)
        return (added * (PARTS + 1) + share) * (MOST_ON_NODE + 1) + tightness

    return score


RULES: Mapping[str, Callable[[Cluster], Score]] = {
    "first fit": first_fit,
    "best fit": best_fit,
    "Muster": muster,
}


# --- one run --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Run:
    """What came of one seed: GPUs in use in per cent by per cent arrived, and pods that failed."""

    curve: Curve
    failed: int
    failed_gpus: float


def run(
    machines: Sequence[Machine],
    pods: Sequence[Pod],
    seed: int,
    rule: Callable[[Cluster], Score],
) -> Run:
    """Let pods come until ARRIVED per cent of the GPUs have been asked for."""
    chance = random.Random(seed)
    total = sum(machine.devices for machine in machines) * PARTS
    coming = arrivals(pods, ARRIVED * total // 100, chance)
    cluster = Cluster(chance.sample(machines, len(machines)))
    score = rule(cluster)
    placed = np.array([_placed(pod, cluster, score) for pod in coming])
    asked = np.array([pod.asks for pod in coming])
    return Run(
        _curve(np.cumsum(asked) / total, np.cumsum(asked * placed) / total),
        int((~placed).sum()),
        float(asked[~placed].sum() / PARTS),
    )


def _placed(pod: Pod, cluster: Cluster, score: Score) -> bool:
    nodes = cluster.fitting(pod)
    if not len(nodes):
        return False
    cluster.put(pod, int(nodes[np.argmin(score(pod, nodes))]))
    return True


def _curve(arrived: Curve, in_use: Curve) -> Curve:
    """Return the mean of what was in use over all moments that round to the same per cent."""
    at = np.rint(100 * arrived).astype(np.int64)
    moments = np.bincount(at, minlength=ARRIVED + 1)[: ARRIVED + 1]
    summed = np.bincount(at, weights=100 * in_use, minlength=ARRIVED + 1)[: ARRIVED + 1]
    curve = np.full(len(summed), np.nan)
    np.divide(summed, moments, out=curve, where=moments > 0)
    return curve


# --- all runs -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Result:
    """One rule on one list over the seeds: per cent of the GPUs in use, and what failed."""

    pods: str
    rule: str
    allocation: dict[int, float]
    spread: dict[int, float]
    failed_pods: float
    failed_gpus: float
    seconds_per_run: float
    curve: list[float]


def measured(
    name: str,
    machines: Sequence[Machine],
    pods: Sequence[Pod],
    seeds: Sequence[int],
    rule: str,
) -> Result:
    """Run one rule on one list with every seed."""
    began = time.perf_counter()
    runs = [run(machines, pods, seed, RULES[rule]) for seed in seeds]
    curves = np.array([each.curve for each in runs])
    return Result(
        name,
        rule,
        {at: round(float(curves[:, at].mean()), 2) for at in LOOKED_AT},
        {at: round(float(curves[:, at].std()), 2) for at in LOOKED_AT},
        float(np.mean([each.failed for each in runs])),
        float(np.mean([each.failed_gpus for each in runs])),
        round((time.perf_counter() - began) / len(seeds), 2),
        [round(float(value), 3) for value in curves.mean(axis=0)],
    )


def table(results: Sequence[Result]) -> str:
    """Return the results as a table in Markdown, with the published figures below each list."""
    lines = [
        "| pods | rule | in use at 100 % | in use at 130 % (sd) | failed pods | failed GPUs |",
        "|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(result.pods for result in results):
        lines += [_line(result) for result in results if result.pods == name]
        lines += [
            f"| {name} | {rule} (published) | | {value:.2f} | | |"
            for rule, value in PUBLISHED.get(name, {}).items()
        ]
    return "\n".join(lines)


def _line(result: Result) -> str:
    first, last = (result.allocation[at] for at in LOOKED_AT)
    return (
        f"| {result.pods} | {result.rule} | {first:.2f} | {last:.2f} ({result.spread[ARRIVED]:.2f})"
        f" | {result.failed_pods:.0f} | {result.failed_gpus:.0f} |"
    )


def panel(name: str, results: Sequence[Result]) -> Panel:
    """Draw the curves of one list over the upper half, with what was published for the end."""
    half = range(ARRIVED // 2, ARRIVED + 1)
    lines = {r.rule: (half, [r.curve[at] for at in half]) for r in results if r.pods == name}
    levels = {f"{rule}, published": value for rule, value in PUBLISHED.get(name, {}).items()}
    return Panel(name, "GPUs asked for, %", "GPUs in use, %", lines, levels, lowest=80)


def seeds_of(text: str) -> list[int]:
    """Read `42-51`, `42` or `42,44`."""
    seeds: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        seeds += range(int(first), int(last or first) + 1)
    return seeds


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.packing", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--traces", type=Path, required=True, metavar="DIR")
    parser.add_argument("--nodes", default="openb_node_list_gpu_node.csv", metavar="FILE")
    parser.add_argument("--pods", nargs="+", default=["openb_pod_list_default.csv"], metavar="FILE")
    parser.add_argument("--seeds", type=seeds_of, default="42-51")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write a PNG there")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure every rule on every list; print a table."""
    arguments = _arguments(argv)
    machines = read_machines(arguments.traces / arguments.nodes)
    results = []
    for file in arguments.pods:
        pods = read_pods(arguments.traces / file)
        name = Path(file).stem.removeprefix("openb_pod_list_")
        results += [measured(name, machines, pods, arguments.seeds, rule) for rule in RULES]
    print(table(results))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(result) for result in results], indent=1))
    if arguments.plot:
        draw(
            [panel(name, results) for name in dict.fromkeys(r.pods for r in results)],
            arguments.plot,
        )


if __name__ == "__main__":
    main()
