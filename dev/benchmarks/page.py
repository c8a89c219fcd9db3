"""Measures the page of `muster dashboard` with 10,000 gangs, 5,000 nodes and 20,000 pods.

The lists are those of `command_line`. Asked are how long it is from the start to the first report,
how long a browser waits for the first byte of one while the cluster is read again and again, with
nothing and with a name to look for, and how much memory it takes. No browser takes part. Lists and
pages of Ray clusters are measured by `page_clusters`.
"""

from __future__ import annotations

import http.client
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import page_clusters
from benchmarks.command_line import GANGS, NODES, PODS, serving
from benchmarks.measure import Outcome, Row, judged
from testbed.errors import TestbedError
from testbed.ports import PortAllocator

AIM = 3.0
"""Seconds for an answer."""

ASKED = 60
"""Reports of one run, as many with a name as without; some while the cluster is being read."""

PAUSE = 0.1
START_SECONDS = 120.0
QUERIES = ("/report", "/report?q=train-0999")


def measure(runs: int) -> Outcome:
    """Start the page as often, and ask it."""
    starts, answers, longest, memory = [], [], [], []
    with tempfile.TemporaryDirectory() as directory, serving(Path(directory)) as kubeconfig:
        for _ in range(runs + 1):  # the server makes its lists at the first
            with _page(kubeconfig) as (port, process):
                starts.append(_until_read(port, process))
                taken = [_first_byte(port, QUERIES[at % 2]) for at in range(ASKED)]
                answers.append(statistics.median(taken))
                longest.append(max(taken))
                memory.append(_peak(process.pid))
    return Outcome(
        [*_rows(starts[1:], answers[1:], longest[1:], memory[1:]), *page_clusters.rows(runs)],
        notes=[
            f"{GANGS} gangs, {NODES} nodes, {PODS} pods; {ASKED} reports in each run",
            f"lists of Ray clusters: a real API server with {page_clusters.CLUSTERS} of them",
        ],
    )


def _rows(
    starts: list[float], answers: list[float], longest: list[float], memory: list[float]
) -> Iterator[Row]:
    for name, found in (
        ("from the start to the first report", starts),
        ("first byte of a report, median", answers),
        ("first byte of a report, the longest", longest),
    ):
        row = Row(name, "s", tuple(found))
        yield judged(row, f"p50 ≤ {AIM:g} s", lambda row: statistics.median(row.ours) <= AIM)
    yield Row("peak memory", "MB", tuple(memory))


@contextmanager
def _page(kubeconfig: Path) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    ports = PortAllocator()
    port = ports.allocate()
    command = [sys.executable, "-m", "cli", "dashboard", "--port", str(port), "--period", "1"]
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    try:
        yield port, process
    finally:
        process.terminate()
        process.wait()
        ports.close()


def _until_read(port: int, process: subprocess.Popen[bytes]) -> float:
    """Return the seconds until there is a report."""
    began = time.monotonic()
    while time.monotonic() < began + START_SECONDS:
        if process.poll() is not None:
            raise TestbedError(f"muster dashboard ended with {process.returncode}")
        try:
            if _ask(port, QUERIES[0])[0] == http.HTTPStatus.OK:
                return time.monotonic() - began
        except OSError:
            pass
        time.sleep(PAUSE / 2)
    raise TestbedError(f"muster dashboard has no report after {START_SECONDS:g} s")


def _first_byte(port: int, path: str) -> float:
    """Return the seconds until the head of an answer is there, on a connection of its own."""
    time.sleep(PAUSE)
    status, seconds = _ask(port, path)
    if status != http.HTTPStatus.OK:
        raise TestbedError(f"{path}: {status}")
    return seconds


def _ask(port: int, path: str) -> tuple[int, float]:
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        seconds = time.monotonic() - began
        answer.read()
        return answer.status, seconds
    finally:
        connection.close()


def _peak(pid: int) -> float:
    """Return the most memory that a process has had, in MB."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else float("nan")
