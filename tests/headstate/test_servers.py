"""What is asked of servers and Sentinels, and what a server that does not answer costs others."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from redis.exceptions import RedisError

from headstate.plan import ServerState
from headstate.shell.servers import Seen, Servers
from headstate.users import CLOSED, rule_of, user_of
from testbed.heads import uid_of
from tests.headstate.resp import FakeRedis, fake_redis

PASSWORD, NEXT = "1" * 64, "2" * 64
UID = uid_of(1)


@pytest.fixture
def redis() -> Iterator[FakeRedis]:
    with fake_redis() as found:
        found.password = PASSWORD
        yield found


@asynccontextmanager
async def servers_of(redis: FakeRedis, *passwords: str) -> AsyncIterator[Servers]:
    found = Servers(redis.servers, redis.sentinels, 2.0)
    found.use(passwords or (PASSWORD,))
    try:
        yield found
    finally:
        await found.close()


async def test_users_rules_state_and_primary_are_read(redis: FakeRedis) -> None:
    async with servers_of(redis) as servers:
        await servers.set_users(redis.servers[0], {UID: rule_of(UID, ["d"])})
        assert await servers.primaries() == [redis.servers[0]] * 3
        by_name = await servers.look(at_rules=())
        by_rule = await servers.look(at_rules=redis.servers)
    first, second = redis.servers[:2]
    rules = (f"user {user_of(UID)} {' '.join(rule_of(UID, ['d']))}",)
    state = ServerState("master", 1024, 4096, 10)
    assert by_name[first] == Seen(state, (user_of(UID),), None)
    assert by_rule[first] == Seen(state, (user_of(UID),), rules)
    assert by_name[second] == Seen(state, (), None)


async def test_users_are_closed_and_deleted_and_their_keys_alone(redis: FakeRedis) -> None:
    redis.keys = {f"RAY{UID}@KV", f"RAY{uid_of(2)}@KV", "DUMMY"}
    at = redis.servers[0]
    async with servers_of(redis) as servers:
        await servers.close_users(at, [UID])
        assert redis.users[at] == {user_of(UID): " ".join(CLOSED)}
        assert await servers.delete_keys(at, [UID]) == 1
        await servers.delete_users(at, [UID])
    assert redis.users[at] == {}
    assert redis.keys == {f"RAY{uid_of(2)}@KV", "DUMMY"}


async def test_while_passwords_are_rotated_either_is_taken(redis: FakeRedis) -> None:
    async with servers_of(redis, NEXT, PASSWORD) as servers:
        assert None not in (await servers.look(at_rules=())).values()
        redis.password = NEXT
        assert None not in (await servers.look(at_rules=())).values()  # still connected
        servers.use([NEXT])
        assert None not in (await servers.look(at_rules=())).values()
        servers.use(["3" * 64])
        assert {*(await servers.look(at_rules=())).values()} == {None}
        with pytest.raises(RedisError):
            await servers.set_users(redis.servers[0], {})


async def test_one_that_does_not_answer_is_none_and_the_others_are_there(redis: FakeRedis) -> None:
    names, sentinels = [*redis.servers[:2], "127.0.0.1:1"], [*redis.sentinels[:2], "127.0.0.1:1"]
    servers = Servers(names, sentinels, 2.0)
    servers.use([PASSWORD])
    try:
        found = await servers.look(at_rules=())
        assert [each is None for each in found.values()] == [False, False, True]
        assert await servers.primaries() == [redis.servers[0]] * 2 + [None]
    finally:
        await servers.close()
