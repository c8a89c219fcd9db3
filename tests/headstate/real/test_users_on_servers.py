"""On real servers: users come and go, keep to their keys, and a Redis that lost some gets them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from redis.asyncio import Redis
from redis.exceptions import NoPermissionError, OutOfMemoryError, RedisError, ResponseError

from headstate.metrics import Metrics
from headstate.shell.cluster import Cluster
from headstate.shell.keeper import Keeper
from headstate.shell.keys import new_key
from headstate.shell.servers import Servers
from headstate.users import password_of, user_of
from testbed.heads import FakeCluster, head, uid_of
from testbed.redis_servers import Stack, missing, stack, until

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(missing()), reason=missing())]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with stack(tmp_path_factory.mktemp("redis")) as found:
        yield found


@asynccontextmanager
async def keeping(running: Stack, cluster: FakeCluster, **more: Any) -> AsyncIterator[Keeper]:
    """The program's work, looking ten times a second, once the servers are up."""
    await running.settled()
    settings = running.settings(look_seconds=0.1, rules_seconds=0.5, **more)
    servers = Servers(settings.servers, settings.sentinels, settings.server_timeout)
    keeper = Keeper(
        settings, servers, cast(Cluster, cluster), cluster.seen, cluster.refresh, Metrics()
    )
    task = asyncio.create_task(keeper.run(lambda: None))
    try:
        yield keeper
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await servers.close()


def of(running: Stack, at: str, number: int) -> Redis:
    """A client of a RayCluster's user."""
    key = (running.keys / "key").read_text().encode()
    return running.client(at, user_of(uid_of(number)), password_of(key, uid_of(number)))


async def users_at(running: Stack, at: str) -> set[str]:
    async with running.client(at) as client:
        return {each for each in await client.execute_command("ACL", "USERS") if "ray-" in each}


async def all_have(running: Stack, *numbers: int) -> bool:
    wanted = {user_of(uid_of(number)) for number in numbers}
    return [await users_at(running, at) for at in running.servers] == [wanted] * 3


OWN, JOBS = "RAY{}@KV", "RAY{}@JobCounter"
CALLS: dict[str, list[str]] = {
    "hset": [OWN, "f", "v"],
    "hsetnx": [OWN, "g", "v"],
    "hget": [OWN, "f"],
    "hmget": [OWN, "f"],
    "hdel": [OWN, "f"],
    "hexists": [OWN, "f"],
    "hscan": [OWN, "0"],
    "incrby": [JOBS, "1"],
    "del": ["DUMMY"],
    "unlink": [OWN],
    "scan": ["0"],
    "ping": [],
    "info": ["SENTINEL"],
}
"""What Ray sends, as MONITOR shows it; DUMMY is what it deletes when it connects."""


def a_call(command: str, number: int) -> list[str]:
    return [command, *(each.format(uid_of(number)) for each in CALLS[command])]


async def test_a_user_may_do_what_ray_does_with_its_own_keys_and_no_others(running: Stack) -> None:
    cluster = FakeCluster()
    cluster.add(head(1), head(2))
    primary = await running.settled()
    async with keeping(running, cluster), of(running, primary, 1) as one:
        await until(lambda: all_have(running, 1, 2))
        await until(lambda: len(cluster.secrets) == 2)
        for command in CALLS:
            await one.execute_command(*a_call(command, 1))
        async with of(running, primary, 2) as two:
            await two.execute_command("HSET", f"RAY{uid_of(2)}@KV", "f", "secret")
        for command in ("hset", "hget", "hmget", "hscan", "hdel", "unlink", "incrby"):
            with pytest.raises(NoPermissionError):
                await one.execute_command(*a_call(command, 2))
        others = [
            ["KEYS", "*"],
            ["GET", "x"],
            ["CONFIG", "GET", "*"],
            ["ACL", "LIST"],
            ["FLUSHALL"],
        ]
        for call in (*others, ["EVAL", "return 1", "0"], ["SUBSCRIBE", "c"], ["MONITOR"]):
            with pytest.raises(ResponseError):
                await one.execute_command(*call)
        # The names of all keys, never a value: docs/security.md says so.
        assert f"RAY{uid_of(2)}@KV" in (await one.execute_command("SCAN", "0", "COUNT", "1000"))[1]
    assert cluster.told[:2] == [("c1", "RedisUserReady"), ("c2", "RedisUserReady")]
    assert cluster.pointed[0] == ("127.0.0.1", int(primary.rpartition(":")[2]))


async def test_a_user_that_is_deleted_or_changed_by_hand_is_back(running: Stack) -> None:
    cluster = FakeCluster()
    cluster.add(head(1), head(2))
    async with keeping(running, cluster):
        await until(lambda: all_have(running, 1, 2))
        for at in running.servers:
            async with running.client(at) as client:
                await client.execute_command("ACL", "DELUSER", user_of(uid_of(1)))
                await client.execute_command("ACL", "SETUSER", user_of(uid_of(2)), "~*", "+@all")
        await until(lambda: all_have(running, 1, 2), 5)

        async def bounded() -> bool:
            async with of(running, running.servers[0], 2) as two:
                try:
                    await two.execute_command("KEYS", "*")
                except NoPermissionError:
                    return True
                return False

        await until(bounded, 5)


async def test_what_a_raycluster_leaves_behind_is_deleted_and_nothing_else(running: Stack) -> None:
    cluster = FakeCluster()
    cluster.add(head(1), head(2))
    primary = await running.settled()
    async with keeping(running, cluster, survey_seconds=0.2):
        await until(lambda: all_have(running, 1, 2))
        for number in (1, 2):
            async with of(running, primary, number) as client:
                await client.execute_command(*a_call("hset", number))
        async with running.client(primary) as client:
            await client.execute_command("HSET", f"RAY{uid_of(9)}@KV", "f", "v")
            del cluster.heads[uid_of(1)]
            await until(lambda: all_have(running, 2))

            async def keys() -> set[str]:
                return {*(await client.execute_command("KEYS", "RAY*"))}

            await until(lambda: _same(keys, {f"RAY{uid_of(2)}@KV"}))


async def test_a_raycluster_that_the_watch_does_not_show_yet_keeps_its_state(
    running: Stack,
) -> None:
    cluster = FakeCluster()
    cluster.add(head(1))
    async with keeping(running, cluster):
        await until(lambda: all_have(running, 1))
    cluster.unseen = {**cluster.heads}
    cluster.heads.clear()
    async with keeping(running, cluster):
        await until(lambda: cluster.lists > 0)
        assert await all_have(running, 1)


async def test_over_its_limit_a_raycluster_reads_and_makes_room_and_its_owner_is_told(
    running: Stack,
) -> None:
    cluster = FakeCluster()
    cluster.add(head(1), head(2))
    primary = await running.settled()
    more = {"survey_seconds": 0.2, "limit_bytes": 20_000}
    async with keeping(running, cluster, **more), of(running, primary, 1) as one:
        await until(lambda: all_have(running, 1, 2))
        await one.execute_command("HSET", f"RAY{uid_of(1)}@KV", "big", "x" * 50_000)
        await until(lambda: ("c1", "RedisLimitReached") in cluster.told)

        async def refused() -> bool:
            try:
                await one.execute_command(*a_call("hset", 1))
            except NoPermissionError:
                return True
            return False

        await until(refused)
        await one.execute_command(*a_call("hget", 1))
        await one.execute_command(*a_call("unlink", 1))
        await until(lambda: _not(refused))
    assert "allowed: 20000" in " ".join(cluster.messages)
    assert ("c2", "RedisLimitReached") not in cluster.told


async def test_a_key_is_rotated_without_breaking_a_connection(running: Stack) -> None:
    cluster = FakeCluster()
    cluster.add(head(1, ready=True))
    primary = await running.settled()
    async with keeping(running, cluster), of(running, primary, 1) as before:
        await until(lambda: all_have(running, 1))
        await until(lambda: bool(cluster.secrets))
        await before.ping()
        first, following = next(iter(cluster.secrets.values())), new_key()
        (running.keys / "key.next").write_text(following)
        await until(lambda: next(iter(cluster.secrets.values())) != first)
        async with running.client(
            primary, user_of(uid_of(1)), next(iter(cluster.secrets.values()))
        ) as after:
            await after.ping()
            await before.ping()
            (running.keys / "key").write_text(following)
            (running.keys / "key.next").unlink()

            async def first_is_over() -> bool:
                async with running.client(primary, user_of(uid_of(1)), first) as late:
                    try:
                        await late.ping()
                    except RedisError:
                        return True
                    return False

            await until(first_is_over)
            await before.ping()
            await after.ping()


async def test_passwords_of_servers_are_rotated_and_replicas_stay(running: Stack) -> None:
    cluster = FakeCluster()
    cluster.add(head(1))
    await running.settled()
    first, following = running.password, new_key()
    async with keeping(running, cluster) as keeper:
        await until(lambda: all_have(running, 1))
        await until(lambda: len(keeper._passwords) == 1)
        (running.keys / "key.next").write_text(new_key())
        (running.keys / "password.next").write_text(following)
        await until(lambda: len(keeper._passwords) == 2)
        for name in ("key", "password"):
            (running.keys / f"{name}.next").rename(running.keys / name)
        keeper._next.clear()
        await until(lambda: keeper._passwords == (following,))
        for at in (*running.servers, *running.sentinels):
            async with running.client(at, password=first) as late:
                with pytest.raises(RedisError):
                    await late.ping()
    primary = await running.settled()
    running.kill(primary)
    later = await _another(running, primary)
    running.start_server(running.servers.index(primary))
    assert await running.settled() == later


async def _another(running: Stack, before: str) -> str:
    async def named() -> bool:
        found = [await running.named(each) for each in running.sentinels]
        return len({*found}) == 1 and found[0] not in (None, before)

    await until(named)
    found = await running.named(running.sentinels[0])
    assert found is not None
    return found


async def test_all_servers_started_anew_have_their_users_and_data(running: Stack) -> None:
    cluster = FakeCluster()
    cluster.add(head(1))
    primary = await running.settled()
    async with keeping(running, cluster):
        await until(lambda: all_have(running, 1))
        async with of(running, primary, 1) as client:
            await client.execute_command(*a_call("hset", 1))
        await until(lambda: _kept(running))
    for at in (*running.sentinels, *running.servers):
        running.kill(at)
    for number in range(3):
        running.start_server(number)
        running.start_sentinel(number)
    primary = await running.settled()
    assert await all_have(running, 1)
    async with of(running, primary, 1) as client:
        assert await client.execute_command(*a_call("hget", 1)) == "v"


async def test_a_redis_that_is_full_still_takes_users_and_gives_room_back(tmp_path: Path) -> None:
    cluster = FakeCluster()
    cluster.add(head(1), head(2))
    with stack(tmp_path, MAXMEMORY="8mb") as full:
        primary = await full.settled()
        async with keeping(full, cluster, survey_seconds=0.2), of(full, primary, 1) as one:
            await until(lambda: all_have(full, 1, 2))
            with pytest.raises(OutOfMemoryError):
                await _fill(one)
            cluster.add(head(3))
            await until(lambda: all_have(full, 1, 2, 3))
            await until(lambda: "muster-redis-user-3" in cluster.secrets)
            del cluster.heads[uid_of(1)]
            await until(lambda: all_have(full, 2, 3))
        async with of(full, primary, 2) as two:
            await two.execute_command(*a_call("hset", 2))


async def _fill(client: Redis) -> None:
    for number in range(1000):
        await client.execute_command("HSET", f"RAY{uid_of(1)}@KV", number, "x" * 100_000)


async def _kept(running: Stack) -> bool:
    """Whether each server has written the value down: a killed one loses at most a second."""
    for at in running.servers:
        async with running.client(at) as client:
            if await client.execute_command("HGET", f"RAY{uid_of(1)}@KV", "f") != "v":
                return False
            if int((await client.info("persistence"))["aof_pending_bio_fsync"]):
                return False
    return True


async def test_a_primary_that_comes_back_empty_does_not_empty_its_replicas(running: Stack) -> None:
    cluster = FakeCluster()
    cluster.add(head(1))
    primary = await running.settled()
    async with keeping(running, cluster):
        await until(lambda: all_have(running, 1))
        async with of(running, primary, 1) as client:
            await client.execute_command(*a_call("hset", 1))
        await until(lambda: _kept(running))
        running.kill(primary)
        number = running.servers.index(primary)
        _empty(running.data(number))
        running.start_server(number)
        later = await running.settled()
        assert later != primary
        async with of(running, later, 1) as client:
            assert await client.execute_command(*a_call("hget", 1)) == "v"
        await until(lambda: all_have(running, 1))


def _empty(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.name != "log":
            path.rmdir() if path.is_dir() else path.unlink()


async def _not(holds: Any) -> bool:
    return not await holds()


async def _same(found: Any, wanted: object) -> bool:
    return bool(await found() == wanted)
