"""Measures what 500 gangs that run cost the coordinator, at 20 pod events a second each.

The state machine with the decoding of what the watch tells, in simulated time: each batch is what
comes within `BATCH` seconds, as the loop takes it. Most events change nothing that matters, as
those of kubelets do; in each batch one gang loses a worker, whose replacement has come. The clock
counts the CPU time of the batch, and of what follows, until that one's release is asked for.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import msgspec

from benchmarks.measure import Outcome, Row, median_within, quantile, stated
from benchmarks.simulation import NAMESPACE, Course, Job, Simulation, gpu_node
from coordinator.messages.actions import Action, ReleasePod
from coordinator.messages.events import CycleDue, Event, PodGone, PodSeen, TimePassed
from kube.codec.observed_pod import ObservedPod, observe
from kube.objects.core import Pod

GANGS, WORKERS, RATE = 500, 7, 20
BATCH = 0.05
SECONDS = 10
AIM = 50.0
"""Percent of one core: a coordinator has to keep up, with room for decisions."""

AIM_P99 = 100.0
"""Milliseconds of CPU from an event to its action."""

_REQUESTS = {"cpu": "4", "memory": "32Gi", "nvidia.com/gpu": "1"}


class Alive:
    """Gangs that run, and what their watch tells."""

    def __init__(self) -> None:
        nodes = (gpu_node(f"node-{at:04}", 8) for at in range(GANGS))
        self.simulation = Simulation(nodes)
        self.simulation.come(Job(f"g{at:03}", 0.0, 1e12, WORKERS, _REQUESTS) for at in range(GANGS))
        self.courses = list(self.simulation.courses.values())
        assert all(each.began is not None for each in self.courses)
        self._turn = itertools.cycle(range(GANGS))
        self.took: list[float] = []
        self.reached: list[float] = []

    def run(self) -> None:
        """Let `SECONDS` pass, batch by batch."""
        for _ in range(int(SECONDS / BATCH)):
            self.simulation.now += BATCH
            self._batch()

    def _batch(self) -> None:
        lines = list(self.lines())
        course = self.courses[next(self._turn)]
        lost, replacement = self._replaced(course)
        began = time.process_time()
        events: list[Event] = [PodSeen(_decoded(line)) for line in lines]
        events += [PodGone(NAMESPACE, lost.name, lost.uid), PodSeen(_decoded(replacement))]
        self._follow(events, began)
        self.took.append(time.process_time() - began)

    def _follow(self, events: list[Event], began: float) -> None:
        """Have all of it handled; note when the release of the replacement is asked for."""
        simulation = self.simulation
        actions = simulation.handle(events)
        if simulation.state.next_wake is not None and simulation.state.next_wake <= simulation.now:
            actions += simulation.handle([TimePassed()])
        while actions or simulation.state.cycle_wanted:
            if any(isinstance(each, ReleasePod) for each in actions):
                self.reached.append(1000 * (time.process_time() - began))
            actions = self._carried_out(actions)

    def _carried_out(self, actions: list[Action]) -> list[Action]:
        simulation = self.simulation
        followed = [event for each in actions for event in simulation.carry_out(each)]
        if simulation.state.cycle_wanted:
            followed.append(CycleDue())
        return simulation.handle(followed)

    def lines(self) -> Iterator[bytes]:
        """Encode pods as they were, in another version, of all gangs in turn."""
        for _ in range(int(GANGS * RATE * BATCH)):
            course = self.courses[next(self._turn)]
            yield self._changed(next(iter(course.raw.values())), course)

    def _changed(self, raw: Pod, course: Course) -> bytes:
        pod = msgspec.to_builtins(raw)
        pod["metadata"]["resourceVersion"] = self.simulation.next_version()
        node = course.pods[raw.metadata.uid].node
        pod["spec"].update(nodeName=node, schedulingGates=[])
        pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        return msgspec.json.encode(pod)

    def _replaced(self, course: Course) -> tuple[ObservedPod, bytes]:
        """Take a worker away; returns it, and the gated pod that KubeRay makes for it."""
        uid = next(uid for uid, pod in course.pods.items() if "worker" in pod.name)
        lost, raw = course.pods.pop(uid), course.raw.pop(uid)
        version = self.simulation.next_version()
        name = f"{course.job.name}-worker-{version}"
        metadata = msgspec.structs.replace(
            raw.metadata, name=name, uid=f"uid-{name}", resource_version=version
        )
        made = msgspec.structs.replace(raw, metadata=metadata)
        course.raw[metadata.uid], course.pods[metadata.uid] = made, observe(made)
        return lost, msgspec.json.encode(made)


def _decoded(line: bytes) -> ObservedPod:
    return observe(msgspec.json.decode(line, type=Pod))


def measure(runs: int) -> Outcome:
    """Run as often as asked, each time with gangs of its own."""
    found = [Alive() for _ in range(runs)]
    for each in found:
        each.run()
        assert len(each.reached) == len(each.took), "each lost worker is replaced"
    shares = tuple(100 * sum(each.took) / SECONDS for each in found)
    decoding = tuple(100 * _decoding(each) / SECONDS for each in found)
    late = tuple(quantile(each.reached, 0.99) for each in found)
    rows = [
        median_within(
            Row("CPU of the coordinator, floor decoding alone", "%", shares, decoding), AIM
        ),
        median_within(Row("lost worker to its release, p99", "ms", late), AIM_P99),
        stated(Row("the same, p50", "ms", tuple(quantile(each.reached, 0.5) for each in found))),
    ]
    said = f"{GANGS} gangs of {WORKERS + 1} pods, {GANGS * RATE} pod events a second"
    return Outcome(rows, notes=[said, "state machine and decoding, without HTTP and TLS"])


def _decoding(alive: Alive) -> float:
    """Seconds of CPU that decoding as many events takes."""
    lines = list(alive.lines())
    began = time.process_time()
    for line in lines:
        _decoded(line)
    return (time.process_time() - began) * SECONDS / BATCH
