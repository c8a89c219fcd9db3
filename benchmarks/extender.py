"""How long does kube-scheduler wait for the extender, and how much of that is judging?

`python -m benchmarks.extender`: a cluster of 5,000 nodes with 1,000 reservations, questions with
100, 500 and 5,000 names over one TLS connection that stays open, as kube-scheduler's does. Beside
it the same work without a network: reading, judging and writing, against a floor that reads the
same body and gives every name back. Nothing here needs a control plane.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import msgspec

from certs.chain import ServerNames, issue_client, issue_leaf, new_authority
from certs.files import write_client, write_pair
from extender.app import Extender
from extender.metrics import Metrics
from extender.passing import Passing
from extender.refusals import Refusals
from extender.serve import scheduler_port
from extender.settings import Settings
from extender.snapshot import Ledger, see
from extender.tls import demanding_context
from extender.wire import filter_answer, read_question
from kube.objects import Gang, Node, Pod
from kube.tls import HotCertificate

NODES = 5000
RESERVED = 1000
GPU = "nvidia.com/gpu"
SIZES = (100, 500, 5000)
CALLS = {100: 2000, 500: 2000, 5000: 500}
SCHEDULER = "system:kube-scheduler"

Json = dict[str, Any]


# ---- the cluster


def name_of(number: int) -> str:
    """A name of usual length."""
    return f"gpu-node-{number:05}.cluster.example.internal"


def node(number: int) -> Json:
    """A node with 8 GPUs."""
    allocatable = {"cpu": "96", "memory": "768Gi", "pods": "110", GPU: "8"}
    labels = {"kubernetes.io/hostname": name_of(number), "zone": f"z{number % 3}"}
    metadata = {"name": name_of(number), "labels": labels}
    return {"metadata": metadata, "status": {"allocatable": allocatable}}


def pod(name: str, gpus: int, on: str = "") -> Json:
    """A pod about as large on the wire as one with a few mounts and variables is."""
    resources = {"requests": {"cpu": "4", "memory": "16Gi", GPU: str(gpus)}}
    variables = [{"name": f"SETTING_{i}", "value": "some value of usual length"} for i in range(40)]
    container = {"name": "main", "image": "x", "env": variables, "resources": resources}
    return {
        "metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}"},
        "spec": {"containers": [container], "nodeName": on},
        "status": {"phase": "Running" if on else "Pending"},
    }


def gang(number: int) -> Json:
    """A gang of 100 pods, each on a node of its own."""
    nodes = {name_of(number * 100 + i): 1 for i in range(100)}
    requests = {"cpu": "4", "memory": "16Gi", GPU: "8", "pods": "1"}
    placed = {"shape": "abc", "requests": requests, "nodes": nodes}
    owner = {"kind": "RayCluster", "name": f"g{number}", "uid": f"uid-g{number}"}
    placement = {"epoch": 1, "podSets": [{"name": "w", "assignments": [placed]}]}
    metadata = {"name": f"g{number}", "namespace": "team", "ownerReferences": [owner]}
    return {"metadata": metadata, "status": {"placement": placement}}


def cluster() -> Ledger:
    """5,000 nodes, 1,000 of them reserved, 10 pods on each tenth one."""
    made = Ledger()
    for number in range(NODES):
        made.put_node(msgspec.convert(node(number), Node))
    for number in range(RESERVED // 100):
        made.put_gang(msgspec.convert(gang(number), Gang))
    for number in range(0, NODES, 10):
        made.put_pod(see(msgspec.convert(pod(f"old-{number}", 4, name_of(number)), Pod)))
    return made


def question(size: int) -> bytes:
    """A pod and so many names, every fifth of a reserved node."""
    step = NODES // size
    names = [name_of(number * step) for number in range(size)]
    return json.dumps({"Pod": pod("new", 1), "Nodes": None, "NodeNames": names}).encode()


class Known:
    """What is known in the benchmark, always to be trusted."""

    def __init__(self) -> None:
        self.ledger = cluster()

    def trusted(self) -> bool:
        """It is."""
        return True


def extender(settings: Settings) -> Extender:
    """The extender as it runs, with that knowledge."""
    passing = Passing(time.monotonic() - 1000, settle=900, keep=0.01, limit=1000)
    return Extender(settings, Known(), passing, Refusals(), Metrics())


# ---- the server


async def serve(directory: Path) -> None:
    """Serve until killed; the port is the first line on standard output."""
    settings = Settings(listen_address=ip_address("127.0.0.1"), listen_port=0)
    tls = HotCertificate(
        directory / "tls.crt",
        directory / "tls.key",
        Silent(),
        blank=partial(demanding_context, directory / "ca.crt"),
    )
    tls.refresh()
    async with scheduler_port(settings, extender(settings), tls) as port:
        print(port, flush=True)
        await asyncio.Event().wait()


class Silent:
    """Nobody asks about the certificate."""

    def certificate_loaded(self, _: datetime) -> None:
        """Nothing."""

    def certificate_refused(self, reason: str) -> None:
        """Only here by a mistake of the benchmark."""
        raise AssertionError(reason)


# ---- the caller


class Caller:
    """One connection that stays open, blocking, with no more than is needed of HTTP."""

    def __init__(self, directory: Path, port: int) -> None:
        context = ssl.create_default_context(cafile=directory / "ca.crt")
        context.load_cert_chain(directory / "client.crt", directory / "client.key")
        plain = socket.create_connection(("127.0.0.1", port))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = context.wrap_socket(plain, server_hostname="127.0.0.1")

    def post(self, verb: str, body: bytes) -> bytes:
        """Ask, and return the body of the answer."""
        head = f"POST /{verb} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        self._socket.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self._socket.recv(65536)
        headers, _, rest = answer.partition(b"\r\n\r\n")
        assert headers.startswith(b"HTTP/1.1 200"), headers
        length = int(headers.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        parts, held = [rest], len(rest)
        while held < length:
            parts.append(self._socket.recv(1 << 18))
            held += len(parts[-1])
        return b"".join(parts)


# ---- what is measured


@dataclass(frozen=True)
class Times:
    """Times of calls in milliseconds."""

    median: float
    worst: float

    @classmethod
    def of(cls, seconds: list[float]) -> Times:
        """Median and 99th percentile."""
        ranked = sorted(seconds)
        return cls(statistics.median(ranked) * 1e3, ranked[int(len(ranked) * 0.99)] * 1e3)

    def __str__(self) -> str:
        return f"{self.median:7.2f} / {self.worst:6.2f}"


def timed(work: Callable[[], object], count: int) -> Times:
    """Do it so many times, after a few that do not count."""
    for _ in range(20):
        work()
    seconds = []
    for _ in range(count):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return Times.of(seconds)


def processor_seconds(pid: int) -> float:
    """How much processor time a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def over_tls(directory: Path) -> None:
    """Print the times that kube-scheduler would see, and calls for each second of processor."""
    command = [sys.executable, "-m", "benchmarks.extender", str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        caller = Caller(directory, int(server.stdout.readline()))
        for verb in ("filter", "prioritize"):
            for size in SIZES:
                body, before = question(size), processor_seconds(server.pid)
                times = timed(partial(caller.post, verb, body), CALLS[size])
                used = processor_seconds(server.pid) - before
                rate = (CALLS[size] + 20) / used
                print(f"TLS  {verb:10} {size:5} names  {times} ms  {rate:6.0f} calls/s per core")
        server.kill()


def in_process() -> None:
    """Print what reading, judging and writing take, and how little it could be."""
    real = extender(Settings())
    for size in SIZES:
        body, count = question(size), CALLS[size]
        floor = timed(partial(echo, body), count)
        judged = timed(partial(real.filter, body), count)
        scored = timed(partial(real.prioritize, body), count)
        print(f"pure {size:5} names  floor {floor}  filter {judged}  prioritize {scored} ms")


def echo(body: bytes) -> bytes:
    """Read a question and give every name back."""
    asked = read_question(body)
    return filter_answer(asked, asked.listed, {}, {})


def certificates(directory: Path) -> None:
    """Write what both sides show."""
    now = datetime.now(UTC)
    authority = new_authority("benchmark", now)
    names = ServerNames(addresses=(ip_address("127.0.0.1"),))
    write_pair(directory, issue_leaf(authority, names, now), authority.certificate)
    write_client(directory, issue_client(authority, SCHEDULER, now))


def main() -> None:
    """Measure; with an argument be the server that is measured."""
    if len(sys.argv) > 1:
        asyncio.run(serve(Path(sys.argv[1])))
        return
    print(f"{NODES} nodes, {RESERVED} reservations; p50 / p99")
    in_process()
    with tempfile.TemporaryDirectory() as directory:
        certificates(Path(directory))
        over_tls(Path(directory))


if __name__ == "__main__":
    main()
