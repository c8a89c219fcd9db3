"""Measures cycles in which waiting gangs may stop running ones: 1,000 of them on 5,000 nodes.

The floor is the same cycle in a queue that stops no gang.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.measure import Outcome, Row, in_turn
from scheduling.admission.refusal_memory import Memory
from scheduling.cycle import next_cycle
from scheduling.model.gang import GangKey, Group, PendingGang
from scheduling.model.node import Node
from scheduling.model.pod import PodShape
from scheduling.model.preemption import GangPart
from scheduling.model.queue import Queue, Reclaim, WithinQueue
from scheduling.queueing.queues import Queues
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.queueing.waiting import WaitingGangs
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.node_table import node_snapshot_of

GPU = "nvidia.com/gpu"
NODES, RUNNING, WAITING = 5000, 1000, 1000
SURPLUS = 4
"""A running gang has one node as its minimum, and so many replicas of one more node."""

NEEDS = 20
"""Nodes that the preemptor needs."""

POD = (("cpu", 8000), (GPU, 8), ("pods", 1))
SHAPE = PodShape(own_requests=POD)
ALLOWED = WithinQueue.LOWER_PRIORITY


def measure(runs: int) -> Outcome:
    """Each case with a queue that stops gangs, and with one that does not, in turn."""
    chosen = in_turn(runs, lambda _: _chooses(ALLOWED), lambda _: _chooses(WithinQueue.NEVER))
    steady = in_turn(runs, lambda _: _waits(ALLOWED), lambda _: _waits(WithinQueue.NEVER))
    moved = in_turn(runs, lambda _: _one_ends(ALLOWED), lambda _: _one_ends(WithinQueue.NEVER))
    return Outcome(
        [
            _row(
                f"a cycle that chooses among {RUNNING} gangs for one that needs {NEEDS} nodes",
                *chosen,
            ),
            _row(f"a cycle in which {WAITING} gangs wait that find none to stop", *steady),
            _row("the same after a running gang changed", *moved),
        ],
        notes=[f"{NODES} nodes, {RUNNING * (1 + SURPLUS)} parts of running gangs; CPU time"],
    )


def _row(name: str, ours: Sequence[float], floor: Sequence[float]) -> Row:
    return Row(name, "ms", tuple(ours), tuple(floor), floor_is="stops none")


def _chooses(policy: WithinQueue) -> float:
    world = World(policy)
    _, memory = world.cycle(None)
    world.wait([_gang(0, NEEDS)])
    return world.cycle(memory)[0]


def _waits(policy: WithinQueue) -> float:
    world = World(policy)
    memory = world.filled()
    return world.cycle(memory)[0]


def _one_ends(policy: WithinQueue) -> float:
    world = World(policy)
    memory = world.filled()
    world.parts = (replace(world.parts[0], outlived=True), *world.parts[1:])
    return world.cycle(memory)[0]


class World:
    """Full nodes, and gangs in two queues: half of the running ones may be stopped."""

    def __init__(self, policy: WithinQueue) -> None:
        reclaim = Reclaim.NEVER if policy is WithinQueue.NEVER else Reclaim.ANY
        guest = Queue("guest", quota={GPU: 0})
        mine = Queue("mine", quota={GPU: 80 * NODES}, within_queue=policy, reclaim=reclaim)
        self.tree = QuotaTree([mine, guest])
        self.parts = tuple(_parts())
        self.nodes = _nodes(self.parts)
        self.held = np.zeros((2, len(self.tree.resources)), dtype=np.int64)
        for each in self.parts:
            for _, amounts in each.room:
                self.held[self.tree.index[each.queue]] += self.tree.requests(dict(amounts))
        self.waiting = WaitingGangs(self.tree)

    def wait(self, gangs: Sequence[PendingGang]) -> None:
        """Let gangs wait."""
        for gang in gangs:
            self.waiting.put(gang)

    def filled(self) -> Memory:
        """Let many gangs wait that find nothing; return what is known once all were looked at."""
        self.wait([_gang(at, NODES - at % 50) for at in range(WAITING)])
        memory = None
        for _ in range(3):
            _, memory = self.cycle(memory)
        assert memory is not None
        return memory

    def cycle(self, memory: Memory | None) -> tuple[float, Memory]:
        """Run a cycle; return the milliseconds that it took, and what it found."""
        told = Queues(self.waiting, self.held, {GPU: 8 * NODES}, 1.0, parts=lambda: self.parts)
        began = time.process_time()
        _, found = next_cycle(told, self.nodes, memory)
        return (time.process_time() - began) * 1000, found


def _parts() -> list[GangPart]:
    found = []
    for at in range(RUNNING):
        queue = ("mine", "guest")[at % 2]
        priority = (5, 0)[at % 2]
        for number in range(1 + SURPLUS):
            replica = f"workers-{number}" if number else ""
            room = ((f"node-{at * (1 + SURPLUS) + number:05}", POD),)
            key = GangKey("team", f"running-{at:04}")
            found.append(GangPart(key, replica, queue, priority, float(at), room))
    return found


def _nodes(parts: Sequence[GangPart]) -> NodeSnapshot:
    offers = {"cpu": 64_000, "memory": 2**40, "pods": 110, GPU: 8}
    names = (f"node-{at:05}" for at in range(NODES))
    nodes = [Node(name, {}, (), unschedulable=False, allocatable=offers) for name in names]
    return node_snapshot_of(nodes, {name: dict(POD) for each in parts for name, _ in each.room})


def _gang(at: int, pods: int) -> PendingGang:
    key, group = GangKey("team", f"waits-{at:04}"), Group("workers", "", SHAPE, pods)
    return PendingGang(key, 1, float(at), (group,), queue="mine")
