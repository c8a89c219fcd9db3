"""A small cluster in simulated time: gangs come, run, end, are stopped for others, and wait again.

What is decided is decided by the cycle, with ages as the coordinator counts them. A cycle runs when
something happened, and when the one before asks for it.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import heappop, heappush
from math import inf

import numpy as np

from coordinator.messages.clock import Patience
from coordinator.queues.ages import Ages
from scheduling.admission.refusal_memory import Memory
from scheduling.cycle import next_cycle
from scheduling.model.amounts import Amounts, Requests
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.preemption import GangPart, Preemption
from scheduling.model.queue import Queue
from scheduling.model.verdict import Admitted, Decision, Refusal, Verdict
from scheduling.queueing.average_usage import QueueUsage
from scheduling.queueing.fair_shares import FairShares
from scheduling.queueing.queues import Holding, Queues
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.queueing.waiting import WaitingGangs
from scheduling.state.node_snapshot import NodeSnapshot
from tests.builders import GPU, columns, gang, group, node, shape

GRACE = 2.0
"""Seconds until what is stopped is gone."""

PATIENCE = Patience(setback=10.0)
GIVES_UP_AFTER = 1.0
"""Seconds for which a start that fails holds its room."""

CYCLES = 50
"""So many cycles at one moment, or without anything that happens, are too many."""

SURPLUS = "surplus"


@dataclass(frozen=True)
class Job:
    """A gang to come: the pods of its minimum (number, GPUs, CPUs), surplus as the last of these.

    It runs for `runs` seconds from its admission and says that it runs for `told`; its first
    `fails` starts give their room back.
    """

    name: str
    queue: str
    arrives: float
    runs: float
    pods: tuple[tuple[int, int, int], ...]
    surplus: int = 0
    priority: int = 0
    told: float = inf
    fails: int = 0
    namespace: str = "team"

    @property
    def key(self) -> GangKey:
        return GangKey(self.namespace, self.name)

    def asks(self, surplus: int, setbacks: int, *, runs: bool) -> PendingGang:
        """What it asks for: all of it, or the rest of its surplus."""
        shapes = [(count, shape(gpu=gpus, cpu=cpus)) for count, gpus, cpus in self.pods]
        groups = [group(f"set{at}", count, one) for at, (count, one) in enumerate(shapes)]
        units = ((group(SURPLUS, 1, shapes[-1][1]),),) * surplus
        asked = gang(
            self.name,
            *(() if runs else groups),
            surplus=units,
            created=self.arrives,
            priority=self.priority,
        )
        return replace(asked, key=self.key, queue=self.queue, duration=self.told, setbacks=setbacks)


@dataclass(frozen=True)
class Node:
    """How many GPUs and CPUs a node has."""

    gpus: int
    cpus: int


class Timeline:
    """Queues, nodes, and the gangs that come; `began` and `ended` say when each did."""

    def __init__(self, queues: Sequence[Queue], nodes: Sequence[Node], jobs: Iterable[Job]) -> None:
        self.queues, self.nodes, self.jobs = queues, nodes, {job.key: job for job in jobs}
        self.tree = QuotaTree(queues)
        self.now = 0.0
        self.began: dict[str, float] = {}
        self.ended: dict[str, float] = {}
        self.verdicts: dict[str, Verdict] = {}
        self._cluster = {"cpu": 1000 * sum(n.cpus for n in nodes), GPU: sum(n.gpus for n in nodes)}
        named = (node(f"n{at}", gpu=n.gpus, cpu=n.cpus) for at, n in enumerate(nodes))
        self._columns = columns(*named)
        self._waiting, self._ages = WaitingGangs(self.tree), Ages()
        fair = {each.name: each.fair for each in queues if each.fair is not None}
        self.usages = {name: QueueUsage(rules, 0.0) for name, rules in fair.items()}
        self._holds: dict[tuple[str, str], Counter[str]] = {}
        self._memory: Memory | None = None
        self._parts: list[GangPart] = []
        self._failures: dict[GangKey, int] = {}
        self._set_back_until: dict[GangKey, float] = {}
        self._gathered: dict[GangKey, float] = {}
        self._coming: list[tuple[float, int, Callable[[], None]]] = []
        self._planned = 0
        self._asks_again_at = inf
        for job in self.jobs.values():
            self._plan(job.arrives, partial(self._gather, job))

    def run(self, until: float = inf) -> None:
        """Let everything happen that does until a time, and all cycles that are asked for."""
        idle = 0
        while idle < CYCLES and self._next() <= until and self._next() < inf:
            self.now = self._next()
            idle = 0 if self._coming else idle + 1
            while self._coming and self._coming[0][0] <= self.now:
                heappop(self._coming)[2]()
            self._decide()

    def says(self) -> str:
        """Return what became of each gang."""
        lines = [f"now {self.now}", *map(str, self.queues), *map(str, self.nodes)]
        for job in self.jobs.values():
            verdict = self.verdicts.get(job.name)
            said = f"{verdict.reason}: {verdict.message}" if isinstance(verdict, Refusal) else ""
            course = f"{self.began.get(job.name)} to {self.ended.get(job.name)}"
            lines.append(f"{job}\n    {course} {said}")
        return "\n".join(lines)

    # ---- what happens

    def _next(self) -> float:
        return min(self._coming[0][0] if self._coming else inf, self._asks_again_at)

    def _plan(self, at: float, what: Callable[[], None]) -> None:
        self._planned += 1
        heappush(self._coming, (at, self._planned, what))

    def _gather(self, job: Job) -> None:
        self._gathered[job.key] = self.now
        self._ask(job)

    def _begin(self, job: Job, verdict: Admitted) -> None:
        """Give a gang its room, its minimum and replicas of surplus each as a part."""
        rooms: dict[str, list[tuple[str, Requests]]] = {}
        taken = {part.replica for part in self._parts if part.gang == job.key}
        free = iter([f"r{at}" for at in range(job.surplus) if f"r{at}" not in taken])
        for each in verdict.placement.assignments:
            for where, count in each.nodes:
                for _ in range(count):
                    name = next(free) if each.pod_set == SURPLUS else ""
                    rooms.setdefault(name, []).append((where, each.requests))
        if "" in rooms:
            self.began[job.name] = self.now
            self._plan_end(job)
        admitted = self.began[job.name]
        for name, room in rooms.items():
            part = GangPart(job.key, name, job.queue, job.priority, admitted, tuple(room))
            self._parts.append(part)

    def _plan_end(self, job: Job) -> None:
        if self._failures.get(job.key, 0) < job.fails:
            self._plan(self.now + GIVES_UP_AFTER, partial(self._fail, job, self.now))
        else:
            self._plan(self.now + job.runs, partial(self._end, job, self.now))

    def _end(self, job: Job, began: float) -> None:
        if self._runs_since(job, began):
            self.ended[job.name] = self.now
            self._drop(job)

    def _fail(self, job: Job, began: float) -> None:
        """Have a start fail: the room is given back, and for a time the gang comes last."""
        if self._runs_since(job, began):
            count = self._failures[job.key] = self._failures.get(job.key, 0) + 1
            until = self._set_back_until[job.key] = self.now + PATIENCE.setback_after(count)
            self._drop(job)
            self._plan(until, partial(self._look_at, job))
            self._gather(job)

    def _runs_since(self, job: Job, began: float) -> bool:
        """Say whether it is still the same start, and not being stopped."""
        return any(
            each.gang == job.key
            and each.is_minimum
            and each.admitted == began
            and not each.is_ending
            for each in self._parts
        )

    def _drop(self, job: Job) -> None:
        self._parts = [each for each in self._parts if each.gang != job.key]
        self._ask(job)

    def _gone(self, stopped: Sequence[tuple[GangKey, str, float]]) -> None:
        """Let what was stopped be gone; whole gangs wait again."""
        left = [p for p in self._parts if (p.gang, p.replica, p.admitted) not in stopped]
        lost = {p.gang for p in self._parts} - {p.gang for p in left}
        self._parts = left
        for key in sorted({key for key, _, _ in stopped}, key=str):
            if key in lost and self.jobs[key].name not in self.ended:
                self._gather(self.jobs[key])
            else:
                self._ask(self.jobs[key])

    # ---- what gangs ask for

    def _look_at(self, job: Job) -> None:
        self._ask(job)

    def _ask(self, job: Job) -> bool:
        """Let a gang wait for what it lacks; say whether it asks for something else than before."""
        asked = self._question(job)
        if asked is None:
            self._waiting.drop(job.key)
            self._ages.drop(job.key)
            return False
        is_new = asked != self._waiting.gang(job.key)
        if is_new:
            self._waiting.put(asked)
        if asked.minimum:
            rules = self.tree.queues[self.tree.index[job.queue]]
            due = self._gathered[job.key] + rules.longest_wait
            self._ages.note(job.key, due, rules.most_passes)
        else:
            self._ages.drop(job.key)
        return is_new

    def _question(self, job: Job) -> PendingGang | None:
        mine = [each for each in self._parts if each.gang == job.key]
        runs = any(each.is_minimum for each in mine)
        lacks = job.surplus - sum(not each.is_minimum for each in mine)
        is_ending = any(each.is_minimum and each.is_ending for each in mine)
        if job.name in self.ended or is_ending or (runs and not lacks):
            return None
        is_set_back = self._set_back_until.get(job.key, 0.0) > self.now
        setbacks = self._failures.get(job.key, 0) if is_set_back else 0
        return job.asks(lacks, setbacks, runs=runs)

    # ---- what is decided

    def _decide(self) -> None:
        """Run cycles until nothing is asked anew."""
        for _ in range(CYCLES):
            if not self._cycle():
                return
        raise AssertionError(f"no end of cycles at one moment\n{self.says()}")

    def _cycle(self) -> bool:
        self._ages.pass_time(self.now)
        decisions, self._memory = next_cycle(self._told(), self._snapshot(), self._memory)
        self._ages.passed(self._memory.passed)
        self._asks_again_at = self.now + self._memory.asks_again_in
        asks_more = self._take_in(decisions)
        return self._stop(self._memory.preemptions) or asks_more

    def _take_in(self, decisions: Iterable[Decision]) -> bool:
        asks_more = False
        for each in decisions:
            job, self.verdicts[each.key.name] = self.jobs[each.key], each.verdict
            if isinstance(each.verdict, Admitted) and each.verdict.placement.assignments:
                self._begin(job, each.verdict)
                asks_more |= self._ask(job)
        return asks_more

    def _stop(self, preemptions: Iterable[Preemption]) -> bool:
        """Begin to end what was chosen; say whether any of it is new."""
        chosen = {(p.gang, p.replica) for each in preemptions for p in each.parts}
        fresh = [p for p in self._parts if (p.gang, p.replica) in chosen and not p.is_ending]
        if fresh:
            self._parts = [replace(p, is_ending=p.is_ending or p in fresh) for p in self._parts]
            self._plan(
                self.now + GRACE,
                partial(self._gone, [(p.gang, p.replica, p.admitted) for p in fresh]),
            )
            for key in {p.gang for p in fresh}:
                self._ask(self.jobs[key])
        return bool(fresh)

    def _fair_shares(self) -> FairShares | None:
        """Count what was held until now, where any queue has fair sharing."""
        holds = defaultdict[tuple[str, str], Counter[str]](Counter)
        for part in self._parts:
            for _, amounts in part.room:
                holds[part.queue, part.gang.namespace].update(dict(amounts))
        for queue, namespace in {**self._holds, **holds}:
            if queue in self.usages:
                self.usages[queue].hold(namespace, holds[queue, namespace], self.now)
        self._holds = {at: held for at, held in holds.items() if held}
        for usage in self.usages.values():
            usage.settle(self.now)
        return FairShares(self.usages, self.tree, self._cluster) if self.usages else None

    def _told(self) -> Queues:
        parts, ages = tuple(self._parts), self._ages
        fair = self._fair_shares()
        self._waiting.arrange(fair, ages.overdue)
        return Queues(
            self._waiting,
            self._held(),
            self._cluster,
            self.now,
            self._holdings,
            ages.aged,
            ages.overdue,
            lambda: parts,
            fair,
        )

    def _holdings(self) -> Iterable[Holding]:
        return [
            Holding(
                each.gang, each.queue, each.room, self._ends(each), each.priority, each.admitted
            )
            for each in self._parts
        ]

    def _ends(self, part: GangPart) -> float:
        """Say when a part is expected to end, as the coordinator does."""
        ends = part.admitted + self.jobs[part.gang].told
        return ends if ends > self.now else 2 * self.now - part.admitted

    def _held(self) -> Amounts:
        held = np.zeros((len(self.tree.names), len(self.tree.resources)), dtype=np.int64)
        for part in self._parts:
            for _, amounts in part.room:
                held[self.tree.index[part.queue]] += self.tree.requests(dict(amounts))
        return held

    def _snapshot(self) -> NodeSnapshot:
        """The same nodes each time, so that refusals may be kept; the same object if as used."""
        now, used = self._columns, np.zeros_like(self._columns.used)
        for part in self._parts:
            for where, amounts in part.room:
                for resource, amount in amounts:
                    used[now.row[resource], now.index[where]] += amount
        if not np.array_equal(used, now.used):
            self._columns = NodeSnapshot(now.traits, now.resources, now.allocatable, used)
        return self._columns


def fits_alone(queues: Sequence[Queue], nodes: Sequence[Node], job: Job) -> bool:
    """Say whether a gang is admitted to empty nodes and unused quota."""
    alone = Timeline(queues, nodes, [replace(job, arrives=0.0, fails=0)])
    alone.run()
    return job.name in alone.ended
