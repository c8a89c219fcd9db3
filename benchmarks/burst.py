"""How long do a hundred Ray clusters take that are created at once?

The clock runs from the first create to the last pod seen Running. KubeRay makes the pods, with
ten reconcilers; the stock run does the same with nothing of Muster at work.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.audit import AuditLog
from benchmarks.audit import Row as Request
from benchmarks.gangs import PODS, RAY_CLUSTERS, Size, bodies
from benchmarks.measure import Outcome, Row, in_turn, means, of_field, ratio_within
from benchmarks.plane import Plane, plane, usual_options
from benchmarks.podwatch import PodWatch
from benchmarks.processes import CpuMeter, wait_quiet, without_driver
from testbed.api import Api

GANGS = 100
NODES = 500
SIZE = Size()
WAIT_SECONDS = 240.0
AIM = 1.25
_CONNECTIONS = 4


@dataclass(frozen=True)
class Burst:
    """One burst: seconds from the first create, and CPU seconds until then and until quiet."""

    bound: float
    running: float
    cpu: dict[str, float]
    cpu_until_quiet: dict[str, float]

    @property
    def cpu_sum(self) -> float:
        """CPU seconds of all programs together."""
        return sum(without_driver(self.cpu).values())


def measure(runs: int) -> Outcome:
    """Bursts in turn, then one of each kind with an audit log."""
    with plane(NODES) as on:
        stock, ours = in_turn(
            runs,
            lambda i: burst(on, f"stock{i}", gang=False),
            lambda i: burst(on, f"muster{i}", gang=True),
        )
    outcome = Outcome(_rows(stock, ours), _cpu_tables(stock, ours))
    outcome.tables |= _requests()
    return outcome


def _rows(stock: Sequence[Burst], ours: Sequence[Burst]) -> list[Row]:
    row = partial(of_field, floor=stock, ours=ours)
    return [
        ratio_within(row("running", "first create to all Running", "s"), AIM),
        row("bound", "first create to all bound", "s"),
        row("cpu_sum", "CPU of all programs until all Running", "s"),
    ]


def _cpu_tables(stock: Sequence[Burst], ours: Sequence[Burst]) -> dict[str, dict[str, float]]:
    return {
        "CPU s, stock, until all Running": means([run.cpu for run in stock]),
        "CPU s, Muster, until all Running": means([run.cpu for run in ours]),
        "CPU s, stock, until quiet": means([run.cpu_until_quiet for run in stock]),
        "CPU s, Muster, until quiet": means([run.cpu_until_quiet for run in ours]),
    }


def burst(on: Plane, prefix: str, *, gang: bool, audit: AuditLog | None = None) -> Burst:
    """Create the clusters at once and wait until all their pods run; leave nothing."""
    on.switch(on=gang)
    manifests = bodies(prefix, GANGS, SIZE, gang=gang)
    wait_quiet(on.cluster)
    if audit is not None:
        audit.skip()
    with PodWatch(on.cluster.api, PODS) as watch:
        result = _timed(on, watch, manifests)
        if audit is not None:
            audit.stop()
        delete_all(on.cluster.api)
        watch.wait_gone(WAIT_SECONDS)
    return result


def _timed(on: Plane, watch: PodWatch, manifests: Sequence[bytes]) -> Burst:
    meter = CpuMeter(on.cluster)
    began = time.monotonic()
    create_all(on.cluster.api, manifests)
    watch.wait_running(len(manifests) * SIZE.pods, WAIT_SECONDS)
    used = meter.used()
    seen = watch.seen()
    bound, running = max(pod.bound for pod in seen), max(pod.running for pod in seen)
    wait_quiet(on.cluster)
    return Burst(bound - began, running - began, used, meter.used())


def create_all(api: Api, manifests: Sequence[bytes]) -> None:
    """Create RayClusters over a few connections."""
    shares = [manifests[start::_CONNECTIONS] for start in range(_CONNECTIONS)]
    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        for done in [pool.submit(_create, api, share) for share in shares]:
            done.result()


def delete_all(api: Api) -> None:
    """Delete every RayCluster."""
    with api.session() as session:
        session.call("DELETE", RAY_CLUSTERS)


def _create(api: Api, manifests: Sequence[bytes]) -> None:
    with api.session() as session:
        for manifest in manifests:
            session.call("POST", RAY_CLUSTERS, manifest)


def _requests() -> dict[str, dict[str, float]]:
    """Requests for each gang, from one burst of each kind on a control plane with an audit log."""
    with TemporaryDirectory(prefix="muster-bench-") as folder:
        audit = AuditLog(Path(folder))
        with plane(NODES, options=usual_options(apiserver_args=audit.flags)) as on:
            burst(on, "stock", gang=False, audit=audit)
            stock = audit.counted
            burst(on, "muster", gang=True, audit=audit)
            ours = audit.counted
    return {
        "requests per gang, stock": _per_gang(stock),
        "requests per gang, more with Muster": _per_gang(ours - stock),
        "requests per gang, fewer with Muster": _per_gang(stock - ours),
    }


def _per_gang(requests: Counter[Request]) -> dict[str, float]:
    often = {row: n / GANGS for row, n in requests.most_common() if n >= GANGS / 10}
    return {f"{who} {verb} {what} {code}": n for (who, verb, what, code), n in often.items()}
