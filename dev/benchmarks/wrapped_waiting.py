"""Measures what 1,000 AppWrappers cost that wait for room.

Small pods fill the four nodes; each AppWrapper has a Job of one pod that is larger. The floor are
the same programs with no AppWrapper. Then small pods are deleted one by one: each of them is room,
too little for any, and a cycle over all that wait.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from benchmarks.app_wrappers import (
    APP_WRAPPERS,
    JOBS,
    NODES,
    WrapperPlane,
    encoded,
    job,
    wrapped,
    wrapper_plane,
)
from benchmarks.burst import create_all, delete_all
from benchmarks.etcd import count_under, stored_in
from benchmarks.gangs import NAMESPACE, PODS
from benchmarks.measure import Outcome, Row, in_turn, judged, means, of_field, stated
from benchmarks.processes import CpuMeter, rss_bytes, wait_quiet, without_driver
from testbed.api import Json
from testbed.following import Follower
from testbed.processes import Process
from testbed.waiting import wait_until

COUNT = 1_000
REST_SECONDS = 60.0
WAIT_SECONDS = 600.0
QUIET_SECONDS = 120.0  # why they wait is written again and again, each every 100 s at most
FILLERS = "/api/v1/namespaces/filler/pods"
FILLED_BY, ASKED = "1", "4"
"""CPUs of a small pod, and of the pods that wait: so many of those would have to go."""

WAITING, NONE = "1,000 waiting", "none"
_GANGS = f"/registry/muster.dev/gangs/{NAMESPACE}/"


@dataclass(frozen=True)
class Waited:
    """What AppWrappers cost while they wait: memory in MB, CPU seconds of a minute at rest."""

    made: int
    """Jobs and pods that were seen, at any moment."""
    objects: int
    coordinator: float
    wrapper: float
    rest: dict[str, float]
    cycle: float
    """Milliseconds of a cycle, on average."""

    @property
    def rest_sum(self) -> float:
        """CPU seconds of all programs in a minute at rest."""
        return sum(without_driver(self.rest).values())

    @property
    def rest_of_coordinator(self) -> float:
        """CPU seconds of the coordinator in a minute at rest."""
        return self.rest.get("coordinator-0", 0.0)

    @property
    def rest_of_wrapper(self) -> float:
        """CPU seconds of the wrapper in a minute at rest."""
        return self.rest.get("wrapper-0", 0.0)


def measure(runs: int) -> Outcome:
    """No AppWrapper and a thousand in turn."""
    with wrapper_plane() as on:
        on.cluster.create_namespace(FILLERS.split("/")[4])
        none, waiting = in_turn(runs, partial(_run, on, 0), partial(_run, on, COUNT))
    titles = ((NONE, none), (WAITING, waiting))
    at_rest = f"CPU s of {REST_SECONDS:g} s at rest"
    tables = {f"{at_rest}, {name}": means([run.rest for run in runs]) for name, runs in titles}
    return Outcome(list(rows(none, waiting)), tables, ["floor: the same programs, no AppWrapper"])


def rows(none: Sequence[Waited], waiting: Sequence[Waited]) -> Iterator[Row]:
    """A thousand waiting AppWrappers against none."""

    def row(field: str, name: str, unit: str = "") -> Row:
        floor = () if field in ("made", "objects", "cycle") else none
        found = of_field(field, name, unit, floor, waiting)
        return stated(replace(found, ours_are=WAITING, floor_is=NONE))

    yield judged(row("made", "Jobs and pods that were made"), "none", lambda r: max(r.ours) == 0)
    yield row("objects", "objects in etcd")
    yield row("coordinator", "memory of the coordinator", "MB")
    yield row("wrapper", "memory of the wrapper", "MB")
    yield row("rest_of_coordinator", "CPU of the coordinator in a minute at rest", "s")
    yield row("rest_of_wrapper", "CPU of the wrapper in a minute at rest", "s")
    yield row("rest_sum", "CPU of all programs in a minute at rest", "s")
    yield row("cycle", "a cycle of the coordinator", "ms")


def _run(on: WrapperPlane, count: int, number: int) -> Waited:
    """Fill the nodes, let so many wait, rest, and make room for none; leave nothing."""
    api, seen = on.cluster.api, [0]

    def made(_kind: str, _item: Json) -> None:
        seen[0] += 1

    on.switch(on=False)  # so that the memory of a run is its own
    on.switch(on=True)
    create_all(api, _fillers(), FILLERS)
    before = stored_in(on.cluster, NAMESPACE)
    with Follower(api, JOBS, made), Follower(api, PODS, made):
        create_all(api, _waiting(count, number), APP_WRAPPERS)
        wait_until(partial(_all_wait, on, count), f"{count} to wait", WAIT_SECONDS, 2.0)
        wait_quiet(on.cluster, QUIET_SECONDS)
        meter = CpuMeter(on.cluster)
        time.sleep(REST_SECONDS)
        rest, after = meter.used(), stored_in(on.cluster, NAMESPACE)
        memory = _memory(on.muster.coordinators[0]), _memory(on.muster.wrappers[0])
        cycle = _cycles(on) if count else 0.0
    delete_all(api, APP_WRAPPERS)
    delete_all(api, FILLERS)
    wait_until(lambda: not count_under(on.cluster, _GANGS), "all Gangs to go", WAIT_SECONDS)
    wait_until(lambda: not api.get(FILLERS)["items"], "all small pods to go", WAIT_SECONDS)
    return Waited(seen[0], after.objects - before.objects, *memory, rest, cycle)


def _fillers() -> list[bytes]:
    """Encode the small pods that fill the nodes, bound as they are created."""
    return encoded([_filler(node.name, at) for node in NODES for at in range(int(node.cpus))])


def _filler(node: str, at: int) -> Json:
    resources = {"requests": {"cpu": FILLED_BY}}
    container = {"name": "main", "image": "none", "resources": resources}
    metadata = {"name": f"{node}-{at:02}"}
    return {"metadata": metadata, "spec": {"nodeName": node, "containers": [container]}}


def _waiting(count: int, number: int) -> list[bytes]:
    names = (f"waiting{number}-{at:04}" for at in range(count))
    return encoded([wrapped(job(name, ASKED, 1.0)) for name in names])


def _all_wait(on: WrapperPlane, count: int) -> bool:
    """Whether every AppWrapper has a Gang, and says why it waits."""
    if count_under(on.cluster, _GANGS) < count:
        return False
    found = on.cluster.api.get(APP_WRAPPERS)["items"]
    return all(each.get("status", {}).get("reason") for each in found)


def _memory(process: Process) -> float:
    return rss_bytes(process.pid) / 1e6


def _cycles(on: WrapperPlane) -> float:
    """Delete small pods one by one; return what a cycle took, in milliseconds."""
    count, spent = _so_far(on)
    with on.cluster.api.session() as session:
        for small in deleted():
            before, _ = _so_far(on)
            session.call("DELETE", f"{FILLERS}/{small}?gracePeriodSeconds=0")
            wait_until(partial(_has_decided, on, before), "a cycle after room was freed")
    later, in_all = _so_far(on)
    return 1000 * (in_all - spent) / (later - count)


def deleted() -> Iterator[str]:
    """Name small pods of each node, fewer than would make room on it."""
    for at in range(int(ASKED) - 1):
        yield from (f"{node.name}-{at:02}" for node in NODES)


def _has_decided(on: WrapperPlane, before: float) -> bool:
    return _so_far(on)[0] > before


def _so_far(on: WrapperPlane) -> tuple[float, float]:
    """How many cycles there were, and their seconds."""
    lines = wait_until(on.muster.metrics, "the metrics of the coordinator").splitlines()
    found = dict(line.rsplit(" ", 1) for line in lines if line.startswith("muster_cycle_seconds_"))
    return float(found["muster_cycle_seconds_count"]), float(found["muster_cycle_seconds_sum"])
