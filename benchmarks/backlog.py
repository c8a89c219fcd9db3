"""How long do 300 waiting gangs take when one event frees all the room?

The event: a thousand pods that fill the nodes, CPUs and GPUs, are deleted without grace by ten
requests, one after the other. Both sides see it alike, as a thousand deletions of bound pods in a
row; the clock starts with the first request. The fillers are bound by their `nodeName` and belong
to nobody.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from benchmarks.burst import create_all, delete_all
from benchmarks.gangs import PODS, Size, bodies
from benchmarks.measure import (
    Outcome,
    Row,
    in_turn,
    means,
    median_within,
    of_field,
    ratio_within,
)
from benchmarks.partly import PartlyBound, partly_bound
from benchmarks.plane import Plane, plane, usual_options
from benchmarks.podwatch import PodWatch, connect, headers
from benchmarks.processes import CpuMeter, wait_quiet, without_driver
from testbed.api import Api, Json
from testbed.nodes import GPU

GANGS = 300
NODES = 1000
SIZE = Size()
WAIT_SECONDS = 300.0
AIM = 1.1
FIRST_SECONDS = 1.0
MOST_PARTLY = 8
FILLERS = "/api/v1/namespaces/filler/pods"
_CONNECTIONS = 4
_PARTS = 10  # the API server cuts a request off after a minute, which is short on a busy machine
_DELETERS = "--delete-collection-workers=16"


@dataclass(frozen=True)
class Backlog:
    """Seconds from the request that frees the room; CPU seconds until all run."""

    freed: float
    first_bound: float
    bound: float
    running: float
    cpu: dict[str, float]
    partly: PartlyBound

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
        """Seconds from the request that frees the room to the first gang bound whole."""
        return self.partly.first_whole

    @property
    def after_freed(self) -> float:
        """Seconds from the answer to that request to the last bound."""
        return self.bound - self.freed

    @property
    def cpu_sum(self) -> float:
        """CPU seconds of all programs together."""
        return sum(without_driver(self.cpu).values())


def measure(runs: int) -> Outcome:
    """Backlogs in turn."""
    with plane(NODES, options=usual_options(apiserver_args=(_DELETERS,))) as on:
        on.cluster.create_namespace("filler")
        stock, ours = in_turn(
            runs,
            lambda i: _backlog(on, f"stock{i}", gang=False),
            lambda i: _backlog(on, f"muster{i}", gang=True),
        )
    tables = {
        "CPU s, stock, until all Running": means([run.cpu for run in stock]),
        "CPU s, Muster, until all Running": means([run.cpu for run in ours]),
    }
    return Outcome(_rows(stock, ours), tables)


def _rows(stock: Sequence[Backlog], ours: Sequence[Backlog]) -> list[Row]:
    row = partial(of_field, unit="s", floor=stock, ours=ours)
    return [
        ratio_within(row("bound", "room begins to be freed to last gang bound"), AIM),
        row("running", "to all Running"),
        row("first_bound", "to first pod bound"),
        median_within(row("first_whole", "to first gang bound whole"), FIRST_SECONDS),
        median_within(
            of_field("most_partly", "gangs partly bound at one time", "", stock, ours), MOST_PARTLY
        ),
        row("partly_seconds", "gang-seconds partly bound"),
        row("freed", "to the end of the requests that free it"),
        row("after_freed", "from there to last gang bound"),
        row("cpu_sum", "CPU of all programs until all Running"),
    ]


def _backlog(on: Plane, prefix: str, *, gang: bool) -> Backlog:
    api = on.cluster.api
    on.switch(on=gang)
    _fill(api)
    with PodWatch(api, PODS) as watch:
        create_all(api, bodies(prefix, GANGS, SIZE, gang=gang))
        pods = GANGS * SIZE.pods
        watch.wait(lambda: len(watch.pods) == pods, f"{pods} pods to exist", WAIT_SECONDS)
        wait_quiet(on.cluster)
        result = _timed(on, watch, pods)
        wait_quiet(on.cluster)
        delete_all(api)
        watch.wait_gone(WAIT_SECONDS)
    return result


def _timed(on: Plane, watch: PodWatch, pods: int) -> Backlog:
    meter = CpuMeter(on.cluster)
    began = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        freeing = pool.submit(_free, on.cluster.api)
        watch.wait_running(pods, WAIT_SECONDS)
        freed = freeing.result()
    seen = watch.seen()
    bound = [pod.bound for pod in seen]
    running = max(pod.running for pod in seen)
    partly = partly_bound(seen)
    return Backlog(
        freed - began,
        min(bound) - began,
        max(bound) - began,
        running - began,
        meter.used(),
        replace(partly, first_whole=partly.first_whole - began),
    )


def _fill(api: Api) -> None:
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


def _free(api: Api) -> float:
    """Delete all fillers; returns when the last request was answered."""
    connection = connect(api)
    for part in range(_PARTS):
        path = f"{FILLERS}?labelSelector=part%3D{part}"
        connection.request("DELETE", path, b'{"gracePeriodSeconds": 0}', headers(api))
        connection.getresponse().read()
    connection.close()
    return time.monotonic()
