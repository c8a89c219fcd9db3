"""How much CPU and memory did each process use, by what /proc says?"""

from __future__ import annotations

import os
import time
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
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"process {pid} has no VmHWM: it has ended")


class CpuMeter:
    """CPU seconds of a cluster's processes and of this one since a moment."""

    def __init__(self, cluster: Cluster) -> None:
        self._pids = {n: p.pid for n, p in cluster.processes.items() if p.running}
        self._pids[DRIVER] = os.getpid()
        self._before = self._now()

    def used(self) -> dict[str, float]:
        """Seconds of each process since the meter was made, without those that used nothing."""
        used = {name: at - self._before[name] for name, at in self._now().items()}
        return {name: round(seconds, 2) for name, seconds in used.items() if seconds >= 0.01}

    def _now(self) -> dict[str, float]:
        return {name: cpu_seconds(pid) for name, pid in self._pids.items()}


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
