"""A small closed cluster: gangs that are admitted, stopped for others, and wait again at once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from scheduling.admission.refusal_memory import Memory
from scheduling.cycle import Settings, next_cycle
from scheduling.model.amounts import Amounts
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.placement import Placement
from scheduling.model.preemption import GangPart, Preemption
from scheduling.model.queue import Queue
from scheduling.model.verdict import Admitted, Refusal, Verdict
from scheduling.queueing.queues import Holding, Queues
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.queueing.waiting import WaitingGangs
from scheduling.state.node_snapshot import NodeSnapshot
from tests.builders import GPU, columns, gang, group, node, shape

KEPT = "a budget forbids it"


@dataclass(frozen=True)
class Spec:
    """A gang of workers with so many GPUs `each`: the minimum, and replicas of surplus of one.

    `keeps` names the parts of it that may not be stopped: the minimum by an empty name.
    """

    name: str
    queue: str
    pods: int
    priority: int = 0
    surplus: int = 0
    created: float = 0.0
    each: int = 1
    setbacks: int = 0
    keeps: tuple[str, ...] = ()

    @property
    def key(self) -> GangKey:
        return GangKey("team", self.name)

    def asks(self, minimum: int, surplus: int) -> PendingGang:
        """The gang as it asks for what it lacks."""
        one = shape(gpu=self.each)
        groups = (group("workers", minimum, one),) if minimum else ()
        units = ((group("workers", 1, one),),) * surplus
        asked = gang(self.name, *groups, surplus=units, created=self.created)
        return replace(asked, queue=self.queue, priority=self.priority, setbacks=self.setbacks)


def part(
    name: str,
    gpus: Mapping[str, int],
    queue: str = "a",
    *,
    replica: str = "",
    priority: int = 0,
    admitted: float = 0.0,
    outlived: bool = False,
    kept: str = "",
    ending: bool = False,
) -> GangPart:
    """A part of a running gang with so many GPUs, and pods, on each node."""
    room = tuple((where, ((GPU, count), ("pods", count))) for where, count in gpus.items())
    key = GangKey("team", name)
    return GangPart(key, replica, queue, priority, admitted, room, outlived, kept, ending, kept)


@dataclass
class Cluster:
    """Queues, nodes with GPUs, gangs, and the parts of those that run."""

    queues: Sequence[Queue]
    nodes: Mapping[str, int]
    gangs: Sequence[Spec] = ()
    parts: list[GangPart] = field(default_factory=list)
    memory: Memory | None = None
    now: float = 0.0
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    stopped: list[tuple[str, str]] = field(default_factory=list)
    """Preemptor and victim, as they came."""
    stopped_kept: list[GangPart] = field(default_factory=list)
    """Parts that were stopped and should not have been."""
    settings: Settings | None = None
    ends: Mapping[str, float] = field(default_factory=dict)
    """When running gangs are expected to end."""
    repairs: Sequence[Spec] = ()
    """Running gangs that lost so many pods of their minimum."""
    foreign: Mapping[str, int] = field(default_factory=dict)
    """GPUs on nodes that other pods have."""
    aged: Sequence[Spec] = ()
    """Gangs that have waited too long."""

    def __post_init__(self) -> None:
        self.tree = QuotaTree(self.queues)
        self._empty = columns(*(node(name, gpu=gpus) for name, gpus in self.nodes.items()))

    def cycle(self, *, forget: bool = False) -> tuple[Preemption, ...]:
        """Run a cycle, admit what it admits, and return what it would stop."""
        self.now += 1
        memory = None if forget else self.memory
        decisions, self.memory = next_cycle(self._told(), self._columns(), memory, self.settings)
        for each in decisions:
            self.verdicts[each.key.name] = each.verdict
            if isinstance(each.verdict, Admitted):
                self._admit(each.key, each.verdict)
        return self.memory.preemptions

    def stop(self, preemptions: Iterable[Preemption]) -> bool:
        """Begin to end the victims; say whether any is new."""
        chosen = {(p.gang, p.replica) for each in preemptions for p in each.parts}
        fresh = [p for p in self.parts if (p.gang, p.replica) in chosen and not p.is_ending]
        self.stopped_kept += [p for p in fresh if p.kept_because]
        for each in preemptions:
            names = {p.gang.name for p in each.parts if not p.is_ending}
            self.stopped += [(each.preemptor.name, name) for name in sorted(names)]
        self.parts = [replace(p, is_ending=True) if p in fresh else p for p in self.parts]
        return bool(fresh)

    def end(self) -> None:
        """Let all that is ending be gone."""
        self.parts = [each for each in self.parts if not each.is_ending]

    def settle(self, cycles: int) -> bool:
        """Run cycles, victims being gone in the next; say whether nothing moves any more."""
        for _ in range(cycles):
            before = list(self.parts)
            if not self.stop(self.cycle()) and self.parts == before:
                return True
            self.end()
        return False

    def rest(self, cycles: int) -> bool:
        """Run a cycle, and others only where victims are gone or the last one asked for it."""
        for _ in range(cycles):
            is_stopping = self.stop(self.cycle())
            self.end()
            assert self.memory is not None
            if not is_stopping and self.memory.asks_again_in == inf:
                return True
        return False

    def says(self, name: str) -> str:
        """Return what a waiting gang is told."""
        verdict = self.verdicts[name]
        assert isinstance(verdict, Refusal), verdict
        return f"{verdict.reason}: {verdict.message}"

    def runs(self, name: str) -> int:
        """Return how many GPUs a gang holds."""
        mine = [each for each in self.parts if each.gang.name == name]
        return sum(dict(amounts)[GPU] for each in mine for _, amounts in each.room)

    def used(self) -> dict[str, dict[str, int]]:
        """Return what is used on each node."""
        found = {name: {GPU: gpus} for name, gpus in self.foreign.items()}
        for each in self.parts:
            for where, amounts in each.room:
                on = found.setdefault(where, {})
                for resource, amount in amounts:
                    on[resource] = on.get(resource, 0) + amount
        return found

    def held(self) -> Amounts:
        """Return what each queue holds."""
        held = np.zeros((len(self.tree.names), len(self.tree.resources)), dtype=np.int64)
        for each in self.parts:
            for _, amounts in each.room:
                held[self.tree.index[each.queue]] += self.tree.requests(dict(amounts))
        return held

    def _columns(self) -> NodeSnapshot:
        """The same nodes in every cycle, so that refusals may be kept."""
        empty, used = self._empty, np.zeros_like(self._empty.used)
        for name, amounts in self.used().items():
            for resource, amount in amounts.items():
                used[empty.row[resource], empty.index[name]] += amount
        return NodeSnapshot(empty.traits, empty.resources, empty.allocatable, used)

    def _told(self) -> Queues:
        waiting = WaitingGangs(self.tree)
        for spec in self.gangs:
            asked = self._question(spec)
            if asked is not None:
                waiting.put(asked)
        for spec in self.repairs:
            waiting.put(replace(spec.asks(spec.pods, 0), is_repair=True))
        cluster = {GPU: sum(self.nodes.values()), "pods": 1000}
        parts, aged = tuple(self.parts), frozenset(each.key for each in self.aged)
        held, holdings = self.held(), self._holdings
        return Queues(waiting, held, cluster, self.now, holdings, aged, aged, lambda: parts)

    def _holdings(self) -> Iterable[Holding]:
        return (
            Holding(each.gang, each.queue, each.room, self.ends.get(each.gang.name, inf))
            for each in self.parts
        )

    def _question(self, spec: Spec) -> PendingGang | None:
        mine = [each for each in self.parts if each.gang == spec.key]
        if any(each.is_minimum and each.is_ending for each in mine):
            return None
        runs = any(each.is_minimum for each in mine)
        lacks = spec.surplus - sum(not each.is_minimum for each in mine)
        if runs and not lacks:
            return None
        return spec.asks(0 if runs else spec.pods, lacks)

    def _admit(self, key: GangKey, verdict: Admitted) -> None:
        spec = next(each for each in self.gangs if each.key == key)
        where = _nodes(verdict.placement)
        runs = any(each.gang == key and each.is_minimum for each in self.parts)
        taken = {each.replica for each in self.parts if each.gang == key}
        names = ("", *(f"r{at}" for at in range(spec.surplus)))
        free = iter(name for name in names if name not in taken)
        counts = [] if runs else [spec.pods]
        for pods in (*counts, *(1,) * verdict.surplus):
            room: dict[str, int] = {}
            for on in (where.pop() for _ in range(pods)):
                room[on] = room.get(on, 0) + spec.each
            name = next(free)
            self.parts.append(
                part(
                    spec.name,
                    room,
                    spec.queue,
                    replica=name,
                    priority=spec.priority,
                    admitted=self.now,
                    kept=KEPT if name in spec.keeps else "",
                )
            )


def _nodes(placement: Placement) -> list[str]:
    return [
        name for each in placement.assignments for name, count in each.nodes for _ in range(count)
    ]
