"""Measures how long `muster fit` takes with 5,000 nodes and 20,000 pods.

A process is started for each answer, the interpreter's start and imports included. It asks about a
Ray cluster that fits, and about one of which a worker group does not, so that the largest count is
searched for. Lists come from a small server, so that what is measured is the command and not what
an API server takes to send them. The floor is a process that reads nodes and pods with the same
client and throws the bytes away.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from benchmarks import extender
from benchmarks.measure import Outcome, Row, median_within
from testbed.credentials import write_kubeconfig
from testbed.errors import TestbedError
from testbed.muster import ROOT
from testbed.nodes import GPU
from testbed.ports import PortAllocator
from testbed.processes import Process, Watchdog
from testbed.waiting import wait_until

NODES, PODS = 5_000, 20_000
WORKERS = {"fits": 100, "does not fit": 6_000}
SECONDS_AIM = 3.0
FLOOR = "benchmarks.fit_floor"
_START_SECONDS = 60.0


def measure(runs: int) -> Outcome:
    """The floor, then both questions, in turn."""
    with tempfile.TemporaryDirectory() as directory, _server(Path(directory)) as environment:
        asked = {name: _written(Path(directory), name, WORKERS[name]) for name in WORKERS}
        floor: list[tuple[float, float]] = []
        ours: dict[str, list[tuple[float, float]]] = {name: [] for name in WORKERS}
        for _ in range(runs):
            floor.append(_run([FLOOR], environment))
            for name, path in asked.items():
                ours[name].append(_run(["cli", "fit", "-f", str(path)], environment))
    return Outcome(list(_rows(ours, floor)), notes=[f"{NODES} nodes, {PODS} pods"])


def _rows(
    ours: dict[str, list[tuple[float, float]]], floor: Sequence[tuple[float, float]]
) -> Iterator[Row]:
    for name, runs in ours.items():
        for at, (called, unit) in enumerate((("start to end", "s"), ("CPU", "s CPU"))):
            found = Row(
                f"a cluster that {name}, {called}",
                unit,
                tuple(each[at] for each in runs),
                tuple(each[at] for each in floor),
            )
            yield median_within(found, SECONDS_AIM) if at == 0 else found


def _run(arguments: Sequence[str], environment: dict[str, str]) -> tuple[float, float]:
    """Run a module; return the seconds and the CPU seconds that it took."""
    before, began = _cpu(), time.monotonic()
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or "Traceback" in done.stderr:
        raise TestbedError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
    return time.monotonic() - began, _cpu() - before


def _cpu() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _written(directory: Path, name: str, workers: int) -> Path:
    requests = {"cpu": "8", "memory": "32Gi", GPU: "8"}
    template = {"spec": {"containers": [{"name": "ray", "resources": {"limits": requests}}]}}
    group = {"groupName": "workers", "replicas": workers, "template": template}
    cluster = {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "train", "labels": {"muster.dev/gang": "true"}},
        "spec": {"headGroupSpec": {"template": template}, "workerGroupSpecs": [group]},
    }
    path = directory / f"{name.replace(' ', '-')}.json"
    path.write_bytes(msgspec.json.encode(cluster))
    return path


@contextmanager
def _server(directory: Path) -> Iterator[dict[str, str]]:
    """A server of lists; yields the environment of a process that reads them."""
    extender.certificates(directory)
    guard, ports = Watchdog(), PortAllocator()
    try:
        port, kubeconfig = ports.allocate(), directory / "kubeconfig"
        write_kubeconfig(kubeconfig, f"https://127.0.0.1:{port}", directory / "ca.crt", "any")
        pair = [str(directory / "tls.crt"), str(directory / "tls.key")]
        arguments = [*pair, str(port), str(NODES), str(PODS)]
        log = directory / "lists.log"
        own = {"PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "benchmarks.list_server", *arguments]
        process = Process("benchmarks.list_server", command, own, log, guard)
        environment = {**os.environ, **own, "KUBECONFIG": str(kubeconfig)}

        def listens() -> bool:
            process.expect_running()
            try:
                _run([FLOOR], environment)
            except TestbedError:
                return False
            return True

        wait_until(listens, "the server of lists to answer", _START_SECONDS)
        yield environment
    finally:
        guard.close()
        ports.close()
