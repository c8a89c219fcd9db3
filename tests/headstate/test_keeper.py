"""Users are on all servers before any Secret is written."""

from __future__ import annotations

import pytest

from headstate.shell.keys import NoKeys
from headstate.users import password_of, uid_of_key, user_of
from testbed.heads import head, uid_of
from tests.headstate.kept import KEY, NAMES, NEXT, Killed, World


async def test_users_are_on_all_servers_before_the_secret_is_written(world: World) -> None:
    world.cluster.add(head(1), head(2, secret=None))
    await world.keeper.look()
    assert world.servers.users == {name: {user_of(uid_of(1)): world.rule(1)} for name in NAMES}
    password = password_of(KEY.encode(), uid_of(1))
    assert world.cluster.secrets == {"muster-redis-user-1": password}
    assert world.cluster.told == [("c1", "RedisUserReady")]
    assert world.cluster.pointed == [("a", 1)]


async def test_a_cluster_that_comes_while_users_are_set_gets_its_secret_at_the_next_look(
    world: World,
) -> None:
    world.cluster.add(head(1))
    world.servers.meanwhile["passwords"] = lambda: world.cluster.add(head(2))
    await world.keeper.look()
    assert [*world.cluster.secrets] == ["muster-redis-user-1"]
    await world.keeper.look()
    assert user_of(uid_of(2)) in world.servers.users["a:1"]
    assert [*world.cluster.secrets] == ["muster-redis-user-1", "muster-redis-user-2"]


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
