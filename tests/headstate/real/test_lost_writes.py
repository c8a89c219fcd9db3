"""What `MIN_REPLICAS_TO_WRITE` trades: fewer lost writes for a primary that takes none alone."""

from pathlib import Path

import pytest
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from testbed.redis_servers import Stack, missing, stack, until

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(missing()), reason=missing())]


async def alone(servers: Stack) -> str:
    """End both replicas, and wait until the primary has noticed."""
    primary = await servers.settled()
    for at in [*servers.sentinels, *(each for each in servers.servers if each != primary)]:
        servers.kill(at)
    async with servers.client(primary) as client:
        await until(lambda: _follows_none(client))
    return primary


async def _follows_none(client: Redis) -> bool:
    return bool((await client.info("replication"))["connected_slaves"] == 0)


async def _takes(client: Redis) -> bool:
    """Whether a write is taken, or refused for want of replicas."""
    try:
        await client.execute_command("SET", "a", "b")
    except ResponseError as error:
        if "Not enough good replicas" not in str(error):
            raise
        return False
    return True


async def test_by_default_a_primary_takes_writes_that_no_replica_follows(tmp_path: Path) -> None:
    with stack(tmp_path) as servers:
        async with servers.client(await alone(servers)) as client:
            assert await _takes(client)


async def test_with_one_replica_asked_for_it_takes_none(tmp_path: Path) -> None:
    with stack(tmp_path, MIN_REPLICAS_TO_WRITE="1") as servers:
        async with servers.client(await servers.settled()) as client:
            await until(lambda: _takes(client))
        async with servers.client(await alone(servers)) as client:
            assert not await _takes(client)
