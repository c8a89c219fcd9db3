"""Measures each program by itself: start to ready, and memory at rest and in a large cluster.

A program runs against a real API server without other clients: at rest with nothing in it but what
every cluster has, then with 5,000 nodes and 20,000 pods, of which a tenth are Ray's. The clock runs
from the start of the process to its first "ready", the interpreter's start and imports included.
Memory is what the process holds once it takes no CPU any more, and the most that it held.

The size of the image is that of the packages it adds to its base, as they lie in this environment,
bytecode included; the tests build the same in a folder and weigh it.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

from benchmarks.extender import certificates
from benchmarks.measure import Outcome, Row
from benchmarks.plane import page
from benchmarks.processes import cpu_seconds, peak_rss_bytes, rss_bytes
from benchmarks.sync import filled
from testbed.cluster import Cluster
from testbed.errors import TestbedError
from testbed.muster import ROOT
from testbed.processes import Process
from testbed.waiting import wait_until

NODES, PODS = 5_000, 20_000
SIZES = {"at rest": (0, 0), f"with {NODES:,} nodes and {PODS:,} pods": (NODES, PODS)}
SERVERS = ("webhook", "extender")
"""The programs that show a certificate, and have a port of their own for their health."""
PROGRAMS = (*SERVERS, "coordinator", "wrapper", "certs")
_READY_SECONDS = 180.0
_QUIET_SECONDS = 60.0
_QUIET_SHARE = 0.02
_LOOK_SECONDS = 0.02
_PAUSE_SECONDS = 1.0
_TOLD = {
    "seconds": ("start to ready", "s"),
    "cpu": ("CPU until then", "s"),
    "held": ("memory held", "MB"),
    "most": ("most memory", "MB"),
}
_PINNED = re.compile(r"^([\w.-]+)==", re.MULTILINE)


@dataclass(frozen=True)
class Cost:
    """Seconds from start to ready, CPU seconds until then, and megabytes."""

    seconds: float
    cpu: float
    held: float
    most: float


def measure(runs: int) -> Outcome:
    """Each program in turn, in an empty cluster and in a large one."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="muster-bench-") as directory:
        certificates(Path(directory))
        for size, (nodes, pods) in SIZES.items():
            with filled(nodes, pods) as cluster:
                for program in PROGRAMS:
                    tries = range(runs)
                    found = [_cost(cluster, program, n, Path(directory)) for n in tries]
                    rows += _rows(program, size, found)
    image = Row("packages of the image", "MB", (image_bytes() / 1e6,))
    return Outcome([*rows, image], notes=["memory held: once the program takes no CPU any more"])


def _rows(program: str, size: str, found: Sequence[Cost]) -> Iterator[Row]:
    for name, (called, unit) in _TOLD.items():
        yield Row(f"{program} {size}: {called}", unit, tuple(getattr(f, name) for f in found))


# ---- one program


def _cost(cluster: Cluster, program: str, number: int, tls: Path) -> Cost:
    health = cluster.ports.allocate()
    began = time.monotonic()
    process = cluster.spawn(
        f"{program}-{number}",
        [sys.executable, "-m", program, *_arguments(cluster, program, health)],
        {"PYTHONPATH": str(ROOT), **_settings(cluster, program, health, tls)},
    )
    try:
        _wait_ready(process, health)
        seconds, cpu = time.monotonic() - began, cpu_seconds(process.pid)
        _wait_quiet(process)
        return Cost(seconds, cpu, rss_bytes(process.pid) / 1e6, peak_rss_bytes(process.pid) / 1e6)
    finally:
        process.kill()


def _arguments(cluster: Cluster, program: str, health: int) -> list[str]:
    """What muster-certs is told, which has no settings; the others are told nothing."""
    if program != "certs":
        return []
    told = ["--kubeconfig", str(cluster.kubeconfig), "--health-address", "127.0.0.1"]
    # The extender's: it needs no configuration of a webhook in the cluster.
    return ["secret", "--every", "10", "--health-port", str(health), *told]


def _settings(cluster: Cluster, program: str, health: int, tls: Path) -> dict[str, str]:
    own = {"KUBECONFIG": str(cluster.kubeconfig), "LISTEN_PORT": str(health)}
    if program in SERVERS:
        own |= {
            "LISTEN_PORT": str(cluster.ports.allocate()),
            "HEALTH_PORT": str(health),
            "CERTIFICATE_FILE": str(tls / "tls.crt"),
            "KEY_FILE": str(tls / "tls.key"),
        }
    if program == "extender":
        own |= {"CLIENT_CA_FILE": str(tls / "ca.crt")}
    return {f"MUSTER_{program.upper()}_{name}": value for name, value in own.items()}


def _wait_ready(process: Process, health: int) -> None:
    def ready() -> bool:
        process.expect_running()
        try:
            return page(health, "/readyz") != ""
        except (OSError, TestbedError):
            return False

    wait_until(ready, f"{process.name} to be ready", _READY_SECONDS, _LOOK_SECONDS)


def _wait_quiet(process: Process) -> None:
    """Wait until the program has done what its start left to do."""
    ends = time.monotonic() + _QUIET_SECONDS
    while time.monotonic() < ends:
        before = cpu_seconds(process.pid)
        time.sleep(_PAUSE_SECONDS)
        if cpu_seconds(process.pid) - before <= _QUIET_SHARE * _PAUSE_SECONDS:
            return


# ---- the image


def image_bytes() -> int:
    """What the image adds to its base: the pinned packages and the programs."""
    names = _PINNED.findall((ROOT / "requirements" / "runtime.txt").read_text())
    files = (Path(str(file.locate())) for name in names for file in distribution(name).files or ())
    packages = sum(path.stat().st_size for path in files if path.is_file())
    programs = (path for name in _packages() for path in (ROOT / name).rglob("*.py*"))
    return packages + sum(path.stat().st_size for path in programs)


def _packages() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found: list[str] = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    return found
