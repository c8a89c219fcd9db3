"""Counts the large gangs that moves let start on a full cluster, and what they cost.

    python -m benchmarks.defrag --traces DIR

Pods of a list of Alibaba's openb trace come to its nodes and are packed by the product's own rule,
as in `benchmarks.packing`, until 95 % of the GPUs are in use. Then gangs wait for eight GPUs of one
node: some start without moves, the others as `cheapest_moves` says. Each pod that holds whole GPUs
of any model is a gang that may be moved, and has run for an hour: a GPU moved is a GPU-hour lost.
"""

import argparse
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.openb import Cluster, Machine, Pod, arrivals, read_machines, read_pods
from benchmarks.packing import muster, seeds_of
from scheduling.cycle import run_cycle
from scheduling.defragmentation.movable import Movable
from scheduling.defragmentation.moves import Moves, Running, cheapest_moves
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.gang import GangKey, Group, PendingGang
from scheduling.model.node import Node
from scheduling.model.placement import Placement
from scheduling.model.pod import PodShape
from scheduling.model.preemption import GangPart
from scheduling.model.verdict import Admitted
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.scoring.node_scores import PARTS
from scheduling.state.node_table import NodeTable

GPU: Final = "nvidia.com/gpu"
IN_USE: Final = 95
"""Per cent of the GPUs."""
MOST: Final = 20
"""Gangs that wait."""
SIZE: Final = 8
CPU_OF_GPU: Final = 8_000
MEMORY_OF_GPU: Final = 32 * 2**30
HOUR: Final = 1_000_000
"""A GPU-hour, in what moves lose."""


@dataclass(frozen=True, slots=True)
class Found:
    """What came of one seed: gangs that start without moves, with them, and what those cost."""

    idle: int
    without: int
    moved: int
    gpu_hours: float
    gangs_moved: int
    cheapest: int
    seconds: tuple[float, ...]


class Full:
    """The cluster once it is full: what pods hold, and which of them may be moved."""

    def __init__(self, machines: Sequence[Machine], pods: Sequence[Pod], seed: int) -> None:
        chance = random.Random(seed)
        self._table = NodeTable()
        ordered = chance.sample(machines, len(machines))
        cluster, total = Cluster(ordered), sum(each.devices for each in machines) * PARTS
        for at, machine in enumerate(ordered):
            self._table.put_node(_node(at, machine))
        self._movable: dict[GangKey, tuple[PodShape, str]] = {}
        score, taken = muster(cluster), 0
        for number, pod in enumerate(arrivals(pods, 2 * total, chance)):
            nodes = cluster.fitting(pod)
            if len(nodes):
                at = int(nodes[np.argmin(score(pod, nodes))])
                self._put(number, pod, at, cluster)
                taken += pod.asks
            if taken >= IN_USE * total // 100:
                break

    def _put(self, number: int, pod: Pod, at: int, cluster: Cluster) -> None:
        before = int(cluster.whole[at])
        cluster.put(pod, at)
        devices = before - int(cluster.whole[at])
        shape = _shape(pod.cpu, pod.memory, devices)
        self.use(shape, _name(at), 1)
        if devices and not pod.shares and not pod.models:
            self._movable[GangKey("openb", f"pod-{number:05}")] = shape, _name(at)

    def use(self, shape: PodShape, node: str, sign: int) -> None:
        """Take room on a node, or give it back."""
        self._table.use(node, shape.requests, sign)

    @property
    def idle(self) -> int:
        """Return how many whole GPUs are idle."""
        nodes = self._table.snapshot()
        return int(nodes.free[nodes.row[GPU]].sum())

    def start(self, gang: PendingGang) -> bool:
        """Start a gang where it fits without moves."""
        (decision,) = run_cycle([gang], self._table.snapshot())
        if not isinstance(decision.verdict, Admitted):
            return False
        self._place(gang, decision.verdict.placement)
        return True

    def moves(self, gang: PendingGang) -> Moves | None:
        """Find moves by which a gang starts, make them, and start it."""
        movables = [_movable(key, *each) for key, each in self._movable.items()]
        room = FreeCapacity.of(self._table.snapshot())
        found = cheapest_moves(gang, Running(movables, room, QuotaTree(())))
        if not isinstance(found, Moves):
            return None
        for each in found.moves:
            shape, node = self._movable[each.gang.key]
            self.use(shape, node, -1)
        for each in found.moves:
            shape, _ = self._movable[each.gang.key]
            self._movable[each.gang.key] = shape, self._place(each.gang.again, each.to)
        self._place(gang, found.start)
        return found

    def _place(self, gang: PendingGang, placement: Placement) -> str:
        (group,) = gang.minimum
        ((node, _),) = placement.assignments[0].nodes
        self.use(group.shape, node, 1)
        return node


def _name(at: int) -> str:
    return f"node-{at:04}"


def _node(at: int, machine: Machine) -> Node:
    offers = {"cpu": machine.cpu, "memory": machine.memory, GPU: machine.devices, "pods": 1000}
    return Node(_name(at), {}, (), unschedulable=False, allocatable=offers)


def _shape(cpu: int, memory: int, devices: int) -> PodShape:
    asked = Counter({"cpu": cpu, "memory": memory, GPU: devices, "pods": 1})
    return PodShape(tuple(sorted((+asked).items())))


def _asks(key: GangKey, shape: PodShape) -> PendingGang:
    return PendingGang(key, 0, 0.0, (Group("workers", "", shape, 1),))


def _movable(key: GangKey, shape: PodShape, node: str) -> Movable:
    part = GangPart(key, "", "", 0, 0.0, ((node, shape.requests),))
    return Movable((part,), _asks(key, shape), dict(shape.requests)[GPU] * HOUR)


def run(machines: Sequence[Machine], pods: Sequence[Pod], seed: int, most: int = MOST) -> Found:
    """Fill the cluster, and let gangs start that wait for eight GPUs of one node."""
    full = Full(machines, pods, seed)
    idle, without = full.idle, 0
    shape = _shape(SIZE * CPU_OF_GPU, SIZE * MEMORY_OF_GPU, SIZE)
    while full.start(_asks(GangKey("openb", f"first-{without:03}"), shape)):
        without += 1
    plans, seconds = list[Moves](), list[float]()
    for number in range(most):
        began = time.process_time()
        found = full.moves(_asks(GangKey("openb", f"large-{number:03}"), shape))
        seconds.append(time.process_time() - began)
        if found is None:
            break
        plans.append(found)
    lost = sum(each.lost for each in plans) / HOUR
    count = sum(len(each.moves) for each in plans)
    cheapest = sum(each.is_cheapest for each in plans)
    return Found(idle, without, len(plans), lost, count, cheapest, tuple(seconds))


HEAD: Final = (
    "| list | idle GPUs | start without moves | more with moves | GPU-hours moved for each "
    "| gangs moved for each | surely cheapest | CPU s, median |\n|---|---|---|---|---|---|---|---|"
)


def row(name: str, found: Sequence[Found]) -> str:
    """Return a row of the table: means over the seeds."""
    started = sum(each.moved for each in found)
    cells = (
        name,
        f"{np.mean([each.idle for each in found]):.0f}",
        f"{np.mean([each.without for each in found]):.1f}",
        f"{started / len(found):.1f}",
        f"{sum(each.gpu_hours for each in found) / max(1, started):.1f}",
        f"{sum(each.gangs_moved for each in found) / max(1, started):.1f}",
        f"{sum(each.cheapest for each in found)} of {started}",
        f"{np.median([second for each in found for second in each.seconds]):.2f}",
    )
    return "| " + " | ".join(cells) + " |"


def main(argv: Sequence[str] | None = None) -> None:
    """Measure both lists; print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.defrag", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--traces", type=Path, required=True, metavar="DIR")
    parser.add_argument("--seeds", type=seeds_of, default="42-44")
    parser.add_argument("--of", type=int, default=MOST, help="gangs that wait")
    arguments = parser.parse_args(argv)
    machines = read_machines(arguments.traces / "openb_node_list_gpu_node.csv")
    print(HEAD)
    for name in ("default", "multigpu20"):
        pods = read_pods(arguments.traces / f"openb_pod_list_{name}.csv")
        found = [run(machines, pods, seed, arguments.of) for seed in arguments.seeds]
        print(row(name, found), flush=True)


if __name__ == "__main__":
    main()
