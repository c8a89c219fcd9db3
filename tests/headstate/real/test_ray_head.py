"""A real Ray head with its state in Redis: its actor and jobs outlive what befalls the servers."""

from __future__ import annotations

import asyncio
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from redis.exceptions import RedisError

from headstate.shell.keys import new_key
from headstate.users import password_of, user_of
from testbed.heads import head, uid_of
from testbed.ports import PortAllocator
from testbed.ray_head import RayHead
from testbed.ray_head import missing as ray_missing
from testbed.redis_names import Names
from testbed.redis_names import missing as no_names
from testbed.redis_servers import Stack, missing, stack, until
from testbed.redis_service import Service
from tests.headstate.real.test_users_on_servers import keeping

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(bool(missing()), reason=missing()),
    pytest.mark.skipif(bool(ray_missing()), reason=ray_missing()),
    pytest.mark.timeout(900),
]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Stack]:
    with stack(tmp_path) as found:
        yield found


@asynccontextmanager
async def protected(running: Stack) -> AsyncIterator[tuple[RayHead, Service]]:
    """A head with an actor on a worker, its state in the servers, and the program's work."""
    service, ports = Service(), PortAllocator()
    service.add(head(1))
    await running.settled()
    async with keeping(running, service), service.listening() as port:
        await until(lambda: bool(service.secrets))
        password = password_of((running.keys / "key").read_text().encode(), uid_of(1))
        # A socket's path has at most 107 bytes, and Ray adds 70 to this.
        with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
            ray = RayHead(folder, ports, f"redis://127.0.0.1:{port}", uid_of(1), password)
            ray.start_head()
            # Of two that start at once in one folder, one hangs.
            await until(lambda: ray.has_started("head"), 120)
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


async def _made(ray: RayHead) -> bool:
    return await ray.driver("make") == (1, 1) or await ray.driver("ask") is not None


async def _counts_on(ray: RayHead, before: int) -> bool:
    """Whether the actor of before answers, from its own memory, and its job is on record."""
    found = await ray.driver("ask")
    return found is not None and found[0] > before and found[1] >= 2


async def _count(ray: RayHead) -> int:
    found = await ray.driver("ask")
    assert found is not None
    return found[0]


async def test_the_actor_outlives_a_primary_that_is_killed(running: Stack) -> None:
    async with protected(running) as (ray, _):
        before = await _count(ray)
        primary = await running.primary()
        assert primary is not None
        running.kill(primary)
        await until(lambda: ray.starts > 1, 120)
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


@pytest.mark.skipif(bool(no_names()), reason=no_names())
async def test_the_actor_outlives_servers_that_come_back_at_other_addresses(
    tmp_path: Path,
) -> None:
    """All at once, with their volumes: names alone lead to them then."""
    names = Names(tmp_path)
    with names.known_here(), stack(tmp_path, names) as running:
        async with protected(running) as (ray, service):
            before = await _count(ray)
            for at in (*running.sentinels, *running.servers):
                running.kill(at)
            names.move(2)
            for number in range(3):
                running.start_server(number)
                running.start_sentinel(number)
            primary = await running.settled()
            await until(lambda: _counts_on(ray, before), 300)
            host, _, port = primary.rpartition(":")
            assert service.pointed[-1] == (names.address(host), int(port))
            assert names.address(host).startswith("127.0.2.")


async def test_the_actor_outlives_a_network_that_falls_silent(running: Stack) -> None:
    """A head hangs until its connection breaks: no packet tells it that another is the primary."""
    async with protected(running) as (ray, service):
        before = await _count(ray)
        primary = await running.primary()
        assert primary is not None
        service.fall_silent()
        running.kill(primary, signal.SIGSTOP)
        await until(lambda: service.pointed[-1][1] != int(primary.rpartition(":")[2]))
        starts = ray.starts
        service.give_up()
        await until(lambda: ray.starts > starts, 120)
        await until(lambda: _counts_on(ray, before), 300)


async def test_the_actor_outlives_a_key_that_is_rotated(running: Stack) -> None:
    """Under the head that runs, and for the one that starts after it."""
    async with protected(running) as (ray, service):
        before = await _count(ray)
        (first,) = service.secrets.values()
        following = new_key()
        (running.keys / "key.next").write_text(following)
        await until(lambda: first not in service.secrets.values())
        assert await _counts_on(ray, before)
        (running.keys / "key").write_text(following)
        (running.keys / "key.next").unlink()
        primary = await running.primary()
        assert primary is not None

        async def is_over() -> bool:
            async with running.client(primary, user_of(uid_of(1)), first) as late:
                try:
                    await late.ping()
                except RedisError:
                    return True
                return False

        await until(is_over)
        assert await _counts_on(ray, before)
        assert ray.starts == 1
        ray.end_head(password_of(following.encode(), uid_of(1)))
        await until(lambda: ray.starts > 1)
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
        await until(lambda: ray.starts > starts, 120)
        async with running.client(primary) as client:

            async def empty() -> bool:
                return not await client.execute_command("KEYS", "RAY*")

            await until(empty)
