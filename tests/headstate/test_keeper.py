"""A look makes what is missing, in an order that may be cut anywhere, and deletes what is left."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from redis.exceptions import ConnectionError as Lost

from headstate.metrics import Metrics
from headstate.plan import ServerState
from headstate.settings import Settings
from headstate.shell.cluster import Cluster
from headstate.shell.keeper import Keeper
from headstate.shell.keys import NoKeys
from headstate.shell.servers import Seen, Servers
from headstate.users import digests_of, password_of, rule_of, uid_of_key, user_of
from testbed.heads import FakeCluster, head, uid_of

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


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_users_are_on_all_servers_before_the_secret_is_written(world: World) -> None:
    world.cluster.add(head(1), head(2, secret=None))
    await world.keeper.look()
    assert world.servers.users == {name: {user_of(uid_of(1)): world.rule(1)} for name in NAMES}
    password = password_of(KEY.encode(), uid_of(1))
    assert world.cluster.secrets == {"muster-redis-user-1": password}
    assert world.cluster.told == [("c1", "RedisUserReady")]
    assert world.cluster.pointed == [("a", 1)]


@pytest.mark.parametrize("step", ["set", "close", "unlink", "delete"])
async def test_killed_between_any_two_steps_the_next_leader_does_the_rest(
    world: World, step: str
) -> None:
    world.cluster.add(head(1), head(2))
    if step == "set":
        world.servers.cut = step
        with pytest.raises(Killed):
            await world.keeper.look()
        assert world.cluster.secrets == {}
    else:
        await world.keeper.look()
        world.servers.held = {f"RAY{uid_of(number)}@KV": 5 for number in (1, 2)}
        del world.cluster.heads[uid_of(1)]
        world.servers.cut = step
        with pytest.raises(Killed):
            await world.keeper.look()
        assert user_of(uid_of(1)) in world.servers.users["c:1"]
    world.servers.cut = ""
    await world.another_leader().look()
    left = {user_of(each.uid): world.rule(int(each.uid[:8], 16)) for each in world.cluster.seen()}
    assert world.servers.users == dict.fromkeys(NAMES, left)
    assert {uid_of_key(key) for key in world.servers.held} <= {*world.cluster.heads}
    assert "muster-redis-user-2" in world.cluster.secrets


async def test_killed_between_user_and_secret_the_next_leader_writes_it(world: World) -> None:
    world.cluster.add(head(1))
    world.cluster.refuses = True
    await world.keeper.look()
    assert world.cluster.secrets == {}
    world.cluster.refuses = False
    await world.another_leader().look()
    assert [*world.cluster.secrets] == ["muster-redis-user-1"]


async def test_a_secret_that_is_refused_is_tried_again_later_and_keeps_no_other(
    world: World,
) -> None:
    world.cluster.add(head(1))
    world.cluster.refuses = True
    await world.keeper.look()
    world.cluster.add(head(2))
    world.cluster.refuses = False
    await world.keeper.look()
    assert [*world.cluster.secrets] == ["muster-redis-user-2"]
    assert world.sample("clusters_waiting") == 1
    world.again()
    await world.keeper.look()
    assert {*world.cluster.secrets} == {"muster-redis-user-1", "muster-redis-user-2"}


@pytest.mark.parametrize(("ready", "kept"), [(False, False), (True, True)])
async def test_a_secret_that_is_there_already_is_replaced_unless_its_head_is_up(
    world: World, ready: bool, kept: bool
) -> None:
    """The program reads none: a tenant may have made it, or an earlier leader."""
    world.cluster.add(head(1, ready=ready))
    world.cluster.secrets["muster-redis-user-1"] = "foreign"
    await world.keeper.look()
    assert (world.cluster.secrets["muster-redis-user-1"] == "foreign") == kept
    assert (world.cluster.told == []) == kept


async def test_a_secret_that_was_found_is_replaced_once_its_head_is_down(world: World) -> None:
    world.cluster.add(head(1, ready=True))
    world.cluster.secrets["muster-redis-user-1"] = "foreign"
    await world.keeper.look()
    world.cluster.add(head(1))
    world.again()
    await world.keeper.look()
    assert world.cluster.secrets["muster-redis-user-1"] != "foreign"


async def test_a_secret_that_was_deleted_by_hand_is_made_again_while_its_head_waits(
    world: World,
) -> None:
    world.cluster.add(head(1))
    await world.keeper.look()
    world.cluster.secrets.clear()
    await world.keeper.look()
    assert world.cluster.secrets == {}
    world.again()
    await world.keeper.look()
    assert [*world.cluster.secrets] == ["muster-redis-user-1"]


@pytest.mark.parametrize(
    ("dead", "named", "written"),
    [
        ({"c:1"}, ["a:1", "a:1", None], True),
        ({"b:1", "c:1"}, ["a:1"] * 3, False),
        ({"a:1"}, ["a:1"] * 3, False),
        (set(), ["a:1", "b:1", None], False),
        (set(), ["a:1", None, None], False),
        (set(), [None] * 3, False),
        (set(), ["other:1"] * 3, False),
    ],
)
async def test_a_secret_waits_for_most_servers_and_the_primary(
    world: World, dead: set[str], named: list[str | None], written: bool
) -> None:
    world.servers.dead, world.servers.named = dead, named
    world.cluster.add(head(1), head(2, ready=True))
    await world.keeper.look()
    assert ("muster-redis-user-1" in world.cluster.secrets) == written
    if not written:
        assert world.cluster.told == [("c1", "RedisUnavailable")]
        assert "needed are more than half of them" in world.cluster.messages[0]
    world.servers.dead, world.servers.named = set(), ["b:1"] * 3
    await world.keeper.look()
    assert all(user_of(uid_of(1)) in users for users in world.servers.users.values())
    assert world.cluster.pointed[-1] == ("b", 1)


async def test_heads_keep_the_primary_that_is_left_alone(world: World) -> None:
    """One Sentinel names none for all: the Service stays as it is, and no new head starts."""
    world.cluster.add(head(1))
    await world.keeper.look()
    world.servers.dead, world.servers.named = {"b:1", "c:1"}, ["a:1", None, None]
    world.cluster.add(head(2))
    world.again()
    await world.keeper.look()
    assert world.cluster.pointed == [("a", 1)]
    assert [*world.cluster.secrets] == ["muster-redis-user-1"]


async def test_a_server_that_answers_and_takes_no_user_does_not_count(world: World) -> None:
    world.servers.refusing = {"b:1", "c:1"}
    world.cluster.add(head(1))
    await world.keeper.look()
    assert world.cluster.secrets == {}
    assert world.sample("writes_total", what="user", outcome="failed") == 2


async def test_a_server_that_was_away_has_all_its_rules_compared_at_once(world: World) -> None:
    """It comes back with what it had when it went, which may be of a key of before."""
    world.cluster.add(head(1))
    await world.keeper.look()
    world.servers.dead = {"c:1"}
    await world.keeper.look()
    world.servers.users["c:1"] = {user_of(uid_of(1)): world.rule(1, NEXT)}
    world.servers.dead = set()
    await world.keeper.look()
    assert world.servers.users["c:1"] == {user_of(uid_of(1)): world.rule(1)}


async def test_what_is_being_deleted_without_redis_is_told_how_it_ends(world: World) -> None:
    world.servers.dead = {*NAMES}
    world.cluster.add(head(1, ready=True, ends=True))
    await world.keeper.look()
    await world.keeper.look()
    assert world.cluster.told == [("c1", "RedisUnavailable")]
    assert "within 5 minutes" in world.cluster.messages[0]


async def test_a_user_stays_as_long_as_its_raycluster_does(world: World) -> None:
    """Its clean-up Job needs it, and one whose label or options were taken off still runs."""
    world.cluster.add(head(1), head(2))
    await world.keeper.look()
    world.cluster.add(head(1, ends=True), head(2, secret=None))
    await world.keeper.look()
    assert {*world.servers.users["a:1"]} == {user_of(uid_of(1)), user_of(uid_of(2))}


async def test_a_watch_that_lags_costs_no_state(world: World) -> None:
    world.cluster.add(head(1))
    await world.keeper.look()
    world.servers.held = {f"RAY{uid_of(1)}@KV": 5}
    world.cluster.unseen = {**world.cluster.heads}
    world.cluster.heads.clear()
    await world.another_leader().look()
    assert world.servers.held
    assert not [each for each in world.servers.done if "close" in each]


async def test_keys_without_user_and_raycluster_are_found_by_a_walk(world: World) -> None:
    world.servers.held = {f"RAY{uid_of(7)}@KV": 5, "RAYteam@KV": 1, "DUMMY": 1}
    await world.keeper.look()
    assert world.servers.held == {"RAYteam@KV": 1, "DUMMY": 1}


async def test_rights_go_before_keys_and_the_user_goes_last(world: World) -> None:
    world.cluster.add(head(1))
    await world.keeper.look()
    world.servers.done.clear()
    world.cluster.heads.clear()
    await world.keeper.look()
    steps = [each.split()[0] for each in world.servers.done]
    assert steps == ["close"] * 3 + ["unlink"] + ["delete"] * 3


async def test_a_new_key_goes_to_all_servers_then_into_secrets_of_heads_that_run(
    world: World,
) -> None:
    world.cluster.add(head(1, ready=True))
    await world.keeper.look()
    (world.folder / "key.next").write_text(NEXT)
    (world.folder / "password.next").write_text("4" * 64)
    world.again()
    await world.keeper.look()
    assert world.servers.passwords == [("3" * 64,), ("4" * 64, "3" * 64)]
    rule = world.rule(1, KEY, NEXT)
    assert all(users == {user_of(uid_of(1)): rule} for users in world.servers.users.values())
    newest = {"muster-redis-user-1": password_of(NEXT.encode(), uid_of(1))}
    assert world.cluster.secrets == newest
    assert world.cluster.reports[-1]["secrets"] == {"newestKey": 1, "all": 1}
    assert world.cluster.reports[-1]["keys"] == 2
    for name in ("key", "password"):
        (world.folder / f"{name}.next").rename(world.folder / name)
    world.again()
    await world.keeper.look()
    assert world.servers.passwords[2:] == [("4" * 64,)]
    assert world.servers.users["a:1"] == {user_of(uid_of(1)): world.rule(1, NEXT)}
    assert world.cluster.secrets == newest


async def test_no_secret_has_a_password_before_all_servers_take_it(world: World) -> None:
    world.cluster.add(head(1, ready=True))
    await world.keeper.look()
    (world.folder / "key.next").write_text(NEXT)
    world.servers.refusing = {"b:1", "c:1"}
    await world.keeper.look()
    await world.keeper.look()
    assert world.cluster.secrets["muster-redis-user-1"] == password_of(KEY.encode(), uid_of(1))
    world.servers.refusing = set()
    world.servers.dead = {"c:1"}
    await world.keeper.look()
    assert world.cluster.secrets["muster-redis-user-1"] == password_of(NEXT.encode(), uid_of(1))
    world.servers.dead = set()
    await world.keeper.look()
    assert world.servers.users["c:1"] == {user_of(uid_of(1)): world.rule(1, KEY, NEXT)}


async def test_a_rotation_does_not_end_before_every_server_takes_the_second_password(
    world: World,
) -> None:
    world.cluster.add(head(1, ready=True))
    (world.folder / "key.next").write_text(NEXT)
    (world.folder / "password.next").write_text("4" * 64)
    world.servers.refusing = {"c:1"}
    await world.keeper.look()
    assert world.cluster.reports[-1]["keys"] == 1
    world.servers.refusing = set()
    world.again()
    await world.keeper.look()
    assert world.cluster.reports[-1]["keys"] == 2


async def test_a_leader_that_begins_within_a_rotation_writes_all_secrets(world: World) -> None:
    world.cluster.add(head(1, ready=True))
    await world.keeper.look()
    (world.folder / "key.next").write_text(NEXT)
    await world.another_leader().look()
    assert world.cluster.secrets["muster-redis-user-1"] == password_of(NEXT.encode(), uid_of(1))


async def test_the_limit_is_told_and_takes_the_right_to_grow(tmp_path: Path) -> None:
    world = World(tmp_path, limit_bytes=10)
    world.cluster.add(head(1), head(2))
    world.servers.held = {f"RAY{uid_of(1)}@A": 6, f"RAY{uid_of(1)}@B": 6, f"RAY{uid_of(2)}@A": 10}
    await world.keeper.look()
    await world.keeper.look()
    assert ("c1", "RedisLimitReached") in world.cluster.told
    assert "takes 12 bytes" in world.cluster.messages[0]
    assert "+hset" not in world.servers.users["a:1"][user_of(uid_of(1))]
    assert "+hget" in world.servers.users["a:1"][user_of(uid_of(1))]
    assert "+hset" in world.servers.users["a:1"][user_of(uid_of(2))]
    assert world.sample("clusters_over_limit") == 1
    assert world.sample("largest_cluster_bytes") == 12
    del world.servers.held[f"RAY{uid_of(1)}@B"]
    world.again()
    await world.keeper.look()
    await world.keeper.look()
    assert "+hset" in world.servers.users["a:1"][user_of(uid_of(1))]


async def test_5000_rayclusters_get_users_at_once_and_secrets_by_and_by(world: World) -> None:
    world.cluster.add(*(head(number) for number in range(5000)))
    await world.keeper.look()
    assert len(world.servers.users["a:1"]) == 5000
    assert len(world.cluster.secrets) == 500
    for _ in range(9):
        await world.keeper.look()
    assert len(world.cluster.secrets) == 5000
    attempts = len(world.cluster.attempts)
    await world.keeper.look()
    assert len(world.cluster.attempts) == attempts


@pytest.mark.parametrize("written", ["", "short", "A" * 64, "1" * 63, "x" * 64])
async def test_a_key_that_is_none_is_refused_by_its_file(world: World, written: str) -> None:
    (world.folder / "key").write_text(written)
    with pytest.raises(NoKeys, match=r"key: not a key; allowed: 64 to 128 hexadecimal digits"):
        await world.keeper.look()


async def test_without_the_file_nothing_is_done(world: World) -> None:
    (world.folder / "key").unlink()
    with pytest.raises(NoKeys, match="it comes with Secret muster-redis-keys"):
        await world.keeper.look()


async def test_the_report_names_servers_clusters_and_what_they_use(world: World) -> None:
    world.cluster.add(head(1), head(2))
    world.servers.held = {f"RAY{uid_of(1)}@A": 6, f"RAY{uid_of(2)}@A": 8}
    world.servers.dead = {"c:1"}
    await world.keeper.look()
    report = world.cluster.reports[-1]
    assert report["primary"] == "a:1"
    assert report["servers"][2] == {"name": "c:1", "answers": False}
    assert report["servers"][1]["lag"] == 0
    assert [(each["name"], each["bytes"]) for each in report["clusters"]] == [("c2", 8), ("c1", 6)]
