"""Measures how much later a gang starts where a ResourceQuota has room for it.

Ray clusters come one by one, in turn into a namespace without a quota and into one with a quota
that never runs out. The API server itself takes time to count pods in a quota, so Ray clusters that
are no gangs take their turns, too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from benchmarks.gangs import Size, ray_cluster
from benchmarks.kinds import MUSTER
from benchmarks.latency import REST_SECONDS, WAIT_SECONDS
from benchmarks.measure import Outcome, Row, all_in_turn, beyond_within
from benchmarks.plane import Plane, plane
from benchmarks.podwatch import PodWatch
from benchmarks.processes import wait_quiet
from testbed.api import Json
from testbed.nodes import GPU
from testbed.waiting import wait_until

SIZE = Size()
AIM = 0.1
FREE, BOUNDED = "no-quota", "quota"
_AMOUNTS = {"pods": "10000", "requests.cpu": "100000", f"requests.{GPU}": "100000"}


def measure(samples: int) -> Outcome:
    """Gangs and others, without a quota and with one."""
    with plane(8) as on, MUSTER.at_work(on), ExitStack() as stack:
        watches = {each: stack.enter_context(_namespace(on, each)) for each in (FREE, BOUNDED)}
        add_quota(on)
        wait_quiet(on.cluster)
        sides: list[Callable[[int], float]] = [
            partial(_start, on, watch, gang=gang)
            for gang in (True, False)
            for watch in watches.items()
        ]
        return Outcome(rows(*all_in_turn(samples, sides)))


def rows(
    free: Sequence[float],
    bounded: Sequence[float],
    others_free: Sequence[float],
    others_bounded: Sequence[float],
) -> list[Row]:
    """What a quota costs gangs, and what it costs others."""
    return [
        beyond_within(_row("a gang, create to Running", free, bounded), AIM),
        _row("a Ray cluster that is no gang, create to Running", others_free, others_bounded),
    ]


def _row(name: str, free: Sequence[float], bounded: Sequence[float]) -> Row:
    row = Row(name, "s", tuple(bounded), tuple(free), paired=False)
    return replace(row, ours_are="with a quota", floor_is="without")


def _namespace(on: Plane, name: str) -> PodWatch:
    on.cluster.create_namespace(name)
    return PodWatch(on.cluster.api, f"/api/v1/namespaces/{name}/pods")


def add_quota(on: Plane) -> None:
    """Add the quota, and wait until it is in force."""
    path = f"/api/v1/namespaces/{BOUNDED}/resourcequotas"
    quota: Json = {"metadata": {"name": "wide"}, "spec": {"hard": _AMOUNTS}}
    on.cluster.api.create(path, quota)

    def counts() -> bool:
        return "used" in on.cluster.api.get(f"{path}/wide").get("status", {})

    wait_until(counts, "the quota to be in force")


def _start(on: Plane, watched: tuple[str, PodWatch], number: int, *, gang: bool) -> float:
    """Start one Ray cluster; returns the seconds until all of it runs."""
    namespace, watch = watched
    name = f"{'gang' if gang else 'other'}-{number:03}"
    path = f"/apis/ray.io/v1/namespaces/{namespace}/rayclusters"
    body = json.dumps(ray_cluster(name, SIZE, gang=gang)).encode()
    with on.cluster.api.session() as session:
        began = time.monotonic()
        session.call("POST", path, body)
        running = _wait(watch, name, "running")
        session.call("DELETE", f"{path}/{name}")
    _wait(watch, name, "gone")
    time.sleep(REST_SECONDS)
    return running - began


def _wait(watch: PodWatch, name: str, stage: str) -> float:
    """Wait until all pods of a Ray cluster have come so far; returns when the last did."""

    def moments() -> list[float]:
        return [getattr(pod, stage) for pod in watch.of(name)]

    def done() -> bool:
        return len(moments()) == SIZE.pods and all(moments())

    watch.wait(done, f"all pods of {name} to be {stage}", WAIT_SECONDS)
    return max(moments())
