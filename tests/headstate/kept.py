"""Servers and a cluster whose heads keep their state, for the tests beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from redis.exceptions import ConnectionError as Lost

from headstate.metrics import Metrics
from headstate.plan import ServerState
from headstate.settings import Settings
from headstate.shell.cluster import Cluster
from headstate.shell.keeper import Keeper
from headstate.shell.servers import Seen, Servers
from headstate.users import digests_of, rule_of, uid_of_key, user_of
from testbed.heads import FakeCluster, uid_of

NAMES = ("a:1", "b:1", "c:1")
KEY, NEXT = "1" * 64, "2" * 64


class Killed(BaseException):
    """Nothing in the program catches it."""


class FakeServers:
    """Users of each server, and the keys that all have; `dead` do not answer."""

    def __init__(self) -> None:
        self.users: dict[str, dict[str, tuple[str, ...]]] = {name: {} for name in NAMES}
        self.held: dict[str, int] = {}
        self.dead: set[str] = set()
        self.refusing: set[str] = set()
        self.named: list[str | None] = ["a:1"] * 3
        self.done: list[str] = []
        self.passwords: list[tuple[str, ...]] = []
        self.cut: str = ""
        """The step at which the program is killed."""
        self.meanwhile: dict[str, Callable[[], None]] = {}
        """What happens during a step."""

    def use(self, passwords: Sequence[str]) -> None:
        assert passwords

    async def primaries(self) -> list[str | None]:
        return self.named

    async def look(self, *, at_rules: Collection[str]) -> dict[str, Seen | None]:
        return {
            name: None if name in self.dead else self._seen(name, name in at_rules)
            for name in NAMES
        }

    def _seen(self, name: str, at_rules: bool) -> Seen:
        users = self.users[name]
        lines = (f"user {user} {' '.join(rule)}" for user, rule in users.items())
        return Seen(ServerState("master", 1, 9), tuple(users), tuple(lines) if at_rules else None)

    def _step(self, what: str, name: str) -> None:
        if what == self.cut:
            raise Killed
        if name in self.dead | self.refusing:
            raise Lost(name)
        self.done.append(f"{what} {name}")
        self.meanwhile.pop(what, lambda: None)()

    async def set_users(self, name: str, rules: Mapping[str, Sequence[str]]) -> None:
        self._step("set", name)
        self.users[name].update({user_of(uid): tuple(rule) for uid, rule in rules.items()})

    async def set_passwords(self, passwords: Sequence[str]) -> None:
        for name in NAMES:
            self._step("passwords", name)
        self.passwords.append(tuple(passwords))

    async def close_users(self, name: str, uids: Collection[str]) -> None:
        self._step("close", name)
        self.users[name].update({user_of(uid): ("off",) for uid in uids})

    async def delete_users(self, name: str, uids: Collection[str]) -> None:
        self._step("delete", name)
        for uid in uids:
            self.users[name].pop(user_of(uid), None)

    async def keys(self, name: str) -> AsyncIterator[list[str]]:
        self._step("walk", name)
        yield [*self.held]

    async def sizes(self, name: str, keys: Sequence[str]) -> list[int]:
        assert name not in self.dead
        return [self.held[key] for key in keys]

    async def delete_keys(self, name: str, uids: Collection[str]) -> int:
        self._step("unlink", name)
        gone = [key for key in self.held if uid_of_key(key) in uids]
        for key in gone:
            del self.held[key]
        return len(gone)


class World:
    """A leader between servers and an API server."""

    def __init__(self, folder: Path, **more: Any) -> None:
        self.folder = folder
        (folder / "key").write_text(KEY)
        (folder / "password").write_text("3" * 64)
        self.servers, self.cluster = FakeServers(), FakeCluster()
        names = {"servers": NAMES, "sentinels": NAMES, "key_directory": folder}
        self.settings = Settings.model_construct(**(Settings().model_dump() | names | more))
        self.keeper = self.another_leader()

    def another_leader(self) -> Keeper:
        self.metrics = Metrics()
        self.keeper = Keeper(
            self.settings,
            cast(Servers, self.servers),
            cast(Cluster, self.cluster),
            self.cluster.seen,
            self.cluster.refresh,
            self.metrics,
        )
        return self.keeper

    def again(self) -> None:
        """As if the time had passed after which things are tried again."""
        self.keeper._next.clear()

    def rule(self, number: int, *keys: str) -> tuple[str, ...]:
        used = [each.encode() for each in keys or (KEY,)]
        return rule_of(uid_of(number), digests_of(used, uid_of(number)))

    def sample(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"muster_redis_{name}", labels)
