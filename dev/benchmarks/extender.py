"""Measures how long kube-scheduler waits for the extender, and how much of that is judging.

A cluster of 5,000 nodes with 1,000 reservations, and questions with 100, 500 and 5,000 names over
one TLS connection that stays open, as kube-scheduler's does: filter, then prioritize with the
names that are left. At each call one pod more is bound, so nothing is as it was. Beside it the
same without a network. The floor is an extender that reads the same bodies and judges nothing.
Nothing here needs a control plane.
"""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from ipaddress import ip_address
from itertools import cycle
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.does_nothing import DoesNothing
from benchmarks.measure import Outcome, Row, in_turn, median_within, of_field, quantile
from benchmarks.processes import cpu_seconds
from certs.chain import ServerNames, issue_client, issue_leaf, new_authority
from certs.files import write_client, write_pair
from extender.app import Extender
from extender.ledger import Ledger
from extender.memory.in_flight import InFlightPods
from extender.metrics import Metrics
from extender.serve import scheduler_port
from extender.settings import Settings
from extender.snapshot import watched_pod
from extender.unscheduled_pods import UnscheduledPods
from kube.objects.core import Node, Pod
from kube.objects.gang import Gang
from runtime.slicing import settle_heap
from runtime.tls import HotCertificate

NODES = 5000
RESERVED = 1000
GPU = "nvidia.com/gpu"
SIZES = (100, 500, 5000)
CALLS = {100: 1000, 500: 1000, 5000: 300}
AIMS = {500: (0.6, 2.0), 5000: (2.0, 5.0)}
"""Milliseconds for p50 and p99, by the number of names."""
_UNCOUNTED = 20
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
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{name}",
            "resourceVersion": "1",
        },
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
    spec = {"rayClusterUid": owner["uid"]}
    return {"metadata": metadata, "spec": spec, "status": {"placement": placement}}


def cluster() -> Ledger:
    """5,000 nodes, 1,000 of them reserved, a pod on each tenth one, and the pods to be asked about.

    The watch mostly tells of a pod before kube-scheduler asks.
    """
    made = Ledger()
    for number in range(NODES):
        made.put_node(msgspec.convert(node(number), Node))
    for number in range(RESERVED // 100):
        made.put_gang(msgspec.convert(gang(number), Gang))
    for number in range(0, NODES, 10):
        made.put_pod(watched_pod(msgspec.convert(pod(f"old-{number}", 4, name_of(number)), Pod)))
    for number in range(_UNCOUNTED + max(CALLS.values())):
        made.put_pod(watched_pod(msgspec.convert(pod(f"new-{number}", 1), Pod)))
    return made


def names_asked(size: int, number: int) -> list[str]:
    """So many names, every fifth of a reserved node, in an order of its own for each number.

    kube-scheduler's workers find the nodes side by side, so no two calls have one order.
    """
    step = NODES // size
    names = [name_of(at * step) for at in range(size)]
    random.Random(number).shuffle(names)
    return names


def question(names: Sequence[str] | msgspec.Raw, number: int = 0) -> bytes:
    """A pod and names, as Go writes them: without blanks."""
    asked = {"Pod": pod(f"new-{number}", 1), "Nodes": None, "NodeNames": names}
    return msgspec.json.encode(asked)


class Known:
    """What is known in the benchmark, always to be trusted; each look finds one more pod bound."""

    def __init__(self) -> None:
        self._ledger = cluster()
        names = map(name_of, range(1, NODES, 7))
        self._news = cycle([watched_pod(msgspec.convert(pod("last", 1, n), Pod)) for n in names])

    @property
    def ledger(self) -> Ledger:
        """The cluster, changed by one pod since the last look."""
        self._ledger.put_pod(next(self._news))
        return self._ledger

    def trusted(self) -> bool:
        """It is."""
        return True


def extender(kind: type[Extender], settings: Settings) -> Extender:
    """An extender as it runs, with that knowledge."""
    in_flight_pods = InFlightPods(settle=0.0, keep=0.01, limit=1000)
    return kind(settings, Known(), in_flight_pods, UnscheduledPods(), Metrics())


# ---- the servers


async def serve(directory: Path, kind: type[Extender]) -> None:
    """Serve until killed; the port is the first line on standard output."""
    settings = Settings(listen_address=ip_address("127.0.0.1"), listen_port=0)
    tls = HotCertificate(
        directory / "tls.crt",
        directory / "tls.key",
        Silent(),
        client_ca=directory / "ca.crt",
    )
    tls.refresh()
    made = extender(kind, settings)
    settle_heap()
    async with scheduler_port(settings, made, tls, Metrics().connections) as port:
        print(port, flush=True)
        await asyncio.Event().wait()


class Silent:
    """The benchmark does not ask about the certificate."""

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
class Load:
    """What one kind of extender did with questions of one size."""

    filter: tuple[float, ...]
    """Milliseconds of each call, as of the other verb."""
    prioritize: tuple[float, ...]
    per_core: float
    """Calls for a second of processor time."""


Ask = Callable[[str, bytes], bytes]


def asked_in_turn(ask: Ask, size: int) -> Iterator[tuple[str, float]]:
    """Ask as kube-scheduler does: filter, then prioritize with what is left; verb and ms."""
    for number in range(_UNCOUNTED + CALLS[size]):
        body = question(names_asked(size, number), number)
        answer, filtering = clocked(ask, "filter", body)
        left = question(_LEFT.decode(answer).names, number)
        _, scoring = clocked(ask, "prioritize", left)
        if number >= _UNCOUNTED:
            yield "filter", filtering
            yield "prioritize", scoring


class _Left(msgspec.Struct):
    names: msgspec.Raw = msgspec.field(name="NodeNames")


_LEFT = msgspec.json.Decoder(_Left)


def clocked(ask: Ask, verb: str, body: bytes) -> tuple[bytes, float]:
    """The answer, and how many milliseconds it took."""
    began = time.perf_counter()
    answer = ask(verb, body)
    return answer, (time.perf_counter() - began) * 1e3


def load(ask: Ask, size: int, processor: Callable[[], float]) -> Load:
    """Ask the questions of a size; `processor` says what processor time was used so far."""
    before = processor()
    took: dict[str, list[float]] = {"filter": [], "prioritize": []}
    for verb, milliseconds in asked_in_turn(ask, size):
        took[verb].append(milliseconds)
    calls = 2 * (CALLS[size] + _UNCOUNTED)
    per_core = calls / max(processor() - before, 1e-9)
    return Load(tuple(took["filter"]), tuple(took["prioritize"]), per_core)


def in_process(kind: type[Extender], size: int) -> Load:
    """Reading, judging and writing alone, without a network."""
    made = extender(kind, Settings())
    verbs = {"filter": made.filter, "prioritize": made.prioritize}
    return load(lambda verb, body: b"".join(verbs[verb](body)), size, time.process_time)


@contextmanager
def server(directory: Path, kind: type[Extender]) -> Iterator[subprocess.Popen[str]]:
    """A process that serves."""
    command = [sys.executable, "-m", "benchmarks.extender", str(directory), kind.__name__]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def over_tls(directory: Path, kind: type[Extender], size: int) -> Load:
    """What kube-scheduler would see."""
    with server(directory, kind) as process:
        assert process.stdout is not None
        caller = Caller(directory, int(process.stdout.readline()))
        return load(caller.post, size, partial(cpu_seconds, process.pid))


def measure(runs: int) -> Outcome:
    """An extender that does nothing and ours in turn, by size, alone and over TLS."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as directory:
        certificates(Path(directory))
        for size in SIZES:
            rows += _rows("judging alone", size, runs, in_process)
            tls = partial(over_tls, Path(directory))
            rows += [_aimed(each) for each in _rows("over TLS", size, runs, tls)]
    note = f"{NODES} nodes, {RESERVED} reservations, one pod more bound at each call"
    return Outcome(rows, notes=[note, "floor: an extender that reads, and gives all names back"])


def _rows(
    how: str, size: int, runs: int, work: Callable[[type[Extender], int], Load]
) -> Iterator[Row]:
    floor, ours = in_turn(runs, lambda _: work(DoesNothing, size), lambda _: work(Extender, size))
    for verb in ("filter", "prioritize"):
        # A tenth of the calls runs undisturbed even on a busy machine.
        for share, called in ((0.1, "p10"), (0.5, "p50"), (0.99, "p99")):
            name = f"{verb}, {size} names, {how}, {called}"
            yield Row(name, "ms", _quantiles(ours, verb, share), _quantiles(floor, verb, share))
    yield of_field(
        "per_core", f"calls for each s of a core, {size} names, {how}", "1/s", floor, ours
    )


def _quantiles(loads: Sequence[Load], verb: str, share: float) -> tuple[float, ...]:
    return tuple(quantile(getattr(each, verb), share) for each in loads)


def _aimed(row: Row) -> Row:
    """The row with its aim, where it has one."""
    for size, (p50, p99) in AIMS.items():
        for called, most in (("p50", p50), ("p99", p99)):
            if f" {size} names" in row.name and row.name.endswith(called):
                return median_within(row, most)
    return row


def certificates(directory: Path) -> None:
    """Write what both sides show."""
    now = datetime.now(UTC)
    authority = new_authority("benchmark", now)
    names = ServerNames(addresses=(ip_address("127.0.0.1"),))
    write_pair(directory, issue_leaf(authority, names, now), authority.certificate)
    write_client(directory, issue_client(authority, SCHEDULER, now))


def main(directory: str, kind: str) -> None:
    """Be one of the servers that are measured."""
    asyncio.run(serve(Path(directory), {"Extender": Extender, "DoesNothing": DoesNothing}[kind]))


if __name__ == "__main__":
    main(*sys.argv[1:])
