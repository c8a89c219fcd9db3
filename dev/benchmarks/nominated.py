"""Measures what 10,000 nominated pods cost the coordinator: a cycle, and the begin of a term.

The same pods are placed and not nominated for the floor; the releases of all of them are never
answered. In memory, one coordinator, CPU seconds of its state machine alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from benchmarks.measure import Outcome, Row, all_in_turn
from benchmarks.simulation import NAMESPACE, Job, Simulation, gpu_node
from coordinator.gang.nominations import PER_SECOND, Guard
from coordinator.messages.actions import Action, NominatePod, ReleasePod
from coordinator.messages.events import (
    ClusterSeen,
    CycleDue,
    Event,
    GangSeen,
    NamespaceSeen,
    NodeSeen,
    PodSeen,
    TermStarted,
)
from coordinator.messages.write_ends import NominationEnded
from coordinator.reconcile.pod_writes.nominations import PAUSE_IN_LINE
from coordinator.state.known import Known
from coordinator.state_machine import CoordinatorState
from kube.codec.observed_pod import observe
from kube.objects.base import ObjectMeta
from kube.objects.core import Namespace, Pod
from kube.objects.gang import Gang
from scheduling.model.gang import GangKey

GANGS, WORKERS, NODES = 500, 19, 1_000
KINDS = {"nominated": Guard.NOMINATION, "not nominated": Guard.NONE}
_REQUESTS = {"cpu": "4", "memory": "16Gi"}


@dataclass(frozen=True)
class Costs:
    """CPU seconds of one run, the pods that were nominated, and the writes of the next leader."""

    cycle: float
    term: float
    nominated: int
    written: int


def measure(runs: int) -> Outcome:
    """Both kinds in turn."""
    turns = [lambda _, guard=guard: run(GANGS, NODES, guard) for guard in KINDS.values()]
    ours, floor = all_in_turn(runs, turns)
    rows = [
        _row("a cycle", [each.cycle for each in ours], [each.cycle for each in floor]),
        _row("the begin of a term", [each.term for each in ours], [each.term for each in floor]),
    ]
    return Outcome(rows, notes=[f"{ours[0].nominated} pods nominated on {NODES} nodes"])


def run(gangs: int, nodes: int, guard: Guard) -> Costs:
    """Place gangs, have their releases held up, and measure a cycle and the next leader's begin."""
    held = HeldUp(nodes, guard)
    held.come(Job(f"g{at:03}", 0.0, 1e9, WORKERS, _REQUESTS) for at in range(gangs))
    held.wait(PAUSE_IN_LINE + gangs * (1 + WORKERS) / PER_SECOND + 1.0)
    cycle = held.cycle_for(Job("next", held.now, 1e9, WORKERS, _REQUESTS))
    term, actions = held.next_leader()
    written = sum(isinstance(each, NominatePod) for each in actions)
    return Costs(cycle, term, held.nominated, written)


class HeldUp(Simulation):
    """A cluster in which no release is answered, and every nomination is carried out."""

    def __init__(self, nodes: int, guard: Guard) -> None:
        self._nodes = [gpu_node(f"node-{at:04}", 0) for at in range(nodes)]
        super().__init__(self._nodes)
        self.state.known.guard = guard
        self._clusters: list[ClusterSeen] = []

    @property
    def nominated(self) -> int:
        """How many pods are nominated."""
        courses = self.courses.values()
        return sum(bool(pod.nominated_to) for course in courses for pod in course.pods.values())

    def cycle_for(self, job: Job) -> float:
        """Let one more gang come; return the CPU seconds of the cycle that places it."""
        self.handle(self._arrival(job))
        began = time.process_time()
        self.handle([CycleDue()])
        return time.process_time() - began

    def next_leader(self) -> tuple[float, list[Action]]:
        """Return the CPU seconds and the actions of the begin of another leader's term."""
        self.state = CoordinatorState(Known(guard=self.state.known.guard))
        self.handle(list(self._lists()))
        began = time.process_time()
        actions = [*self.handle([TermStarted(2, clean=True)]), *self.handle([CycleDue()])]
        return time.process_time() - began, actions

    def _lists(self) -> Iterator[Event]:
        yield NamespaceSeen(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
        yield from map(NodeSeen, self._nodes)
        yield from self._clusters
        yield from (GangSeen(msgspec.convert(gang, Gang)) for gang in self._gangs.values())
        for course in self.courses.values():
            yield from map(PodSeen, course.pods.values())

    def _arrival(self, job: Job) -> list[Event]:
        found = super()._arrival(job)
        self._clusters += [each for each in found if isinstance(each, ClusterSeen)]
        return found

    def carry_out(self, action: Action) -> Iterator[Event]:
        """Carry nominations out, and no release: gangs wait for ever."""
        match action:
            case ReleasePod():
                return
            case NominatePod(gang=key, pod=pod, node=node):
                yield self._nominate(key, pod.metadata.uid, node)
                yield NominationEnded(key, pod.metadata.uid)
            case _:
                yield from super().carry_out(action)

    def _nominate(self, key: GangKey, uid: str, node: str) -> Event:
        course = self.courses[key]
        raw = msgspec.to_builtins(course.raw[uid])
        raw["metadata"]["resourceVersion"] = self.next_version()
        raw["status"] = {"nominatedNodeName": node}
        course.raw[uid] = msgspec.convert(raw, Pod)
        course.pods[uid] = observe(course.raw[uid])
        return PodSeen(course.pods[uid])


def _row(what: str, ours: list[float], floor: list[float]) -> Row:
    return Row(
        f"{what}, floor not nominated", "CPU s", tuple(ours), tuple(floor), ours_are="nominated"
    )
