"""Three servers and three Sentinels as processes, started by the scripts of manifests/redis."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from headstate.settings import Settings
from headstate.shell.keys import new_key
from testbed.ports import PortAllocator
from testbed.redis_names import NAMES, Names

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "manifests" / "redis" / "scripts.yaml"
HOST = "127.0.0.1"
PROGRAMS = ("redis-server", "redis-sentinel", "redis-cli")
PACKAGES = "apt-get install redis-server redis-sentinel"
WAIT = 60.0
"""Seconds for whatever is waited for: a failover takes some 6 s on a quiet machine."""


def missing() -> str:
    """Say that there is no Redis, and how to get it; empty where there is one."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    return f"no {', '.join(absent)}: {PACKAGES}" if absent else ""


class Stack:
    """The processes, by the number of their pod; `more` are variables of all of them.

    They are called by their address on loopback, or have `names`.
    """

    def __init__(
        self, folder: Path, ports: PortAllocator, names: Names | None = None, **more: str
    ) -> None:
        self.folder = folder
        self._more = more
        self._names = names
        hosts = NAMES if names else (HOST,) * 3
        self.servers = [f"{host}:{ports.allocate()}" for host in hosts]
        self.sentinels = [f"{host}:{ports.allocate()}" for host in hosts]
        self.keys = folder / "keys"
        self.keys.mkdir()
        for name in ("key", "password"):
            (self.keys / name).write_text(new_key())
        self._scripts = folder / "scripts"
        self._scripts.mkdir()
        found = yaml.safe_load(SCRIPTS.read_text(encoding="utf-8"))
        for name, text in found["data"].items():
            (self._scripts / name).write_text(text)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def password(self) -> str:
        """The password of Muster's own users."""
        return (self.keys / "password").read_text()

    def start(self) -> None:
        """Start all of them."""
        for number in range(3):
            self.start_server(number)
        for number in range(3):
            self.start_sentinel(number)

    def start_server(self, number: int) -> None:
        """Start one server, on the data that it has."""
        self._start(self.servers[number], "server.sh", self.data(number))

    def start_sentinel(self, number: int) -> None:
        """Start one Sentinel, with what it knows."""
        folder = self.folder / f"sentinel-{number}"
        folder.mkdir(exist_ok=True)
        self._start(self.sentinels[number], "sentinel.sh", folder)

    def data(self, number: int) -> Path:
        """The folder with the data of a server."""
        folder = self.folder / f"server-{number}"
        folder.mkdir(exist_ok=True)
        return folder

    def kill(self, at: str, number: int = signal.SIGKILL) -> None:
        """Send a signal to what listens there; it is gone after SIGKILL."""
        process = self.processes[at]
        process.send_signal(number)
        if number == signal.SIGKILL:
            process.wait()

    def stop(self) -> None:
        """End all of them."""
        for process in self.processes.values():
            process.kill()
            process.wait()

    def _start(self, at: str, script: str, folder: Path) -> None:
        host, _, port = at.rpartition(":")
        path, names = self._scripts / script, self._names
        environment = {
            "PATH": os.environ["PATH"],
            "DIR": str(folder),
            "KEYS": str(self.keys),
            "HOST": host,
            "PORT": port,
            "BIND": names.address(host) if names else HOST,
            "SERVERS": " ".join(self.servers),
            "SENTINELS": " ".join(self.sentinels),
            "CLI": "redis-cli",
            "SERVER": "redis-server",
            "SENTINEL": "redis-sentinel",
            **self._more,
        }
        with (folder / "log").open("ab") as out:
            self.processes[at] = subprocess.Popen(
                names.command(path) if names else ["sh", str(path)],
                env=environment,
                stdout=out,
                stderr=out,
            )

    def client(self, at: str, user: str = "muster", password: str | None = None) -> Redis:
        """A client in the name of a user, of the administrator by default."""
        host, _, port = at.rpartition(":")
        return Redis(
            host=host,
            port=int(port),
            username=user,
            password=self.password if password is None else password,
            socket_timeout=3,
            retry=Retry(NoBackoff(), 0),
            decode_responses=True,
            protocol=2,
        )

    def settings(self, **more: object) -> Settings:
        """The settings of the program for these servers."""
        given = {
            "servers": self.servers,
            "sentinels": self.sentinels,
            "key_directory": self.keys,
            "server_timeout": 1.0,
            **more,
        }
        return Settings.model_construct(**{**Settings().model_dump(), **given})

    async def primary(self) -> str | None:
        """The server that says that it is one, where only one does."""
        found = [at for at in self.servers if await self.role(at) == "master"]
        return found[0] if len(found) == 1 else None

    async def role(self, at: str) -> str | None:
        """What a server says that it is; None where it says nothing."""
        async with self.client(at) as client:
            try:
                return str((await client.info("replication"))["role"])
            except (RedisError, OSError):
                return None

    async def settled(self) -> str:
        """Wait for a primary with two replicas that all Sentinels agree on."""
        await until(self._is_settled)
        found = await self.primary()
        assert found is not None
        return found

    async def _is_settled(self) -> bool:
        primary = await self.primary()
        if primary is None:
            return False
        async with self.client(primary) as client:
            links = (await client.info("replication"))["connected_slaves"]
        named = [await self.named(each) for each in self.sentinels]
        return links == 2 and named == [primary] * 3

    async def named(self, sentinel: str) -> str | None:
        """The primary as a Sentinel has it."""
        async with self.client(sentinel) as client:
            try:
                asked = ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "muster")
                return ":".join(await client.execute_command(*asked))
            except (RedisError, OSError):
                return None


async def until(holds: Callable[[], Awaitable[bool] | bool], seconds: float = WAIT) -> None:
    """Wait for something to hold, that is asked again and again."""
    async with asyncio.timeout(seconds):
        while True:
            found = holds()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.1)


@contextmanager
def stack(folder: Path, names: Names | None = None, **more: str) -> Iterator[Stack]:
    """Three servers and three Sentinels in a folder, until the end of the block."""
    ports = PortAllocator()
    found = Stack(folder, ports, names, **more)
    try:
        found.start()
        yield found
    finally:
        found.stop()
        ports.close()
