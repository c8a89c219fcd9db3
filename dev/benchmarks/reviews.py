"""Measures the review of a pod, over TLS and kept connections, at 200 a second.

The reviews are those that a real API server sent for pods of KubeRay (tests/webhook/reviews), with
the uid of a RayCluster that exists, so that each is gated and answered from the cache. The floor
is the same HTTP server that answers a constant.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import orjson

from benchmarks.gangs import Size, ray_cluster
from benchmarks.load import Target, at_most, at_rate
from benchmarks.measure import Outcome, Row, in_turn, median_within, of_field, quantile
from benchmarks.plane import Plane, plane, usual_options
from benchmarks.processes import cpu_seconds, wait_quiet
from testbed.processes import Process
from testbed.waiting import wait_until

RATE = 200.0
COUNT = 4_000
MOST_SECONDS = 5.0
ROOT = Path(__file__).resolve().parents[2]
NAMESPACE = "demo"  # as in the recorded reviews
OWNER = "raycluster-kuberay"
REVIEWS = ROOT / "tests" / "webhook" / "reviews"
GATED = ("worker", "head-with-autoscaler")
P50_AIM_MS = 1.0
P99_AIM_MS = 5.0


@dataclass(frozen=True)
class Load:
    """What one server did: milliseconds, and answers a second."""

    p50: float
    p99: float
    cpu: float
    most: float


def measure(runs: int) -> Outcome:
    """Measure the constant answer and the webhook in turn."""
    with plane(0, options=usual_options(kwok=False, scheduler=False)) as on:
        on.switch(on=True)
        bodies = recorded_reviews(on)
        floor_server, floor_target = _start_floor(on)
        webhook, target = on.muster.webhook, Target(on.webhook_port, on.webhook_ca)
        floor, ours = in_turn(
            runs,
            lambda _: _load(floor_server, floor_target, bodies),
            lambda _: _load(webhook, target, bodies),
        )
        checked = asyncio.run(_gated(target, bodies))
    sizes = ", ".join(f"{len(body)}" for body in bodies)
    note = f"reviews of {sizes} bytes; {checked} of {len(bodies)} were answered with a gate"
    return Outcome(_rows(floor, ours), notes=[note])


def _rows(floor: Sequence[Load], ours: Sequence[Load]) -> list[Row]:
    row = partial(of_field, floor=floor, ours=ours)
    return [
        median_within(row("p50", f"review at {RATE:g}/s, p50", "ms"), P50_AIM_MS),
        median_within(row("p99", f"review at {RATE:g}/s, p99", "ms"), P99_AIM_MS),
        row("cpu", "CPU of the server for a review", "ms"),
        row("most", "most reviews a second, 8 connections", "1/s"),
    ]


def _load(server: Process, target: Target, bodies: Sequence[bytes]) -> Load:
    before = cpu_seconds(server.pid)
    took = asyncio.run(at_rate(target, bodies, RATE, COUNT))
    cpu = (cpu_seconds(server.pid) - before) / COUNT
    most = asyncio.run(at_most(target, bodies, MOST_SECONDS))
    return Load(quantile(took, 0.5) * 1e3, quantile(took, 0.99) * 1e3, cpu * 1e3, most)


def _start_floor(on: Plane) -> tuple[Process, Target]:
    port = on.cluster.ports.allocate()
    key = on.webhook_ca.parent
    module = [sys.executable, "-m", "benchmarks.floor_server"]
    files = [str(key / "tls.crt"), str(key / "tls.key")]
    server = on.cluster.spawn("floor", [*module, *files, str(port)], {"PYTHONPATH": str(ROOT)})
    wait_until(lambda: _listens(port), "the floor's server to listen")
    return server, Target(port, on.webhook_ca)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def recorded_reviews(on: Plane) -> list[bytes]:
    """The recorded reviews, with the owner that this control plane knows."""
    on.cluster.create_namespace(NAMESPACE)
    path = f"/apis/ray.io/v1/namespaces/{NAMESPACE}/rayclusters"
    owner = on.cluster.api.create(path, ray_cluster(OWNER, Size(), gang=True))
    wait_quiet(on.cluster)
    return [_owned(name, owner["metadata"]["uid"]) for name in GATED]


def _owned(name: str, uid: str) -> bytes:
    review = orjson.loads((REVIEWS / f"{name}.json").read_bytes())
    for reference in review["request"]["object"]["metadata"]["ownerReferences"]:
        reference["uid"] = uid
    return orjson.dumps(review)


async def _gated(target: Target, bodies: Sequence[bytes]) -> int:
    """How many of the reviews are answered with a patch: what was measured was the whole path."""
    connection = await target.connect()
    answers = [orjson.loads(await connection.post(body)) for body in bodies]
    await connection.close()
    return sum("patch" in answer["response"] for answer in answers)
