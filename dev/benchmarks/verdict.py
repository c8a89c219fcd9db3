"""Measures how long the core takes to decide, against the least work that any answer needs.

    python -m benchmarks.verdict --nodes 5000 50000

The world: nodes of eight GPUs, ten bound pods per node in sixty shapes, and waiting gangs of a
head and one to four groups, two to a thousand pods. Measured are the first cycle over all gangs,
the cycle after one pod has left a node, the verdict for one gang alone by its size, and how long
the most awkward gangs can hold a cycle up (`benchmarks.absurd`). The floors, in the same run: a
loop in pure Python over the nodes for one head and one group, and one numpy pass over the node
columns per shape. A head with one group is decided from scratch, as a pod of the gang were the
first to be seen, and as the product does: knowing the cycle before, since when a pod has left.
"""

import argparse
import json
import random
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.absurd import samples
from benchmarks.absurd import table as absurd_table
from benchmarks.figures import Panel, draw
from benchmarks.measure import Outcome, Row, median_within, ratio_within
from scheduling.admission.refusal_memory import Memory
from scheduling.cycle import next_cycle, run_cycle
from scheduling.filters.node_resources_fit import pods_per_node
from scheduling.model.gang import GangKey, Group, PendingGang
from scheduling.model.node import Node
from scheduling.model.pod import PodShape
from scheduling.model.verdict import Admitted
from scheduling.queueing.queues import one_queue
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.node_table import NodeTable

GPU = "nvidia.com/gpu"
GIBIBYTE = 2**30
MACHINE = {"cpu": 128_000, "memory": 1024 * GIBIBYTE, GPU: 8, "pods": 110}
PODS_PER_NODE = 10
GANGS = 1_000
SIZES = (10, 100, 1_000)
"""Gangs are told apart by whether they have at most so many pods."""

Milliseconds = float


def shape_of(gpus: int, cpu: int, memory: int) -> PodShape:
    """Return the shape of a pod; `cpu` in thousandths, `memory` in GiB."""
    asked = {"cpu": cpu, "memory": memory * GIBIBYTE, GPU: gpus, "pods": 1}
    return PodShape(tuple(sorted((name, amount) for name, amount in asked.items() if amount)))


HEAD = shape_of(0, 2_000, 8)
ON_GPUS = [
    shape_of(gpus, 1_000 * cores * gpus, memory * gpus)
    for gpus in (1, 2, 4, 8)
    for cores in (4, 8, 12)
    for memory in (32, 64, 96, 128)
]
ON_CPUS = [shape_of(0, 1_000 * cores, 4 * cores) for cores in range(1, 13)]
"""With those on GPUs sixty shapes."""


class World:
    """The nodes with what is bound on them, and the gangs that wait."""

    def __init__(self, nodes: int, gangs: int, chance: random.Random) -> None:
        self._chance = chance
        self._table = NodeTable()
        self._memory: Memory | None = None
        self._bound: list[tuple[str, PodShape]] = []
        for at in range(nodes):
            name = f"node-{at:05}"
            self._table.put_node(Node(name, {}, (), unschedulable=False, allocatable=MACHINE))
            self._fill(name)
        self.waiting = [self._gang(at) for at in range(gangs)]

    def _fill(self, node: str) -> None:
        """Bind pods drawn at random, with GPUs and without by turns as long as they fit."""
        free = dict(MACHINE)
        for at in range(PODS_PER_NODE):
            drawn = [self._chance.choice(ON_GPUS), self._chance.choice(ON_CPUS), ON_CPUS[0]]
            for shape in drawn[1 - at % 2 :]:
                if all(free[name] >= amount for name, amount in shape.requests):
                    self._bind(node, shape, free)
                    break

    def _bind(self, node: str, shape: PodShape, free: dict[str, int]) -> None:
        for name, amount in shape.requests:
            free[name] -= amount
        self._table.use(node, shape.requests, +1)
        self._bound.append((node, shape))

    def _gang(self, at: int) -> PendingGang:
        pods = int(2 * 500 ** self._chance.random())
        groups = min(self._chance.randint(1, 4), pods - 1)
        shapes = self._chance.sample(ON_GPUS, groups)
        counts = [(pods - 1) // groups] * groups
        workers = [
            Group(f"workers-{i}", "", shape, count)
            for i, (shape, count) in enumerate(zip(shapes, counts, strict=True))
        ]
        key = GangKey("team", f"gang-{at:04}")
        return PendingGang(key, 0, float(at), (Group("head", "", HEAD, 1), *workers))

    @property
    def bound(self) -> int:
        """Return how many pods are bound."""
        return len(self._bound)

    def columns(self) -> NodeSnapshot:
        """Return the nodes as they stand."""
        return self._table.snapshot()

    def leave(self) -> None:
        """Let one pod with GPUs go, as its end frees the room."""
        at = next(at for at, (_, shape) in enumerate(self._bound) if GPU in dict(shape.requests))
        node, shape = self._bound.pop(at + self._chance.randrange(len(self._bound) - at))
        self._table.use(node, shape.requests, -1)

    def settle(self) -> int:
        """Run a cycle; admitted gangs take their room and no longer wait."""
        admitted = {}
        decisions, self._memory = next_cycle(one_queue(self.waiting), self.columns(), self._memory)
        for decision in decisions:
            if isinstance(decision.verdict, Admitted):
                admitted[decision.key] = decision.verdict.placement
        for placement in admitted.values():
            for each in placement.assignments:
                for node, pods in each.nodes:
                    self._table.use(node, each.requests, pods)
        self.waiting = [gang for gang in self.waiting if gang.key not in admitted]
        return len(admitted)


# --- measuring ------------------------------------------------------------------------------


def timed(work: Callable[[], object]) -> Milliseconds:
    """Return how long it takes once, in time of the processor: it computes and never waits.

    So what else the machine does counts only where it takes the caches.
    """
    began = time.thread_time()
    work()
    return 1000 * (time.thread_time() - began)


def middle(work: Callable[[], object], times: int) -> Milliseconds:
    """Return the median of several times."""
    return float(np.median([timed(work) for _ in range(times)]))


def python_loop(columns: NodeSnapshot, head: PodShape, worker: PodShape, count: int) -> bool:
    """Say whether a head and workers fit, node by node in Python: the first floor."""
    free = {name: columns.free[at].tolist() for name, at in columns.row.items()}
    left, placed = count, False
    for at in range(len(columns.names)):
        room = {name: free[name][at] for name in free}
        if not placed and all(room[name] >= amount for name, amount in head.requests):
            placed = True
            for name, amount in head.requests:
                room[name] -= amount
        left -= max(0, min(room[name] // amount for name, amount in worker.requests))
    return placed and left <= 0


def numpy_passes(columns: NodeSnapshot, shapes: Sequence[PodShape]) -> list[int]:
    """Return how often each shape fits, in one pass each: the second floor."""
    return [int(pods_per_node(each.requests, columns.row, columns.free).sum()) for each in shapes]


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Verdicts for gangs of at most so many pods, each alone and from scratch."""

    pods: int
    gangs: int
    p50: Milliseconds
    p99: Milliseconds


@dataclass(frozen=True, slots=True)
class Result:
    """What one size of cluster took."""

    nodes: int
    bound: int
    gangs: int
    admitted: int
    first_cycle: Milliseconds
    next_cycles: tuple[Milliseconds, ...]
    from_scratch: Milliseconds
    loop: Milliseconds
    passes: Milliseconds
    placed: Milliseconds
    refused: Milliseconds
    placed_next: Milliseconds
    refused_next: Milliseconds
    memory_mb: float
    verdicts: list[Verdicts]


def measured(nodes: int, gangs: int = GANGS, cycles: int = 20) -> Result:
    """Build a world and measure it."""
    world = World(nodes, gangs, random.Random(1))
    columns, waiting, bound = world.columns(), world.waiting, world.bound
    alone = _alone(waiting, columns)
    world.leave()
    sizes = _head_and_group(columns, world.columns())
    tracemalloc.start()
    world.settle()
    held = tracemalloc.get_traced_memory()[0] / 2**20
    tracemalloc.stop()
    world = World(nodes, gangs, random.Random(1))
    first = timed(world.settle)
    admitted = gangs - len(world.waiting)
    after = [_after_leaving(world) for _ in range(cycles)]
    scratch = middle(lambda: run_cycle(world.waiting, world.columns()), 3)
    return Result(
        nodes,
        bound,
        gangs,
        admitted,
        first,
        tuple(after),
        scratch,
        *sizes,
        held,
        alone,
    )


def _after_leaving(world: World) -> Milliseconds:
    world.leave()
    return timed(world.settle)


def _alone(gangs: Sequence[PendingGang], columns: NodeSnapshot) -> list[Verdicts]:
    """Decide each gang alone, and tell them apart by size."""
    taken: dict[int, list[Milliseconds]] = {most: [] for most in SIZES}
    for gang in gangs:
        pods = sum(group.count for group in gang.minimum)
        most = next(most for most in SIZES if pods <= most)
        taken[most].append(timed(lambda gang=gang: run_cycle([gang], columns)))  # type: ignore[misc]
    return [
        Verdicts(most, len(times), *(float(np.percentile(times, at)) for at in (50, 99)))
        for most, times in taken.items()
        if times
    ]


def _head_and_group(
    columns: NodeSnapshot, later: NodeSnapshot
) -> tuple[Milliseconds, Milliseconds, Milliseconds, Milliseconds, Milliseconds, Milliseconds]:
    """Return both floors, and the verdicts for a head with one group that fits or not.

    First from scratch, then knowing a cycle on the columns before.
    """
    worker = ON_GPUS[0]
    most = numpy_passes(columns, [worker])[0]
    count = min(64, most)
    fits, not_fits = (_pair("one", worker, pods) for pods in (count, 2 * most + 1))
    [_, before] = next_cycle(one_queue([_pair("other", worker, 2 * most + 1)]), columns, None)
    return (
        middle(lambda: python_loop(columns, HEAD, worker, count), 3),
        middle(lambda: numpy_passes(columns, (HEAD, worker)), 21),
        middle(lambda: run_cycle([fits], columns), 21),
        middle(lambda: run_cycle([not_fits], columns), 21),
        middle(lambda: next_cycle(one_queue([fits]), later, before), 21),
        middle(lambda: next_cycle(one_queue([not_fits]), later, before), 21),
    )


def _pair(name: str, worker: PodShape, count: int) -> PendingGang:
    """Return a gang of a head and one group."""
    groups = Group("head", "", HEAD, 1), Group("workers", "", worker, count)
    return PendingGang(GangKey("team", name), 0, 0.0, groups)


def measure(runs: int) -> Outcome:
    """Measure clusters of 5,000 and 50,000 nodes, so many times each, and the absurd gangs."""
    rows, tables = [], {}
    for nodes in (5_000, 50_000):
        results = [measured(nodes) for _ in range(runs)]
        rows += _rows(nodes, results)
        for each in results[-1].verdicts:
            tables[f"{nodes} nodes, ms for a gang of at most {each.pods} pods"] = {
                "p50": each.p50,
                "p99": each.p99,
            }
    worst = max(sample.milliseconds for _ in range(runs) for sample in samples())
    rows.append(median_within(Row("slowest verdict for an absurd gang", "ms", (worst,)), 500))
    return Outcome(rows, tables)


def _rows(nodes: int, results: Sequence[Result]) -> list[Row]:
    """Return what the runs on clusters of one size say."""
    passes = tuple(r.passes for r in results)
    said = {
        "placed, from scratch": tuple(r.placed for r in results),
        "refused, from scratch": tuple(r.refused for r in results),
        "placed, next cycle": tuple(r.placed_next for r in results),
        "refused, next cycle": tuple(r.refused_next for r in results),
    }
    after = tuple(took for r in results for took in r.next_cycles)
    loops = tuple(r.loop for r in results)
    of = f"{nodes} nodes: "
    return [
        Row(f"{of}first cycle, {GANGS} gangs", "ms", tuple(r.first_cycle for r in results)),
        median_within(Row(f"{of}cycle after a pod left", "ms", after), 20),
        Row(f"{of}slowest cycle after a pod left", "ms", (max(after),)),
        Row(f"{of}memory of a cycle", "MB", tuple(r.memory_mb for r in results)),
        Row(
            f"{of}head and group placed, beside a Python loop",
            "ms",
            said["placed, from scratch"],
            loops,
        ),
        *(
            ratio_within(
                Row(f"{of}head and group {name}, beside numpy passes", "ms", took, passes), 5
            )
            for name, took in said.items()
        ),
    ]


# --- saying ---------------------------------------------------------------------------------


def table(results: Sequence[Result]) -> str:
    """Return the results as tables in Markdown; times in milliseconds."""
    lines = [
        "| nodes (pods) | first cycle | after a pod left: p50 (max) | from scratch | memory, MB |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {r.nodes} ({r.bound}) | {r.first_cycle:.0f} ({r.admitted} of {r.gangs} admitted)"
        f" | {np.median(r.next_cycles):.1f} ({max(r.next_cycles):.1f}) | {r.from_scratch:.0f}"
        f" | {r.memory_mb:.0f} |"
        for r in results
    ]
    lines += [
        "",
        "| nodes | Python loop | numpy passes | placed | refused | placed, next | refused, next |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {r.nodes} | {r.loop:.1f} | {r.passes:.2f} | "
        + " | ".join(
            f"{took:.2f} ({took / r.passes:.1f} x)"
            for took in (r.placed, r.refused, r.placed_next, r.refused_next)
        )
        + " |"
        for r in results
    ]
    lines += ["", "| nodes | gangs of at most | number | p50 | p99 |", "|---|---|---|---|---|"]
    lines += [
        f"| {r.nodes} | {each.pods} pods | {each.gangs} | {each.p50:.2f} | {each.p99:.2f} |"
        for r in results
        for each in r.verdicts
    ]
    return "\n".join(lines)


def panel(results: Sequence[Result]) -> Panel:
    """Draw the verdict for one gang by its size, and the floors."""
    lines: dict[str, tuple[Sequence[float], Sequence[float]]] = {}
    for r in results:
        sizes = [float(each.pods) for each in r.verdicts]
        lines[f"p50, {r.nodes} nodes"] = sizes, [each.p50 for each in r.verdicts]
        lines[f"p99, {r.nodes} nodes"] = sizes, [each.p99 for each in r.verdicts]
    levels = {f"Python loop, {r.nodes} nodes": r.loop for r in results}
    return Panel("verdict for one gang", "pods, at most", "milliseconds", lines, levels, "log")


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verdict", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--nodes", nargs="+", type=int, default=[5_000, 50_000])
    parser.add_argument("--gangs", type=int, default=GANGS)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write a PNG there")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure each size of cluster; print tables."""
    arguments = _arguments(argv)
    results = [measured(nodes, arguments.gangs) for nodes in arguments.nodes]
    print(table(results))
    print(f"\n{absurd_table(samples())}")
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(result) for result in results], indent=1))
    if arguments.plot:
        draw([panel(results)], arguments.plot)


if __name__ == "__main__":
    main()
