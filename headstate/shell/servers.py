"""Talks to Redis servers and Sentinels, each with its own time limit, so none delays another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import structlog
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, RedisError

from headstate.plan import ServerState
from headstate.users import CLOSED, digest_of, uid_of_key, user_of

log = structlog.get_logger(__name__)

USER: Final = "muster"
"""Muster's own user on servers and Sentinels."""
OF_SERVERS: Final = ("muster-replica", "muster-sentinel")
"""Users of replicas and of Sentinels on the servers."""
PRIMARY_NAME: Final = "muster"
"""How Sentinels call the primary and its replicas."""
BATCH: Final = 500
FAULTS: Final = (RedisError, OSError)


@dataclass(frozen=True, slots=True)
class Seen:
    """What a server said at one look; `rules` only where they were asked for."""

    state: ServerState
    users: tuple[str, ...]
    rules: tuple[str, ...] | None


class Connection:
    """A connection to one server or Sentinel, made anew where a password changes."""

    def __init__(self, name: str, timeout: float) -> None:
        self.name = name
        self._timeout = timeout
        self._open: Redis | None = None
        self._password = ""

    async def ask(self, passwords: Sequence[str]) -> Redis:
        """Return a client that may ask: with the first password that the server takes."""
        if self._open is not None and self._password in passwords:
            return self._open
        for last, password in zip((*(False for _ in passwords[1:]), True), passwords, strict=True):
            await self.close()
            self._open, self._password = self._made(password), password
            try:
                await self._open.ping()
                break
            except AuthenticationError:
                if last:
                    await self.close()
                    raise
        assert self._open is not None
        return self._open

    async def close(self) -> None:
        """Close it."""
        if self._open is not None:
            await self._open.aclose()
        self._open = None

    def _made(self, password: str) -> Redis:
        host, _, port = self.name.rpartition(":")
        return Redis(
            host=host,
            port=int(port),
            username=USER,
            password=password,
            socket_timeout=self._timeout,
            socket_connect_timeout=self._timeout,
            retry=Retry(NoBackoff(), 0),
            decode_responses=True,
            encoding_errors="backslashreplace",
            protocol=2,
        )


class Servers:
    """All servers and Sentinels."""

    def __init__(self, servers: Sequence[str], sentinels: Sequence[str], timeout: float) -> None:
        self._servers = {name: Connection(name, timeout) for name in servers}
        self._sentinels = [Connection(name, timeout) for name in sentinels]
        self._passwords: Sequence[str] = ()

    def use(self, passwords: Sequence[str]) -> None:
        """Take these passwords from now on, the newest first."""
        self._passwords = passwords

    async def close(self) -> None:
        """Close all connections."""
        every = (*self._servers.values(), *self._sentinels)
        await asyncio.gather(*(each.close() for each in every), return_exceptions=True)

    # ---- what is seen

    async def primaries(self) -> list[str | None]:
        """Ask each Sentinel for the primary; None of one that does not answer."""
        return [*await asyncio.gather(*map(self._named, self._sentinels))]

    async def look(self, *, at_rules: Collection[str]) -> dict[str, Seen | None]:
        """Look at each server, and at all rules of some; None for one that does not answer."""
        looks = (self._seen(name, at_rules) for name in self._servers)
        found = await asyncio.gather(*looks)
        return dict(zip(self._servers, found, strict=True))

    async def _named(self, sentinel: Connection) -> str | None:
        try:
            client = await sentinel.ask(self._passwords)
            asked = ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", PRIMARY_NAME)
            found = await client.execute_command(*asked)
        except FAULTS as error:
            log.debug("no answer", sentinel=sentinel.name, error=str(error))
            return None
        return None if found is None else ":".join(map(str, found))

    async def _seen(self, name: str, at_rules: Collection[str]) -> Seen | None:
        try:
            client = await self._servers[name].ask(self._passwords)
            state = _state(await client.info())
            if name in at_rules:
                rules = tuple(await client.execute_command("ACL", "LIST"))
                return Seen(state, tuple(each.split(" ", 2)[1] for each in rules), rules)
            return Seen(state, tuple(await client.execute_command("ACL", "USERS")), None)
        except FAULTS as error:
            log.debug("no answer", server=name, error=str(error))
            return None

    # ---- what is changed

    async def set_users(self, name: str, rules: Mapping[str, Sequence[str]]) -> None:
        """Set users, by uid, on one server, and have it keep them over a restart."""
        client = await self._servers[name].ask(self._passwords)
        for batch in _batches([*rules]):
            pipe = client.pipeline(transaction=False)
            for uid in batch:
                pipe.execute_command("ACL", "SETUSER", user_of(uid), *rules[uid])
            await pipe.execute()
        await client.execute_command("ACL", "SAVE")

    async def set_passwords(self, passwords: Sequence[str]) -> None:
        """Have all servers and Sentinels take these passwords of Muster's own users.

        They show the first one to each other only after all of them take it.
        """
        digests = [f"#{digest_of(each)}" for each in passwords]
        for users, connections in (
            ((USER, *OF_SERVERS), self._servers.values()),
            ((USER,), self._sentinels),
        ):
            for each in connections:
                client = await each.ask(self._passwords)
                for user in users:
                    await client.execute_command("ACL", "SETUSER", user, "resetpass", *digests)
        for server in self._servers.values():
            client = await server.ask(self._passwords)
            await client.execute_command("CONFIG", "SET", "masterauth", passwords[0])
            await client.execute_command("ACL", "SAVE")
        for sentinel in self._sentinels:
            client = await sentinel.ask(self._passwords)
            shown = ("SENTINEL", "SET", PRIMARY_NAME, "auth-pass", passwords[0])
            await client.execute_command(*shown)
            between = ("SENTINEL", "CONFIG", "SET", "sentinel-pass", passwords[0])
            await client.execute_command(*between)

    async def close_users(self, name: str, uids: Collection[str]) -> None:
        """Take all rights of users on one server, of those that are connected too."""
        await self.set_users(name, dict.fromkeys(uids, CLOSED))

    async def delete_users(self, name: str, uids: Collection[str]) -> None:
        """Delete users on one server; Redis closes their connections."""
        client = await self._servers[name].ask(self._passwords)
        for batch in _batches([*uids]):
            await client.execute_command("ACL", "DELUSER", *map(user_of, batch))
        await client.execute_command("ACL", "SAVE")

    async def keys(self, name: str) -> AsyncIterator[list[str]]:
        """Walk over all keys of heads."""
        client, cursor = await self._servers[name].ask(self._passwords), "0"
        while True:
            cursor, found = await client.execute_command(
                "SCAN", cursor, "MATCH", "RAY*", "COUNT", str(BATCH)
            )
            yield found
            if str(cursor) == "0":
                return

    async def sizes(self, name: str, keys: Sequence[str]) -> list[int]:
        """Return the memory that keys take, sampled; 0 of one that is gone."""
        client = await self._servers[name].ask(self._passwords)
        pipe = client.pipeline(transaction=False)
        for key in keys:
            pipe.execute_command("MEMORY", "USAGE", key)
        return [int(each or 0) for each in await pipe.execute()]

    async def delete_keys(self, name: str, uids: Collection[str]) -> int:
        """Delete all keys of RayClusters on the primary; returns how many there were."""
        deleted = 0
        client = await self._servers[name].ask(self._passwords)
        async for found in self.keys(name):
            theirs = [key for key in found if uid_of_key(key) in uids]
            if theirs:
                deleted += int(await client.execute_command("UNLINK", *theirs))
        return deleted


def _state(info: Mapping[str, Any]) -> ServerState:
    role = str(info.get("role", ""))
    offset = info.get("master_repl_offset" if role == "master" else "slave_repl_offset", 0)
    memory, limit = info.get("used_memory", 0), info.get("maxmemory", 0)
    return ServerState(role, int(memory), int(limit), int(offset))


def _batches(found: Sequence[str]) -> list[Sequence[str]]:
    return [found[at : at + BATCH] for at in range(0, len(found), BATCH)]
