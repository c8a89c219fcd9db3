"""Users that end, keys and passwords that are replaced, and the limit."""

from __future__ import annotations

from pathlib import Path

from headstate.users import password_of, user_of
from testbed.heads import head, uid_of
from tests.headstate.kept import KEY, NAMES, NEXT, World


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
