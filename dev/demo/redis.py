"""Shows a Ray head that loses its Redis and goes on: `python -m demo.redis`, by `make demo-redis`.

Three servers with Sentinels, the program's work and a Ray of one head and one worker, all of them
processes on loopback. A detached actor on the worker counts in its memory. The primary is killed:
the head ends, another server takes over, the head starts anew, and the actor counts on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import tempfile
import time
from pathlib import Path
from typing import cast

import structlog

from headstate.metrics import Metrics
from headstate.shell.cluster import Cluster
from headstate.shell.keeper import Keeper
from headstate.shell.servers import Servers
from testbed.heads import head, uid_of
from testbed.ports import PortAllocator
from testbed.ray_head import RayHead
from testbed.ray_head import missing as ray_missing
from testbed.redis_servers import Stack, missing, stack, until
from testbed.redis_service import Service

PATIENCE = 300.0


class Demo:
    """What is shown, in order."""

    def __init__(self, servers: Stack, service: Service, ray: RayHead) -> None:
        self._servers = servers
        self._service = service
        self._ray = ray
        self._began = time.monotonic()

    async def play(self) -> None:
        """Start all, kill the primary, and see the actor count on."""
        self._ray.start_head()
        await until(lambda: self._ray.has_started("head"), PATIENCE)
        self._ray.start_worker()
        self._say("a Ray head keeps its state in Redis; a worker has joined it")
        looking = asyncio.create_task(self._ray.look_after())
        try:
            await self._counts("make", 0)
            await self._kill()
            await self._counts("ask", 1)
            self._say(f"the head was started {self._ray.starts} times, the actor once")
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)

    async def _kill(self) -> None:
        primary = await self._servers.settled()
        self._say(f"killing the primary, {primary}")
        self._servers.kill(primary)
        await until(lambda: self._ray.starts > 1, PATIENCE)  # it may be down for an instant alone
        self._say("the head has ended")
        await until(lambda: self._follows(primary), PATIENCE)

    async def _follows(self, before: str) -> bool:
        later = await self._servers.primary()
        if later in (None, before):
            return False
        self._say(f"{later} is the primary now")
        return True

    async def _counts(self, what: str, above: int) -> None:
        async with asyncio.timeout(PATIENCE):
            while (found := await self._ray.driver(what)) is None or found[0] <= above:
                what = "ask"
        self._say(f"a detached actor counts to {found[0]}; jobs on record: {found[1]}")

    def _say(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:6.1f} s  {text}", flush=True)


async def show(servers: Stack, folder: str, ports: PortAllocator) -> None:
    """Run the program's work beside the story."""
    service, settings = Service(), servers.settings(look_seconds=0.5)
    service.add(head(1))
    asked = Servers(settings.servers, settings.sentinels, settings.server_timeout)
    keeper = Keeper(
        settings, asked, cast(Cluster, service), service.seen, service.refresh, Metrics()
    )
    keeping = asyncio.create_task(keeper.run(lambda: None))
    async with service.listening() as port:
        await until(lambda: bool(service.secrets), PATIENCE)
        (password,) = service.secrets.values()
        ray = RayHead(folder, ports, f"redis://127.0.0.1:{port}", uid_of(1), password)
        try:
            await Demo(servers, service, ray).play()
        finally:
            ray.close()
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            await asked.close()


def main() -> None:
    """Run it, or say what is missing."""
    if absent := [each for each in (missing(), ray_missing()) if each]:
        sys.exit("; ".join(absent))
    # That servers do not answer is what is shown.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with contextlib.ExitStack() as held:
        folder = held.enter_context(tempfile.TemporaryDirectory(prefix="muster-redis-"))
        servers = held.enter_context(stack(Path(folder)))
        # A socket's path has at most 107 bytes, and Ray adds 70 to this.
        own = tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True)
        ports = PortAllocator()
        held.callback(ports.close)
        asyncio.run(show(servers, held.enter_context(own), ports))


if __name__ == "__main__":
    main()
