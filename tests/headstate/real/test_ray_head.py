"""A real Ray head with its state in Redis: its actor and jobs outlive what befalls the servers."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from headstate.users import password_of, user_of
from testbed.ports import PortAllocator
from testbed.redis_servers import Stack, missing, stack, until
from tests.headstate.heads import head, uid_of
from tests.headstate.real.service import Service
from tests.headstate.real.test_users_on_servers import keeping
from tests.packaging.tree import ROOT

RAY = ROOT / "out" / "ray-venv" / "bin" / "python"
ON_LOOPBACK = ROOT / "dev" / "testbed" / "ray_on_loopback.py"
DRIVER = Path(__file__).with_name("ray_driver.py")
STORE = "80000000"
"""Bytes of shared memory for each node; Ray takes no less."""

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(bool(missing()), reason=missing()),
    pytest.mark.skipif(not RAY.exists(), reason="Ray is not installed: `make ray` does it"),
    pytest.mark.timeout(900),
]


class Ray:
    """A head that is started anew whenever it ends, as the kubelet does, and one worker."""

    def __init__(self, folder: str, ports: PortAllocator, redis: str, password: str) -> None:
        self._folder = folder
        self._environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith("RAY")},
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        }
        self.address = f"127.0.0.1:{ports.allocate()}"
        self._redis = {
            "RAY_REDIS_ADDRESS": redis,
            "RAY_external_storage_namespace": uid_of(1),
            "REDIS_USERNAME": user_of(uid_of(1)),
            "REDIS_PASSWORD": password,
        }
        self._password = password
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.starts = 0

    def start_head(self) -> None:
        self.starts += 1
        port = self.address.rpartition(":")[2]
        arguments = ["--head", f"--port={port}", "--include-dashboard=false", "--no-monitor"]
        arguments += ["--num-cpus=0", f"--temp-dir={self._folder}"]
        arguments += [
            f"--redis-username={user_of(uid_of(1))}",
            f"--redis-password={self._password}",
        ]
        self._start("head", arguments, self._redis)

    def start_worker(self) -> None:
        waits = {"RAY_gcs_rpc_server_reconnect_timeout_s": "600"}  # as KubeRay sets it
        self._start("worker", [f"--address={self.address}", "--num-cpus=1"], waits)

    @property
    def head_runs(self) -> bool:
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
        words = out.split()
        return (int(words[0]), int(words[1])) if process.returncode == 0 else None

    def close(self) -> None:
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


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Stack]:
    with stack(tmp_path) as found:
        yield found


@asynccontextmanager
async def protected(running: Stack) -> AsyncIterator[tuple[Ray, Service]]:
    """A head with an actor on a worker, its state in the servers, and the program's work."""
    service, ports = Service(), PortAllocator()
    service.add(head(1))
    await running.settled()
    async with keeping(running, service), service.listening() as port:
        await until(lambda: _true(bool(service.secrets)))
        password = password_of((running.keys / "key").read_text().encode(), uid_of(1))
        # A socket's path has at most 107 bytes, and Ray adds 70 to this.
        with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
            ray = Ray(folder, ports, f"redis://127.0.0.1:{port}", password)
            ray.start_head()
            ray.start_worker()
            looking = asyncio.create_task(ray.look_after())
            try:
                await until(lambda: _made(ray), 180)
                yield ray, service
            finally:
                looking.cancel()
                await asyncio.gather(looking, return_exceptions=True)
                ray.close()
                ports.close()


async def _made(ray: Ray) -> bool:
    return await ray.driver("make") == (1, 1) or await ray.driver("ask") is not None


async def _true(holds: bool) -> bool:
    return holds


async def _counts_on(ray: Ray, before: int) -> bool:
    """Whether the actor of before answers, from its own memory, and its job is on record."""
    found = await ray.driver("ask")
    return found is not None and found[0] > before and found[1] >= 2


async def _count(ray: Ray) -> int:
    found = await ray.driver("ask")
    assert found is not None
    return found[0]


async def test_the_actor_outlives_a_primary_that_is_killed(running: Stack) -> None:
    async with protected(running) as (ray, _):
        before = await _count(ray)
        primary = await running.primary()
        assert primary is not None
        running.kill(primary)
        await until(lambda: _true(ray.starts > 1), 120)
        await until(lambda: _counts_on(ray, before), 300)


async def test_the_actor_outlives_a_primary_that_stands_still_for_a_while(running: Stack) -> None:
    async with protected(running) as (ray, _):
        before = await _count(ray)
        primary = await running.primary()
        assert primary is not None
        running.kill(primary, signal.SIGSTOP)

        async def replaced() -> bool:
            found = {await running.named(each) for each in running.sentinels}
            return len(found) == 1 and not found & {primary, None}

        await until(replaced)
        running.kill(primary, signal.SIGCONT)
        await until(lambda: _counts_on(ray, before), 300)


async def test_the_actor_outlives_all_servers_that_start_anew_with_their_data(
    running: Stack,
) -> None:
    async with protected(running) as (ray, _):
        before = await _count(ray)
        for at in (*running.sentinels, *running.servers):
            running.kill(at, signal.SIGTERM)
            running.processes[at].wait()
        for number in range(3):
            running.start_server(number)
            running.start_sentinel(number)
        await running.settled()
        await until(lambda: _counts_on(ray, before), 300)


async def test_a_head_whose_user_may_do_nothing_more_ends_and_leaves_nothing(
    running: Stack,
) -> None:
    """As where its RayCluster was deleted by force."""
    async with protected(running) as (ray, service):
        primary = await running.primary()
        assert primary is not None
        starts = ray.starts
        service.heads.clear()
        await until(lambda: _true(ray.starts > starts), 120)
        async with running.client(primary) as client:

            async def empty() -> bool:
                return not await client.execute_command("KEYS", "RAY*")

            await until(empty)
