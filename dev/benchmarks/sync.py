"""Measures what it takes the coordinator to sync with 5,000 nodes and 50,000 pods.

The objects are created in a real API server without other clients, so nothing changes meanwhile.
The clock runs from the start of the process to the first "ready", the interpreter's
start and imports included, and memory is the peak of the process. The floor is a process that
reads the same lists with the same client and throws the bytes away.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.measure import Outcome, in_turn, median_within, of_field
from benchmarks.plane import page
from benchmarks.processes import cpu_seconds, peak_rss_bytes
from testbed.api import Api, Json
from testbed.cluster import Cluster, prepare
from testbed.errors import TestbedError
from testbed.muster import ROOT, with_app_wrappers
from testbed.nodes import GPU, NodeSpec, node_object
from testbed.options import Options
from testbed.processes import Process
from testbed.waiting import wait_until

NODES = 5_000
PODS = 50_000
SECONDS_AIM = 15.0
MEGABYTES_AIM = 400.0
WAIT_SECONDS = 180.0
LISTS = [sys.executable, "-m", "benchmarks.lists"]
COORDINATOR = [sys.executable, "-m", "coordinator"]
_CONNECTIONS = 8
_RAY_SHARE = 10  # every tenth pod belongs to a Ray cluster
_LOOK_SECONDS = 0.02


@dataclass(frozen=True)
class Cost:
    """Seconds, CPU seconds and megabytes of one process."""

    seconds: float
    cpu: float
    megabytes: float


def measure(runs: int) -> Outcome:
    """The lists alone and the coordinator in turn."""
    with filled(NODES, PODS) as cluster:
        floor, ours = in_turn(
            runs, lambda i: _lists(cluster, i), lambda i: _coordinator(cluster, i)
        )

    row = partial(of_field, floor=floor, ours=ours)
    return Outcome(
        [
            median_within(row("seconds", "start to synced", "s"), SECONDS_AIM),
            median_within(row("megabytes", "peak memory", "MB"), MEGABYTES_AIM),
            row("cpu", "CPU of the process", "s"),
        ],
        notes=[f"{NODES} nodes, {PODS} pods, one in {_RAY_SHARE} of a Ray cluster"],
    )


def _lists(cluster: Cluster, number: int) -> Cost:
    began = time.monotonic()
    settings = {"KUBECONFIG": str(cluster.kubeconfig), "PYTHONPATH": str(ROOT)}
    process = cluster.spawn(f"lists-{number}", LISTS, settings)
    return _cost(process, began, lambda: "read" in process.log.read_text())


def _coordinator(cluster: Cluster, number: int) -> Cost:
    began = time.monotonic()
    port = cluster.ports.allocate()
    settings = {
        "PYTHONPATH": str(ROOT),
        "MUSTER_COORDINATOR_KUBECONFIG": str(cluster.kubeconfig),
        "MUSTER_COORDINATOR_LISTEN_PORT": str(port),
    }
    process = cluster.spawn(f"coordinator-{number}", COORDINATOR, settings)
    return _cost(process, began, lambda: _has_handled_all(process, port))


def _has_handled_all(process: Process, port: int) -> bool:
    """Whether all lists are complete and the loop has taken in what they said."""
    if "synced" not in process.log.read_text():
        return False
    return "\nmuster_inbox_events 0.0\n" in page(port, "/metrics")


def _cost(process: Process, began: float, done: Callable[[], bool]) -> Cost:
    def ended() -> bool:
        process.expect_running()
        return done()

    try:
        wait_until(ended, f"{process.name} to have all", WAIT_SECONDS, _LOOK_SECONDS)
    except TestbedError as error:
        raise TestbedError(f"{error}; its log:\n{process.log_tail()}") from error
    seconds = time.monotonic() - began
    cost = Cost(seconds, cpu_seconds(process.pid), peak_rss_bytes(process.pid) / 1e6)
    process.kill()
    return cost


@contextmanager
def filled(nodes: int, pods: int) -> Iterator[Cluster]:
    """An API server with so many objects and no other client."""
    programs, seed = prepare(lambda line: print(line, file=sys.stderr))
    options = with_app_wrappers(Options(kuberay=False, kwok=False, scheduler=False))
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as folder:
        cluster = Cluster(Path(folder) / "cluster", options, programs, seed)
        with cluster:
            cluster.directory.mkdir()
            cluster.start_api_server()
            cluster.create_crds(*options.crds)
            _fill(cluster.api, nodes, pods)
            yield cluster


def _fill(api: Api, nodes: int, pods: int) -> None:
    account = {"metadata": {"name": "default"}}  # without it admission refuses pods
    api.create("/api/v1/namespaces/default/serviceaccounts", account)
    api.create("/api/v1/namespaces", {"metadata": {"name": "muster-system"}})
    now = dt.datetime.now(dt.UTC)
    specs = (NodeSpec(f"node-{i}", cpus=96, memory="768Gi", gpus=8) for i in range(nodes))
    create_all(api, "/api/v1/nodes", [node_object(spec, now) for spec in specs])
    create_all(api, "/api/v1/namespaces/default/pods", [_pod(i, nodes) for i in range(pods)])


def create_all(api: Api, path: str, objects: Sequence[Json]) -> None:
    """Create objects over several connections."""

    def create(share: Iterable[Json]) -> None:
        with api.session() as session:
            for each in share:
                session.call("POST", path, json.dumps(each).encode())

    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        for done in [pool.submit(create, objects[i::_CONNECTIONS]) for i in range(_CONNECTIONS)]:
            done.result()


def _pod(number: int, nodes: int) -> Json:
    """A bound pod of the size that pods have: two containers, probes, some environment."""
    labels = {"app": f"app-{number % 500}"}
    if number % _RAY_SHARE == 0:
        labels |= {"ray.io/node-type": "worker", "ray.io/cluster": f"ray-{number % 1000}"}
    limits = {"cpu": "500m", "memory": "1Gi"} | ({GPU: "1"} if number % _RAY_SHARE == 0 else {})
    environment = [{"name": f"NAME_{i}", "value": f"value-{i}"} for i in range(12)]
    container = {"image": "registry.example.com/app:1.2.3", "env": environment}
    containers = [
        {"name": "app", "resources": {"limits": limits, "requests": limits}, **container},
        {"name": "sidecar", **container},
    ]
    spec = {"nodeName": f"node-{number % nodes}", "containers": containers}
    return {"metadata": {"name": f"pod-{number:05}", "labels": labels}, "spec": spec}
