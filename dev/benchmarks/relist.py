"""Measures how long calls take while the extender lists 50,000 pods anew.

The extender's own program, synced with 5,000 nodes and 50,000 bound pods, is asked 50 times a
second, in turn by filter and prioritize with 500 names: first while nothing happens, which is the
floor, then while its watch of pods ends in "too old" again and again, so that it lists anew as
often as its pauses allow. The other side is a small server that sends what an API server would;
a real one would need most of the machine for such a list, and what is asked here is what the
extender itself holds up.

Beside it the same watches run in this process, with a task that looks at the processor time at
each pass of the event loop: the longest pass is how long a call has to wait, whatever else
keeps the machine busy.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks import extender
from benchmarks.measure import Outcome, Row, median_within, quantile
from benchmarks.plane import page
from benchmarks.processes import peak_rss_bytes
from extender.memory.in_flight import InFlightPods
from extender.unscheduled_pods import UnscheduledPods
from extender.watches import Watches
from kube.api.client import Client
from kube.api.credentials import load_access
from kube.api.watch.reflector import wait_synced
from runtime.http_server import in_background
from runtime.slicing import settle_heap
from testbed.credentials import write_kubeconfig
from testbed.errors import TestbedError
from testbed.muster import ROOT
from testbed.ports import PortAllocator
from testbed.processes import Process, Watchdog
from testbed.waiting import wait_until

PODS = 50_000
NAMES = 500
RATE = 50.0
QUIET_SECONDS = 10.0
LISTS = 3
MOST_SECONDS = 60
P99_AIM_MS = 20.0
_SYNC_SECONDS = 60.0


@dataclass(frozen=True)
class Run:
    """Milliseconds of calls, lists that were read meanwhile, and bytes."""

    quiet: list[float]
    busy: list[float]
    lists: int
    peak: int
    passes: list[float]
    """Processor milliseconds of each pass of the loop while pods were listed once."""


def measure(runs: int) -> Outcome:
    """Calls in quiet and while pods are listed."""
    with tempfile.TemporaryDirectory() as directory:
        extender.certificates(Path(directory))
        found = [_run(Path(directory)) for _ in range(runs)]
    lists = ", ".join(f"{run.lists} of {PODS} pods" for run in found)
    return Outcome(rows(found), notes=[f"lists: {lists}"])


def rows(found: list[Run]) -> list[Row]:
    """What the runs say."""

    def row(called: str, share: float) -> Row:
        ours = tuple(quantile(run.busy, share) for run in found)
        return Row(
            f"call while pods are listed, {called}",
            "ms",
            ours,
            tuple(quantile(run.quiet, share) for run in found),
        )

    memory = tuple(run.peak / 1e6 for run in found)
    return [
        row("p50", 0.5),
        median_within(row("p99", 0.99), P99_AIM_MS),
        row("longest", 1.0),
        Row("longest pass of the loop", "ms CPU", tuple(max(run.passes) for run in found)),
        Row("a whole list", "s CPU", tuple(sum(run.passes) / 1e3 for run in found)),
        Row("peak memory", "MB", memory),
    ]


def _run(directory: Path) -> Run:
    with _site(directory) as site:
        caller = extender.Caller(directory, site.port)
        quiet = list(_paced(caller, QUIET_SECONDS))
        before = site.tell("GET", "/lists")
        site.tell("POST", "/expire")
        busy: list[float] = []
        for _ in range(MOST_SECONDS):
            busy += _paced(caller, 1.0)
            lists = site.tell("GET", "/lists") - before
            if lists >= LISTS:
                break
        peak = peak_rss_bytes(site.pid)
        return Run(quiet, busy, lists, peak, asyncio.run(_turns(site.kubeconfig)))


async def _turns(kubeconfig: Path) -> list[float]:
    """Sync, let pods be listed anew, and return how long each pass of the loop took meanwhile."""
    async with Client(await load_access(str(kubeconfig))) as client:
        in_flight_pods = InFlightPods(settle=1.0, keep=1.0, limit=1)
        watches = Watches(client, in_flight_pods, UnscheduledPods(), silence=90.0)
        async with in_background(each.run for each in watches.reflectors):
            await wait_synced(*watches.reflectors, timeout=_SYNC_SECONDS)
            settle_heap()
            passes: list[float] = []
            async with in_background([partial(_look, passes)]):
                await watches.reflectors[0].refresh(_SYNC_SECONDS)
            return passes


async def _look(passes: list[float]) -> None:
    before = time.process_time()
    while True:
        await asyncio.sleep(0)
        now = time.process_time()
        passes.append((now - before) * 1e3)
        before = now


def _paced(caller: extender.Caller, seconds: float) -> Iterator[float]:
    """Ask at a steady pace; what is due while a call is under way waits, and that counts."""
    began = time.perf_counter()
    for number in range(round(seconds * RATE)):
        body = extender.question(extender.names_asked(NAMES, number), number)
        due = began + number / RATE
        early = due - time.perf_counter()
        time.sleep(max(0.0, early))
        asked = time.perf_counter() if early > 0 else due  # to oversleep is the caller's fault
        caller.post(("filter", "prioritize")[number % 2], body)
        yield (time.perf_counter() - asked) * 1e3


@dataclass(frozen=True)
class _Site:
    """An extender that is synced, and the server that it watches."""

    directory: Path
    port: int
    pid: int
    server: int
    kubeconfig: Path

    def tell(self, method: str, path: str) -> int:
        """Ask the server for something beside its lists."""
        context = ssl.create_default_context(cafile=self.directory / "ca.crt")
        connection = http.client.HTTPSConnection("127.0.0.1", self.server, context=context)
        with closing(connection):
            connection.request(method, path)
            said = json.loads(connection.getresponse().read())
        return said if isinstance(said, int) else 0


@contextmanager
def _site(directory: Path) -> Iterator[_Site]:
    guard, ports = Watchdog(), PortAllocator()
    server, port, health = (ports.allocate() for _ in range(3))
    tls = {name: str(directory / name) for name in ("tls.crt", "tls.key", "ca.crt")}
    kubeconfig = directory / "kubeconfig"
    write_kubeconfig(kubeconfig, f"https://127.0.0.1:{server}", directory / "ca.crt", "any")
    lists = [tls["tls.crt"], tls["tls.key"], str(server), str(extender.NODES), str(PODS)]
    settings = {
        "KUBECONFIG": str(kubeconfig),
        "LISTEN_PORT": str(port),
        "HEALTH_PORT": str(health),
        "CERTIFICATE_FILE": tls["tls.crt"],
        "KEY_FILE": tls["tls.key"],
        "CLIENT_CA_FILE": tls["ca.crt"],
    }
    own = {f"MUSTER_EXTENDER_{name}": value for name, value in settings.items()}
    commands = {"benchmarks.list_server": (lists, {}), "extender": ([], own)}
    try:
        _, process = (
            Process(
                name,
                [sys.executable, "-m", name, *arguments],
                {"PYTHONPATH": str(ROOT), **environment},
                directory / f"{name}.log",
                guard,
            )
            for name, (arguments, environment) in commands.items()
        )
        wait_until(_is_ready(process, health), "the extender to be synced", _SYNC_SECONDS)
        yield _Site(directory, port, process.pid, server, kubeconfig)
    finally:
        guard.close()
        ports.close()


def _is_ready(process: Process, health: int) -> Callable[[], bool]:
    def ready() -> bool:
        process.expect_running()
        try:
            return page(health, "/readyz") != ""
        except (OSError, TestbedError):
            return False

    return ready
