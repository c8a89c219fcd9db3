"""Measures how long calls wait while kube-scheduler sends whole nodes (nodeCacheCapable: false).

One body with 5,000 nodes of 8 kB comes over TLS, and so goes the answer. The longest pass of the
event loop meanwhile is how long another call has to wait at most.
Nothing here needs a control plane.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from ipaddress import ip_address
from pathlib import Path

import msgspec

from benchmarks import extender
from benchmarks.measure import Outcome, Row, median_within
from extender.app import Extender
from extender.metrics import Metrics
from extender.serve import scheduler_port
from extender.settings import Settings
from runtime.http_server import in_background
from runtime.slicing import settle_heap
from runtime.tls import HotCertificate

TURN_AIM_MS = 20.0
"""What is aimed at for calls while pods are listed anew."""

_IMAGES = 60
"""As many as a kubelet reports by default, 50, and some labels and conditions."""


def measure(runs: int) -> Outcome:
    """The passes of the event loop in an extender that is sent whole nodes."""
    with tempfile.TemporaryDirectory() as directory:
        extender.certificates(Path(directory))
        found = [asyncio.run(_turns(Path(directory))) for _ in range(runs)]
    size = len(body()) / 1e6
    return Outcome(rows(found), notes=[f"one body of {extender.NODES} nodes, {size:.0f} MB"])


def rows(found: Sequence[Sequence[float]]) -> list[Row]:
    """What the runs say; each is the processor milliseconds of all its passes."""
    longest = Row("longest pass of the loop", "ms CPU", tuple(map(max, found)))
    whole = Row("the whole call", "s CPU", tuple(sum(each) / 1e3 for each in found))
    return [median_within(longest, TURN_AIM_MS), whole]


def body() -> bytes:
    """A question with all nodes of the benchmark's cluster, whole."""
    names = [f"registry.example.com/team/image-{i}@sha256:{'0' * 64}" for i in range(_IMAGES)]
    images = [{"names": [name], "sizeBytes": 123456789} for name in names]
    nodes = [extender.node(number) for number in range(extender.NODES)]
    items = [each | {"status": each["status"] | {"images": images}} for each in nodes]
    asked = {"Pod": extender.pod("new", 1), "Nodes": {"metadata": {}, "items": items}}
    return msgspec.json.encode(asked)


async def _turns(directory: Path) -> list[float]:
    """Answer one such body, and return how long each pass of the loop took."""
    settings = Settings(
        listen_address=ip_address("127.0.0.1"),
        listen_port=0,
        body_limit_bytes=128 << 20,
        call_seconds=30.0,
    )
    tls = HotCertificate(
        directory / "tls.crt",
        directory / "tls.key",
        extender.Silent(),
        client_ca=directory / "ca.crt",
    )
    tls.refresh()
    made = extender.extender(Extender, settings)
    made.filter(extender.question(extender.names_asked(500, 0)))  # what only the first call does
    settle_heap()
    passes: list[float] = []
    async with (
        scheduler_port(settings, made, tls, Metrics().connections) as port,
        in_background([partial(_look, passes)]),
    ):
        command = [sys.executable, "-m", "benchmarks.whole_nodes", str(directory), str(port)]
        caller = await asyncio.create_subprocess_exec(*command)
        if await caller.wait():
            raise OSError("the caller got no answer")
    return passes


async def _look(passes: list[float]) -> None:
    before = time.thread_time()
    while True:
        await asyncio.sleep(0)
        now = time.thread_time()
        passes.append((now - before) * 1e3)
        before = now


def main(directory: str, port: str) -> None:
    """Send one body."""
    extender.Caller(Path(directory), int(port)).post("filter", body())


if __name__ == "__main__":
    main(*sys.argv[1:])
