"""Measures what recording costs the coordinator in a burst: its CPU with a recording and without.

200 Ray clusters of 5 pods come at once to 500 nodes. The steps of a simulated coordinator are kept
and handed to fresh state machines, with a recorder and without in turn, so that all take the same
steps. The floor of the recording itself writes the same lines from JSON values that are there
already: what any recording as JSON costs.
"""

import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import msgspec

from benchmarks.measure import Outcome, Row, all_in_turn, stated
from benchmarks.simulation import GPU, Job, Simulation, gpu_node
from coordinator.cluster.cache import ClusterCache
from coordinator.gang.nominations import Guard
from coordinator.gang.priority import AllowedClasses
from coordinator.messages.actions import Action
from coordinator.messages.clock import Patience
from coordinator.messages.events import Event
from coordinator.replay.recorder import Recorder
from coordinator.state_machine import CoordinatorState
from coordinator.state_settings import StateSettings
from kube.codec.profiles.scheduler_profiles import STOCK
from runtime.controller.moment import Moment
from scheduling.diagnosis.holes import GpuPools

NODES, GANGS, WORKERS = 500, 200, 4
LIMIT = 1 << 30
SETTINGS = StateSettings(
    patience=Patience(),
    allowed=AllowedClasses(),
    home=ClusterCache().home,
    waiting_per_namespace=10**9,
    profiles=STOCK,
    guard=Guard.NONE,
    gpu_pools=GpuPools(),
    may_ask_for_nodes=False,
    gates_off=(),
)


@dataclass(frozen=True)
class Call:
    """One call of the state machine."""

    events: list[Event]
    moment: Moment


class Tapped(CoordinatorState):
    """A state machine that keeps what it is called with."""

    def __init__(self) -> None:
        """Begin without a call."""
        super().__init__()
        self.calls: list[Call] = []

    def handle(self, events: Iterable[Event], moment: Moment) -> list[Action]:
        """Keep the call, and answer as any state machine."""
        call = Call(list(events), moment)
        self.calls.append(call)
        return super().handle(call.events, moment)


def measure(runs: int) -> Outcome:
    """Simulate the burst once, and go through its steps in turn."""
    calls = _burst()
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "recording.jsonl"
        _with(calls, file)
        lines = file.read_bytes().splitlines()
        sides = (lambda _: _without(calls), lambda _: _with(calls, file), lambda _: _least(lines))
        without, recorded, least = map(tuple, all_in_turn(runs, sides))
        size, pods = file.stat().st_size, GANGS * (1 + WORKERS)
    alone = tuple(ours - bare for ours, bare in zip(recorded, without, strict=True))
    burst = Row("CPU of the steps of a burst, floor without a recording", "s", recorded, without)
    added = Row("of which the recording, floor the lines from JSON values", "s", alone, least)
    note = f"{pods} pods, {len(calls)} steps, {size >> 20} MiB, {size // pods} bytes per pod"
    return Outcome([stated(burst), stated(added)], notes=[note])


def _burst() -> list[Call]:
    simulation = Simulation([])
    simulation.state = tapped = Tapped()
    simulation.begin(gpu_node(f"node-{at:04}", 8) for at in range(NODES))
    simulation.come(_jobs())
    simulation.wait(60)
    return tapped.calls


def _jobs() -> Iterator[Job]:
    requests = {"cpu": "8", "memory": "64Gi", GPU: "2"}
    for at in range(GANGS):
        yield Job(f"g{at:05}", 0.0, 1e12, WORKERS, requests)


def _without(calls: list[Call]) -> float:
    state, began = SETTINGS.build(), time.process_time()
    for call in calls:
        state.handle(call.events, call.moment)
    return time.process_time() - began


def _with(calls: list[Call], file: Path) -> float:
    """The CPU of both threads, until all is written."""
    state, began = SETTINGS.build(), time.process_time()
    recorder = Recorder(file, LIMIT, metadata.version("muster"), SETTINGS)
    for call in calls:
        actions = state.handle(call.events, call.moment)
        recorder.step(call.moment, call.events, actions)
    recorder.close()
    return time.process_time() - began


def _least(lines: list[bytes]) -> float:
    values = [msgspec.json.decode(line) for line in lines]
    began = time.process_time()
    with Path(os.devnull).open("wb", buffering=0) as file:
        file.writelines(msgspec.json.encode(value) for value in values)
    return time.process_time() - began
