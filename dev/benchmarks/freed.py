"""Measures how soon a waiting gang of a hundred pods is released once there is room.

A filler pod keeps the last node from the gang. The clock runs from the moment at which a watch sees
the filler gone to the last release that it sees. The floor is the patches alone: the same pods,
made and gated the same way, released by a bare loop of as many at once. They are not bound.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import msgspec

from benchmarks.burst import delete_all
from benchmarks.gangs import PODS, RAY_CLUSTERS, Size, ray_cluster
from benchmarks.measure import Outcome, Row, in_turn, ratio_within
from benchmarks.plane import Plane, plane, usual_options
from benchmarks.podwatch import PodWatch
from benchmarks.processes import wait_quiet
from benchmarks.release import release_by_loop
from kube.api.bodies import decode
from kube.api.client import Client
from kube.api.credentials import load_access
from kube.objects.core import Pod
from testbed.api import Json
from testbed.nodes import GPU

SIZE = Size(workers=99)
FILLER = "filler"
AIM = 1.1
WAIT_SECONDS = 60.0
_REST_SECONDS = 1.0


def measure(runs: int) -> Outcome:
    """The bare loop and the coordinator in turn."""
    options = usual_options(kwok=False, scheduler=False)
    with plane(SIZE.workers, options=options) as on:
        on.switch(on=True)
        loop, ours = in_turn(
            runs, lambda i: _by_loop(on, f"loop{i}"), lambda i: _by_coordinator(on, f"muster{i}")
        )
    return Outcome([row(loop, ours)], notes=["floor: the patches alone"])


def row(loop: Sequence[float], ours: Sequence[float]) -> Row:
    """The seconds of the bare loop's runs and of the coordinator's."""
    name = f"room freed to last of {SIZE.pods} releases"
    return ratio_within(Row(name, "s", tuple(ours), tuple(loop)), AIM)


def _by_coordinator(on: Plane, name: str) -> float:
    on.lead(on=False)  # begun anew in each run, also where the last one was its own
    on.lead(on=True)
    api = on.cluster.api
    with PodWatch(api, PODS) as watch:
        api.create(PODS, _filler())
        _gather(on, watch, name)
        with api.session() as session:
            session.call("DELETE", f"{PODS}/{FILLER}", b'{"gracePeriodSeconds": 0}')
        last = _last_release(watch, name)
        freed = watch.pods[FILLER].gone
        _remove(on, watch)
    return last - freed


def _by_loop(on: Plane, name: str) -> float:
    on.lead(on=False)
    with PodWatch(on.cluster.api, PODS) as watch:
        _gather(on, watch, name)
        began = asyncio.run(_release(on))
        last = _last_release(watch, name)
        _remove(on, watch)
    return last - began


async def _release(on: Plane) -> float:
    access = await load_access(str(on.cluster.kubeconfig))
    async with Client(access) as client:
        pods = decode(await client.get(PODS), _Pods).items
        began = time.monotonic()
        await release_by_loop(client, pods)
    return began


class _Pods(msgspec.Struct, frozen=True):
    items: list[Pod]


def _gather(on: Plane, watch: PodWatch, name: str) -> None:
    """Create the gang and wait until all its pods exist and nothing more happens."""
    on.cluster.api.create(RAY_CLUSTERS, ray_cluster(name, SIZE, gang=True))
    watch.wait(lambda: len(watch.of(name)) == SIZE.pods, f"the pods of {name}", WAIT_SECONDS)
    time.sleep(_REST_SECONDS)
    wait_quiet(on.cluster)
    assert not any(pod.released for pod in watch.of(name)), "released too early"


def _last_release(watch: PodWatch, name: str) -> float:
    def done() -> bool:
        return all(pod.released for pod in watch.of(name))

    watch.wait(done, f"all pods of {name} to be released", WAIT_SECONDS)
    return max(pod.released for pod in watch.of(name))


def _remove(on: Plane, watch: PodWatch) -> None:
    delete_all(on.cluster.api)
    watch.wait_gone(WAIT_SECONDS)


def _filler() -> Json:
    container = {"name": "filler", "image": "filler", "resources": {"limits": {GPU: "8"}}}
    spec = {"nodeName": "node-0", "containers": [container]}
    return {"metadata": {"name": FILLER}, "spec": spec}
