"""Measures how long 300 waiting gangs take once they can start.

Two events, each with runs of stock and Muster in turn:

- Room: a thousand pods that fill the nodes, CPUs and GPUs, are deleted without grace by ten
  requests, one after the other. Both sides see it alike, as a thousand deletions of bound pods in a
  row; the clock starts with the first request. The fillers are bound by their `nodeName` and have
  no owner.
- Start: the nodes are empty, and the program that lets pods go is started: the coordinator, and on
  the stock side kube-scheduler. The clock starts with the process, its interpreter and lists
  included.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from benchmarks.burst import create_all, delete_all
from benchmarks.gangs import PODS, Size, bodies
from benchmarks.kinds import MUSTER, NOMINATING, QUEUED, STOCK, UNGUARDED, Kind
from benchmarks.kuberay import Reconciles
from benchmarks.measure import (
    Outcome,
    Row,
    all_in_turn,
    means,
    median_within,
    of_field,
    ratio_within,
    stated,
)
from benchmarks.partly import PartlyBound, partly_bound
from benchmarks.plane import Plane, plane, usual_options
from benchmarks.podwatch import PodWatch, connect, headers
from benchmarks.processes import CpuMeter, wait_quiet, without_driver
from testbed import components
from testbed.api import Api, Json
from testbed.nodes import GPU

GANGS = 300
NODES = 1000
SIZE = Size()
WAIT_SECONDS = 300.0
AIM = 1.1
QUEUES_AIM = 1.03
NOMINATIONS_AIM = 1.03
FIRST_SECONDS = 1.0
MOST_PARTLY = 8
FILLERS = "/api/v1/namespaces/filler/pods"
_CONNECTIONS = 4
_PARTS = 10  # the API server cuts a request off after a minute, which is short on a busy machine
_DELETERS = "--delete-collection-workers=16"


@dataclass(frozen=True)
class Backlog:
    """Seconds from the start of the event; CPU seconds until all run."""

    ended: float
    first_bound: float
    bound: float
    running: float
    cpu: dict[str, float]
    partly: PartlyBound
    reconciles: float
    nominated: int = 0
    """Pods that were seen nominated."""

    @property
    def most_partly(self) -> int:
        """Gangs partly bound at one time, at most."""
        return self.partly.most

    @property
    def partly_seconds(self) -> float:
        """Seconds for which gangs were partly bound, added up."""
        return self.partly.gang_seconds

    @property
    def first_whole(self) -> float:
        """Seconds to the first gang bound whole."""
        return self.partly.first_whole

    @property
    def after_freed(self) -> float:
        """Seconds from the end of the event to the last bound."""
        return self.bound - self.ended

    @property
    def cpu_sum(self) -> float:
        """CPU seconds of all programs together."""
        return sum(without_driver(self.cpu).values())


@dataclass(frozen=True)
class Event:
    """What lets the gangs go: `prepare` comes before they exist, `happen` when all of them wait.

    `happen` returns when it is over.
    """

    name: str
    prepare: Callable[[Plane, Kind], None]
    happen: Callable[[Plane, Kind], None]


def measure(runs: int) -> Outcome:
    """Backlogs of both events and both sides in turn."""
    found, tables = _backlogs(runs, (STOCK, MUSTER))
    return Outcome([*rows_of_room(*found[:2]), *rows_of_start(*found[2:])], tables)


def measure_queues(runs: int) -> Outcome:
    """Backlogs of both events with queues in use and without in turn."""
    return _cost(runs, MUSTER, QUEUED, QUEUES_AIM)


def measure_nominations(runs: int) -> Outcome:
    """Backlogs of both events with the guard Nomination and with none in turn."""
    return _cost(runs, UNGUARDED, NOMINATING, NOMINATIONS_AIM)


def _cost(runs: int, without: Kind, ours: Kind, aim: float) -> Outcome:
    found, tables = _backlogs(runs, (without, ours))
    rows = partial(cost_rows, sides=(without, ours), aim=aim)
    counts = {
        event.name: ", ".join(str(run.nominated) for run in runs)
        for event, runs in ((ROOM, found[1]), (START, found[3]))
    }
    told = "; ".join(f"{event}: {each}" for event, each in counts.items())
    note = f"pods nominated of {GANGS * SIZE.pods}, with {ours.name}: {told}"
    return Outcome([*rows(ROOM, *found[:2]), *rows(START, *found[2:])], tables, [note])


def _backlogs(
    runs: int, kinds: Sequence[Kind]
) -> tuple[list[list[Backlog]], dict[str, dict[str, float]]]:
    sides = [(event, kind) for event in (ROOM, START) for kind in kinds]
    with plane(NODES, options=usual_options(apiserver_args=(_DELETERS,))) as on:
        on.cluster.create_namespace("filler")
        found = all_in_turn(runs, [partial(_backlog, on, *side) for side in sides])
    tables = {
        f"CPU s, {kind.name}, {event.name}": means([run.cpu for run in backlogs])
        for (event, kind), backlogs in zip(sides, found, strict=True)
    }
    return found, tables


def cost_rows(
    event: Event,
    floor: Sequence[Backlog],
    ours: Sequence[Backlog],
    sides: tuple[Kind, Kind],
    aim: float,
) -> Iterator[Row]:
    """What one side of two has alone costs, by the clock and in CPU seconds."""
    row = _labelled(floor, ours, *sides)
    yield ratio_within(row("bound", f"{event.name}: to last gang bound"), aim)
    yield ratio_within(row("cpu_sum", f"{event.name}: CPU of all programs"), aim)


def rows_of_room(stock: Sequence[Backlog], ours: Sequence[Backlog]) -> Iterator[Row]:
    """What the runs in which room is freed say."""
    row = _labelled(stock, ours)
    yield ratio_within(row("bound", "room begins to be freed to last gang bound"), AIM)
    yield row("running", "to all Running")
    yield row("first_bound", "to first pod bound")
    yield median_within(row("first_whole", "to first gang bound whole"), FIRST_SECONDS)
    yield row("ended", "to the end of the requests that free it")
    yield row("after_freed", "from there to last gang bound")
    yield from _rows_of_both(row)


def rows_of_start(stock: Sequence[Backlog], ours: Sequence[Backlog]) -> Iterator[Row]:
    """What the runs in which the coordinator or kube-scheduler is started say."""
    row = _labelled(stock, ours)
    yield ratio_within(row("bound", "started while they wait: to last gang bound"), AIM)
    yield row("running", "to all Running")
    yield row("first_whole", "to first gang bound whole")
    yield from _rows_of_both(row)


def _rows_of_both(row: Callable[..., Row]) -> Iterator[Row]:
    partly = row("most_partly", "gangs partly bound at one time", unit="")
    yield median_within(partly, MOST_PARTLY)
    yield row("partly_seconds", "gang-seconds partly bound")
    yield stated(row("cpu_sum", "CPU of all programs until all Running"))
    yield row("reconciles", "KubeRay's reconciles for a gang until all Running", unit="")


def _labelled(
    theirs: Sequence[Backlog], ours: Sequence[Backlog], floor: Kind = STOCK, side: Kind = MUSTER
) -> Callable[..., Row]:
    def row(field: str, name: str, unit: str = "s") -> Row:
        found = of_field(field, name, unit, theirs, ours)
        return replace(found, floor_is=floor.name, ours_are=side.name)

    return row


def _backlog(on: Plane, event: Event, kind: Kind, number: int) -> Backlog:
    api, pods = on.cluster.api, GANGS * SIZE.pods
    prefix = f"{event.name}-{kind.prefix}{number}"
    manifests = bodies(prefix, GANGS, SIZE, gang=kind.labelled, queues=kind.queues)
    with kind.at_work(on), PodWatch(api, PODS) as watch:
        event.prepare(on, kind)
        create_all(api, manifests)
        watch.wait(lambda: len(watch.pods) == pods, f"{pods} pods to exist", WAIT_SECONDS)
        wait_quiet(on.cluster)
        result = _timed(on, watch, pods, partial(event.happen, on, kind))
        wait_quiet(on.cluster)
        delete_all(api)
        watch.wait_gone(WAIT_SECONDS)
    return result


def _timed(on: Plane, watch: PodWatch, pods: int, happen: Callable[[], None]) -> Backlog:
    meter, looked = CpuMeter(on.cluster), Reconciles.so_far(on.cluster)
    began = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        ending = pool.submit(_ended, happen)
        watch.wait_running(pods, WAIT_SECONDS)
        ended = ending.result()
    reconciles = Reconciles.so_far(on.cluster).since(looked).count / GANGS
    seen = watch.seen()
    bound = [pod.bound for pod in seen]
    partly = partly_bound(seen)
    return Backlog(
        ended - began,
        min(bound) - began,
        max(bound) - began,
        max(pod.running for pod in seen) - began,
        meter.used(),
        replace(partly, first_whole=partly.first_whole - began),
        reconciles,
        sum(pod.nominated > 0 for pod in seen),
    )


def _ended(happen: Callable[[], None]) -> float:
    happen()
    return time.monotonic()


def _stop(on: Plane, kind: Kind) -> None:
    """Have nothing there that would let the pods of this side go."""
    if kind is STOCK:
        on.cluster.process(components.SCHEDULER).stop()
    else:
        on.lead(on=False)


def _start(on: Plane, kind: Kind) -> None:
    if kind is STOCK:
        on.cluster.process(components.SCHEDULER).restart()
        on.cluster.wait_healthy(components.SCHEDULER)
    else:
        on.lead(on=True)


def _fill(on: Plane, _: Kind) -> None:
    api = on.cluster.api
    bodies_of = [json.dumps(_filler(number)).encode() for number in range(NODES)]
    shares = [bodies_of[start::_CONNECTIONS] for start in range(_CONNECTIONS)]
    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        for done in [pool.submit(_create, api, share) for share in shares]:
            done.result()


def _create(api: Api, manifests: Sequence[bytes]) -> None:
    with api.session() as session:
        for manifest in manifests:
            session.call("POST", FILLERS, manifest)


def _filler(number: int) -> Json:
    amounts = {"cpu": "96", GPU: "8"}
    container = {"name": "filler", "image": "filler", "resources": {"limits": amounts}}
    spec = {"nodeName": f"node-{number}", "containers": [container]}
    metadata = {"name": f"filler-{number}", "labels": {"part": str(number % _PARTS)}}
    return {"metadata": metadata, "spec": spec}


def _free(on: Plane, _: Kind) -> None:
    """Delete all fillers, until the last request was answered."""
    api = on.cluster.api
    connection = connect(api)
    for part in range(_PARTS):
        path = f"{FILLERS}?labelSelector=part%3D{part}"
        connection.request("DELETE", path, b'{"gracePeriodSeconds": 0}', headers(api))
        connection.getresponse().read()
    connection.close()


ROOM = Event("room", _fill, _free)
START = Event("start", _stop, _start)
