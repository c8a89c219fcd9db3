"""Measures how soon the page shows 5,000 Ray clusters and one of them, on a real API server.

Neither KubeRay nor Muster runs: objects with their statuses are there, and nothing changes them.
The floor is the API server itself, asked for the first hundred rows of the same table, or for the
same object. `muster create` is measured against `muster queue` where there is no queue.
"""

from __future__ import annotations

import asyncio
import http.client
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.gangs import Size, ray_cluster
from benchmarks.measure import Row, beyond_within, in_turn, median_within
from kube.api import resources
from kube.api.client import Client
from kube.api.credentials import load_access
from testbed.cluster import Cluster
from testbed.components import KUBERAY
from testbed.errors import TestbedError
from testbed.muster import with_muster
from testbed.options import Options

CLUSTERS = 5_000
NAMESPACES = 10
AIM = 1.0
"""Seconds to the first byte."""

CREATE_AIM = 0.5
"""Seconds that `muster create` may take beyond what any command does."""

START_SECONDS = 120.0
_AT_ONCE = 20
_TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"
_ONE = ("team-1", "train-00001")
_CREATE = ("create", "team-1/new-{}", "--group", "workers,replicas=4,gpus=8", "--no-fit")


def rows(runs: int) -> list[Row]:
    """Fill an API server, and ask it and the page in turn."""
    options = with_muster(Options(kwok=False, scheduler=False))
    with (
        tempfile.TemporaryDirectory() as directory,
        Cluster.start(Path(directory) / "root", options) as cluster,
    ):
        cluster.process(KUBERAY).stop()  # its definitions are wanted, and no pods
        create = _create(cluster, runs)
        asyncio.run(_fill(cluster))
        with _page(cluster) as port:
            return [*Asked(cluster, port).measured(runs), create]


def _create(cluster: Cluster, runs: int) -> Row:
    """Compare commands as they are started by hand."""
    cluster.create_namespace("team-1")
    for each in (("queue",), _command(-1)):
        _run(cluster, *each)
    floor, ours = in_turn(
        runs, lambda _: _run(cluster, "queue"), lambda at: _run(cluster, *_command(at))
    )
    row = Row("muster create, against muster queue", "s", tuple(ours), tuple(floor))
    return beyond_within(row, CREATE_AIM)


def _command(number: int) -> tuple[str, ...]:
    return tuple(each.format(number + 1) for each in _CREATE)


def _run(cluster: Cluster, *arguments: str) -> float:
    began = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "cli", *arguments],
        env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    return time.monotonic() - began


async def _fill(cluster: Cluster) -> None:
    """Create the Ray clusters and their Gangs, with statuses as they are while a gang waits."""
    for number in range(NAMESPACES):
        if number != 1:
            cluster.create_namespace(f"team-{number}")
    access, room = await load_access(str(cluster.kubeconfig)), asyncio.Semaphore(_AT_ONCE)
    async with Client(access, timeout=60) as client, asyncio.TaskGroup() as group:
        for number in range(CLUSTERS):
            group.create_task(_fill_one(client, room, number))


async def _fill_one(client: Client, room: asyncio.Semaphore, number: int) -> None:
    namespace, name = f"team-{number % NAMESPACES}", f"train-{number:05}"
    cluster = ray_cluster(name, Size(workers=4), gang=True)
    gang = {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "Gang",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"queue": "research"},
    }
    waits = "0 of 4 workers fit: each needs 8 nvidia.com/gpu on one node; 12 are free"
    status = {"phase": "Queued", "position": 7, "reason": "InsufficientResources", "message": waits}
    counts = {"desiredWorkerReplicas": 4, "availableWorkerReplicas": 0, "desiredGPU": "32"}
    async with room:
        for resource, body, said in (
            (resources.RAY_CLUSTERS, cluster, counts),
            (resources.GANGS, gang, status),
        ):
            await client.create(resource.path(namespace), body)
            path = resource.path(namespace, name, "status")
            await client.merge_patch(path, {"status": said})


@contextmanager
def _page(cluster: Cluster) -> Iterator[int]:
    port = cluster.ports.allocate()
    command = [sys.executable, "-m", "cli", "dashboard", "--port", str(port)]
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    try:
        _wait_open(port, process)
        yield port
    finally:
        process.terminate()
        process.wait()


def _wait_open(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            _first_byte(http.client.HTTPConnection("127.0.0.1", port), "/report", {})
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TestbedError("muster dashboard does not answer")


class Asked:
    """Asks the API server, and the page in front of it."""

    def __init__(self, cluster: Cluster, port: int) -> None:
        self._cluster = cluster
        self._port = port

    def measured(self, runs: int) -> Iterator[Row]:
        """Yield what the list and one cluster take."""
        namespace, name = _ONE
        table = f"{resources.RAY_CLUSTERS.path()}?limit=100"
        one = resources.RAY_CLUSTERS.path(namespace, name)
        for said, path, floor_path, form in (
            (f"first byte of the list of {CLUSTERS}", "/api/clusters", table, _TABLE),
            ("first byte of the page of one", f"/api/clusters/{namespace}/{name}", one, None),
        ):
            row = self._pairs(said, path, floor_path, form, runs)
            yield median_within(row, AIM)
        whole = tuple(self._ours("/api/clusters")[1] for _ in range(runs))
        yield Row(f"the whole list of {CLUSTERS}", "s", whole)

    def _pairs(self, said: str, path: str, floor: str, form: str | None, runs: int) -> Row:
        headers = {"Accept": form} if form else {}
        self._ours(path), self._floor(floor, headers)
        floors, ours = in_turn(
            runs, lambda _: self._floor(floor, headers), lambda _: self._ours(path)[0]
        )
        return Row(said, "s", tuple(ours), tuple(floors))

    def _ours(self, path: str) -> tuple[float, float]:
        return _first_byte(http.client.HTTPConnection("127.0.0.1", self._port), path, {})

    def _floor(self, path: str, headers: dict[str, str]) -> float:
        token = {"Authorization": f"Bearer {self._cluster.token}"}
        return _first_byte(self._cluster.api.connections.new(), path, headers | token)[0]


def _first_byte(
    connection: http.client.HTTPConnection, path: str, headers: dict[str, str]
) -> tuple[float, float]:
    """Return the seconds to the first byte of the body and to the last, on a new connection."""
    connection.timeout = START_SECONDS
    try:
        connection.connect()
        began = time.monotonic()
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        answer.read(1)
        first = time.monotonic() - began
        answer.read()
        return first, time.monotonic() - began
    finally:
        connection.close()
