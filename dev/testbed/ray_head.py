"""A real Ray head and worker whose state is in Redis, started anew as a kubelet would."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from headstate.users import user_of
from testbed.ports import PortAllocator

ROOT = Path(__file__).resolve().parents[2]
VERSION = os.environ.get("MUSTER_TEST_RAY", "")
"""Which Ray is taken, as `make ray` calls it; empty for the newest."""
RAY = ROOT / "out" / (f"ray-{VERSION}-venv" if VERSION else "ray-venv") / "bin" / "python"
ON_LOOPBACK = Path(__file__).with_name("ray_on_loopback.py")
DRIVER = Path(__file__).with_name("ray_counter.py")
STORE = "80000000"
"""Bytes of shared memory for each node; Ray takes no less."""


def missing() -> str:
    """Say that there is no Ray, and how to get it; empty where there is one."""
    asked = f"make ray RAY={VERSION}" if VERSION else "make ray"
    return "" if RAY.exists() else f"Ray is not installed: `{asked}` does it"


class RayHead:
    """A head that is started anew whenever it ends, as the kubelet does, and one worker."""

    def __init__(
        self, folder: str, ports: PortAllocator, redis: str, uid: str, password: str
    ) -> None:
        self._folder = folder
        self._environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith("RAY")},
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        self.address = f"127.0.0.1:{ports.allocate()}"
        self._redis = {
            "RAY_REDIS_ADDRESS": redis,
            "RAY_external_storage_namespace": uid,
            "REDIS_USERNAME": user_of(uid),
            "REDIS_PASSWORD": password,
        }
        self._password = password
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.starts = 0

    def start_head(self) -> None:
        """Start the head, on the state that is there."""
        self.starts += 1
        # A new container has none; with it Ray takes the worker's address for that of a head.
        (Path(self._folder) / "ray_current_cluster").unlink(missing_ok=True)
        port = self.address.rpartition(":")[2]
        arguments = ["--head", f"--port={port}", "--include-dashboard=false", "--no-monitor"]
        arguments += ["--num-cpus=0", f"--temp-dir={self._folder}"]
        arguments += [
            f"--redis-username={self._redis['REDIS_USERNAME']}",
            f"--redis-password={self._password}",
        ]
        self._start("head", arguments, self._redis)

    def start_worker(self) -> None:
        """Start a worker, which waits for a head that is away as KubeRay has it."""
        waits = {"RAY_gcs_rpc_server_reconnect_timeout_s": "600"}  # as KubeRay sets it
        self._start("worker", [f"--address={self.address}", "--num-cpus=1"], waits)

    def has_started(self, name: str) -> bool:
        """Say whether a node came up, at its first start."""
        return "Ray runtime started" in Path(f"{self._folder}.{name}.log").read_text()

    @property
    def head_runs(self) -> bool:
        """Whether the head's process runs."""
        return self._processes["head"].poll() is None

    async def look_after(self) -> None:
        """Start the head again each time it ends."""
        while True:
            if not self.head_runs:
                self.start_head()
            await asyncio.sleep(0.5)

    async def driver(self, what: str) -> tuple[int, int] | None:
        """The actor's count and the number of jobs; None where it could not be asked."""
        process = await asyncio.create_subprocess_exec(
            *(str(RAY), str(DRIVER), self.address, what),
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            out, _ = await asyncio.wait_for(process.communicate(), 90)
        except TimeoutError:
            process.kill()
            await process.wait()
            return None
        found = re.search(rb"^counted (\d+) (\d+)$", out, re.MULTILINE)
        return (int(found[1]), int(found[2])) if found and process.returncode == 0 else None

    def end_head(self, password: str) -> None:
        """End the head, which finds another password in its Secret when it starts anew."""
        self._password = self._redis["REDIS_PASSWORD"] = password
        _kill_group(self._processes["head"])

    def close(self) -> None:
        """End all processes."""
        for each in self._processes.values():
            os.killpg(each.pid, signal.SIGKILL)
            each.wait()

    def _start(self, name: str, more: Sequence[str], environment: dict[str, str]) -> None:
        command = [str(RAY), str(ON_LOOPBACK), "start", "--block", "--node-ip-address=127.0.0.1"]
        command += ["--min-worker-port=0", "--max-worker-port=0"]
        command += ["--dashboard-agent-listen-port=0", f"--object-store-memory={STORE}", *more]
        before = self._processes.get(name)
        if before is not None:
            _kill_group(before)
        with Path(f"{self._folder}.{name}.log").open("ab") as out:
            self._processes[name] = subprocess.Popen(
                command,
                env={**self._environment, **environment},
                stdout=out,
                stderr=out,
                start_new_session=True,
            )


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End what a container would take with it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
