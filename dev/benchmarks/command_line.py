"""`python -m benchmarks.command_line [RUNS]`: seconds that commands of `muster` take.

Each command is a process of its own, on lists of 10,000 gangs, 5,000 nodes and 20,000 pods that a
small server sends (`benchmarks.paged_lists`). An API server would take longer to send them; what
is asked here is what the command itself takes. Processor seconds are the better measure where the
machine does something else.
"""

from __future__ import annotations

import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

GANGS, NODES, PODS = 10_000, 5_000, 20_000
COMMANDS = (
    ("--help",),
    ("status", "--help"),
    ("status",),
    ("queue", "queue-1"),
    ("nodes",),
    ("why", "team-1/train-00001"),
)
_START_SECONDS = 300  # the lists are made first


def measure(runs: int) -> Iterator[tuple[str, list[float], list[float]]]:
    """Yield each command with the seconds, and the processor seconds, of its runs."""
    with tempfile.TemporaryDirectory() as directory, serving(Path(directory)) as kubeconfig:
        for command in COMMANDS:
            _run(kubeconfig, command)  # pages are made at the first request
            taken = [_run(kubeconfig, command) for _ in range(runs)]
            yield " ".join(command), [each[0] for each in taken], [each[1] for each in taken]


def _run(kubeconfig: Path, command: Sequence[str]) -> tuple[float, float]:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    argv = [sys.executable, "-m", "cli", *command]
    subprocess.run(argv, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - began, used


@contextmanager
def serving(directory: Path) -> Iterator[Path]:
    """Serve the lists on a free port; yields a kubeconfig that leads there."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    sizes = [str(each) for each in (port, GANGS, NODES, PODS)]
    served = subprocess.Popen([sys.executable, "-m", "benchmarks.paged_lists", *sizes])
    try:
        _wait_open(port)
        yield _kubeconfig(directory, port)
    finally:
        served.terminate()
        served.wait()


def _wait_open(port: int) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(f"nothing listens on port {port} after {_START_SECONDS} s")


def _kubeconfig(directory: Path, port: int) -> Path:
    config = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {}}],
        "current-context": "c",
    }
    path = directory / "kubeconfig"
    path.write_text(json.dumps(config))
    return path


def main() -> None:
    """Print the medians of each command."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    for command, seconds, used in measure(runs):
        median, processor = statistics.median(seconds), statistics.median(used)
        print(f"muster {command:24} {median:6.2f} s, {processor:5.2f} s of the processor")


if __name__ == "__main__":
    main()
