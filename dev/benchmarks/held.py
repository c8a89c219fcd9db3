"""Measures what 300 held Ray clusters cost that wait, and how soon they run once they can.

The same Ray clusters take turns, held and gated, on nodes that a thousand pods fill. What they cost
while they wait is counted from the first create until nothing happens any more: then no held one
has a pod, and of the gated ones all pods exist. Then the pods that fill the nodes are deleted, and
the clock runs from the first request to the last pod that is bound: KubeRay has the pods of held
ones still to make.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from benchmarks.backlog import FILLERS, GANGS, NODES, ROOM, SIZE
from benchmarks.burst import create_all, delete_all
from benchmarks.etcd import count_under, stored_in
from benchmarks.gangs import NAMESPACE, PODS, ray_cluster
from benchmarks.kinds import MUSTER
from benchmarks.measure import Outcome, Row, in_turn, means, of_field, ratio_within
from benchmarks.plane import Plane, plane, usual_options
from benchmarks.podwatch import PodWatch
from benchmarks.processes import CpuMeter, wait_quiet, without_driver
from kube.objects import names
from testbed.components import API_SERVER, KUBERAY
from testbed.errors import TestbedError
from testbed.waiting import wait_until

AIM = 1.3
WAIT_SECONDS = 300.0
HELD, GATED = "held", "gated"
_GANGS = f"/registry/muster.dev/gangs/{NAMESPACE}/"
_EVENTS_SENT = re.compile(r"^apiserver_watch_events_total\{[^}]*\} (\S+)$", re.MULTILINE)
_DELETERS = "--delete-collection-workers=16"


@dataclass(frozen=True)
class Waiting:
    """What Ray clusters that wait cost, and how soon they ran; times in seconds."""

    pods: int
    objects: int
    stored: float
    sent: float
    cpu: dict[str, float]
    bound: float
    running: float
    cpu_starting: dict[str, float]

    @property
    def cpu_of_api_server(self) -> float:
        """CPU seconds of the API server until all wait."""
        return self.cpu.get(API_SERVER, 0.0)

    @property
    def cpu_of_kuberay(self) -> float:
        """CPU seconds of KubeRay until all wait."""
        return self.cpu.get(KUBERAY, 0.0)

    @property
    def cpu_sum(self) -> float:
        """CPU seconds of all programs until all wait."""
        return sum(without_driver(self.cpu).values())

    @property
    def cpu_starting_sum(self) -> float:
        """CPU seconds of all programs from room freed until all run."""
        return sum(without_driver(self.cpu_starting).values())


def measure(runs: int) -> Outcome:
    """Gated and held Ray clusters in turn."""
    options = usual_options(apiserver_args=(_DELETERS,))
    with plane(NODES, options=options) as on:
        on.cluster.create_namespace(FILLERS.split("/")[4])
        with MUSTER.at_work(on):
            gated, held = in_turn(runs, partial(_run, on, GATED), partial(_run, on, HELD))
    tables = {
        f"CPU s, {kind}, {part}": means([of(run) for run in found])
        for kind, found in ((GATED, gated), (HELD, held))
        for part, of in (("until all wait", _cpu), ("from room freed", _cpu_starting))
    }
    return Outcome(list(rows(gated, held)), tables, [f"floor: {GANGS} gated Ray clusters"])


def rows(gated: Sequence[Waiting], held: Sequence[Waiting]) -> Iterator[Row]:
    """Held against gated ones, first while they wait, then when there is room."""

    def row(field: str, name: str, unit: str = "") -> Row:
        found = of_field(field, name, unit, gated, held)
        return replace(found, ours_are=HELD, floor_is=GATED)

    yield row("pods", "pods of those that wait")
    yield row("objects", "objects in etcd")
    yield row("stored", "their size in etcd", "MB")
    yield row("sent", "watch events until all wait")
    yield row("cpu_of_api_server", "CPU of the API server until all wait", "s")
    yield row("cpu_of_kuberay", "CPU of KubeRay until all wait", "s")
    yield row("cpu_sum", "CPU of all programs until all wait", "s")
    yield ratio_within(row("bound", "room begins to be freed to last pod bound", "s"), AIM)
    yield row("running", "to all Running", "s")
    yield row("cpu_starting_sum", "CPU of all programs from there until all Running", "s")


def _cpu(run: Waiting) -> dict[str, float]:
    return run.cpu


def _cpu_starting(run: Waiting) -> dict[str, float]:
    return run.cpu_starting


def bodies(kind: str, number: int) -> list[bytes]:
    """Encode the Ray clusters of a run."""
    return [json.dumps(_cluster(kind, f"{kind}{number}-{at:03}")).encode() for at in range(GANGS)]


def _cluster(kind: str, name: str) -> object:
    cluster = ray_cluster(name, SIZE, gang=True)
    if kind == HELD:
        cluster["metadata"]["annotations"] = {names.CREATE_PODS: names.CREATE_WHEN_ADMITTED}
    return cluster


def _run(on: Plane, kind: str, number: int) -> Waiting:
    manifests = bodies(kind, number)
    with PodWatch(on.cluster.api, PODS) as watch:
        ROOM.prepare(on, MUSTER)
        wait_quiet(on.cluster)
        before, sent, meter = stored_in(on.cluster, NAMESPACE), _sent(on), CpuMeter(on.cluster)
        create_all(on.cluster.api, manifests)
        _wait_waiting(on, watch, kind)
        cpu, after = meter.used(), stored_in(on.cluster, NAMESPACE)
        size = (after.size - before.size) / 1e6
        counted = (len(watch.pods), after.objects - before.objects, size, _sent(on) - sent)
        found = Waiting(*counted, cpu, *_start(on, watch))
        wait_quiet(on.cluster)
        delete_all(on.cluster.api)
        watch.wait_gone(WAIT_SECONDS)
        wait_until(lambda: not count_under(on.cluster, _GANGS), "all Gangs to go")
    return found


def _wait_waiting(on: Plane, watch: PodWatch, kind: str) -> None:
    """Wait until all of them wait, and nothing happens any more."""
    pods = GANGS * SIZE.pods if kind == GATED else 0
    wait_until(lambda: count_under(on.cluster, _GANGS) == GANGS, f"{GANGS} Gangs", WAIT_SECONDS)
    watch.wait(lambda: len(watch.pods) >= pods, f"{pods} pods to exist", WAIT_SECONDS)
    wait_quiet(on.cluster)
    if len(watch.pods) != pods or any(pod.released for pod in watch.seen()):
        raise TestbedError(f"{len(watch.pods)} pods instead of {pods} gated ones wait")


def _start(on: Plane, watch: PodWatch) -> tuple[float, float, dict[str, float]]:
    """Free the room; return when the last pod was bound, when all ran, and the CPU seconds."""
    meter, began = CpuMeter(on.cluster), time.monotonic()
    free: Callable[[], None] = partial(ROOM.happen, on, MUSTER)
    with ThreadPoolExecutor(1) as pool:
        ending = pool.submit(free)
        watch.wait_running(GANGS * SIZE.pods, WAIT_SECONDS)
        ending.result()
    seen = watch.seen()
    bound, running = max(pod.bound for pod in seen), max(pod.running for pod in seen)
    return bound - began, running - began, meter.used()


def _sent(on: Plane) -> float:
    """How many events the API server has sent to watches so far."""
    with on.cluster.api.session() as session:
        text = session.request("GET", "/metrics")[1].decode()
    return sum(map(float, _EVENTS_SENT.findall(text)))
