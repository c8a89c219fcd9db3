"""Reads the CPU and memory of each process from /proc."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from testbed.cluster import Cluster

_TICKS = os.sysconf("SC_CLK_TCK")
_QUIET_SHARE = 0.08  # of one core; what an idle control plane of hundreds of nodes takes
_LOOK_SECONDS = 0.5
DRIVER = "driver"


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far, its threads included; 0 when it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    fields = text.rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def peak_rss_bytes(pid: int) -> int:
    """The most memory that a process has held at once."""
    return _memory(pid, "VmHWM")


def rss_bytes(pid: int) -> int:
    """The memory that a process holds now."""
    return _memory(pid, "VmRSS")


def _memory(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"process {pid} has no {name}: it has ended")


class CpuMeter:
    """CPU seconds of a cluster's processes and of this one since a moment.

    A program that is started or started again meanwhile counts from its start.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._programs = cluster.processes
        self._before = self._now()

    def used(self) -> dict[str, float]:
        """Seconds of each program since the meter was made, without those that used nothing."""
        used: defaultdict[str, float] = defaultdict(float)
        for program, at in self._now().items():
            used[program[0]] += at - self._before.get(program, 0.0)
        return {name: round(seconds, 2) for name, seconds in used.items() if seconds >= 0.01}

    def _now(self) -> dict[tuple[str, int], float]:
        """CPU seconds of what runs, by name and process id."""
        pids = {(n, p.pid) for n, p in self._programs.items() if p.running}
        return {key: cpu_seconds(key[1]) for key in {*pids, (DRIVER, os.getpid())}}


def wait_quiet(cluster: Cluster, seconds: float = 30.0) -> float:
    """Wait until what earlier work set off has ended, or for so long; return the last share."""
    deadline = time.monotonic() + seconds
    while True:
        meter = CpuMeter(cluster)
        time.sleep(_LOOK_SECONDS)
        share = sum(without_driver(meter.used()).values()) / _LOOK_SECONDS
        if share < _QUIET_SHARE or time.monotonic() > deadline:
            return share


def without_driver(used: Mapping[str, float]) -> dict[str, float]:
    """The seconds of all but this process."""
    return {name: seconds for name, seconds in used.items() if name != DRIVER}
