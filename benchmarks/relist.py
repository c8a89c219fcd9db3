"""How long do calls take while the extender lists 50,000 pods anew?

The extender's own program, synced with 5,000 nodes and 50,000 bound pods, is asked 50 times a
second, in turn by filter and prioritize with 500 names: first while nothing happens, which is the
floor, then while its watch of pods ends in "too old" again and again, so that it lists anew as
often as its pauses allow. The other side is a small server that sends what an API server would;
a real one would need most of the machine for such a list, and what is asked here is what the
extender itself holds up.
"""

from __future__ import annotations

import http.client
import json
import ssl
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import extender
from benchmarks.measure import Outcome, Row, median_within, quantile
from benchmarks.plane import page
from benchmarks.processes import peak_rss_bytes
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
BUSY_SECONDS = 20.0
P99_AIM_MS = 20.0
_SYNC_SECONDS = 60.0


@dataclass(frozen=True)
class Run:
    """Milliseconds of calls, lists that were read meanwhile, and bytes."""

    quiet: list[float]
    busy: list[float]
    lists: int
    peak: int


def measure(runs: int) -> Outcome:
    """Calls in quiet and while pods are listed."""
    with tempfile.TemporaryDirectory() as directory:
        extender.certificates(Path(directory))
        found = [_run(Path(directory)) for _ in range(runs)]
    notes = [f"{sum(run.lists for run in found)} lists of {PODS} pods in {runs * BUSY_SECONDS:g} s"]
    return Outcome(rows(found), notes=notes)


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
        Row("peak memory", "MB", memory),
    ]


def _run(directory: Path) -> Run:
    with _site(directory) as site:
        caller = extender.Caller(directory, site.port)
        quiet = list(_paced(caller, QUIET_SECONDS))
        before = site.tell("GET", "/lists")
        site.tell("POST", "/expire")
        busy = list(_paced(caller, BUSY_SECONDS))
        return Run(quiet, busy, site.tell("GET", "/lists") - before, peak_rss_bytes(site.pid))


def _paced(caller: extender.Caller, seconds: float) -> Iterator[float]:
    """Ask at a steady pace; the clock of a call starts when it was due, so that no wait is lost."""
    began = time.perf_counter()
    for number in range(round(seconds * RATE)):
        body = extender.question(extender.names_asked(NAMES, number), number)
        due = began + number / RATE
        time.sleep(max(0.0, due - time.perf_counter()))
        asked = max(due, time.perf_counter()) if number == 0 else due
        caller.post(("filter", "prioritize")[number % 2], body)
        yield (time.perf_counter() - asked) * 1e3


@dataclass(frozen=True)
class _Site:
    """An extender that is synced, and the server that it watches."""

    directory: Path
    port: int
    pid: int
    server: int

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
        yield _Site(directory, port, process.pid, server)
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
