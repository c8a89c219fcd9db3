"""Gangs that start together: all of a group at once, or none of it."""

from collections.abc import Mapping
from typing import Any

import pytest

from coordinator.messages.actions import ReleasePod, ResumeRayCluster, WriteGangStatus
from kube.objects import names
from tests.coordinator import offers
from tests.coordinator.api import Api, Key
from tests.coordinator.app_wrappers import app_wrapper, job
from tests.coordinator.builders import (
    TEAM,
    Json,
    foreign_pod,
    gang_of,
    group,
    node,
    ray_cluster,
    template,
)
from tests.coordinator.held import had_pods, held
from tests.coordinator.journeys.queues.test_order import aged
from tests.coordinator.journeys.queues.worlds import queue
from tests.coordinator.namespace_quota import QuotaWorld
from tests.coordinator.ray_jobs import fail, owned_by, ray_job, ray_service
from tests.coordinator.world import World, key

HOUR = 3600.0


def together(name: str = "pair", size: int = 2) -> dict[str, str]:
    return {names.TOGETHER: name, names.TOGETHER_SIZE: str(size)}


def member(
    name: str, workers: int = 1, annotations: Mapping[str, str] | None = None, **more: Any
) -> Json:
    """A RayCluster of a pair, as the webhook has it created: held."""
    said = {**together(), **(annotations or {})}
    return held(gang_of(name, workers, annotations=said, **more))


def reason(world: World, name: str) -> tuple[str, str]:
    status = world.status(name)
    return status["reason"], status["message"]


def stamp(world: World, name: str) -> str:
    return str(world.status(name).get("together", {}).get("stamp", ""))


# --- who is there -------------------------------------------------------------------------------


def test_a_member_waits_for_the_absent_one_and_holds_nothing() -> None:
    world = World(node("n1", cpu=4))
    world.create(member("a"))
    world.settle(seconds=60)
    said = "1 of 2 members of pair are there: RayCluster a; waits for 1 more"
    assert reason(world, "a") == ("WaitsForMembers", said.replace("are there", "is there"))
    assert not had_pods(world.api, "a")
    assert world.status("a")["together"] == {"name": "pair", "size": 2}
    world.create(gang_of("c", 3))
    world.settle(seconds=30)
    assert world.bound("c") == {"n1": 4}


def test_a_pair_starts_once_both_are_there_with_one_stamp() -> None:
    world = World(node("n1", cpu=4))
    world.create(member("a"))
    world.settle(seconds=60)
    world.create(member("b"))
    world.settle(seconds=60)
    assert (world.bound("a"), world.bound("b")) == ({"n1": 2}, {"n1": 2})
    assert stamp(world, "a") == stamp(world, "b") != ""
    assert world.status("a")["together"]["members"] == ["a", "b"]
    assert [world.status(each)["phase"] for each in "ab"] == ["Running", "Running"]


def test_a_pair_that_fits_not_as_a_whole_waits_whole_and_blocks_nothing() -> None:
    world = World(node("n1", cpu=3))
    world.create(member("a"), member("b"))
    world.settle(seconds=60)
    for each in "ab":
        assert world.status(each)["reason"] == "NeverFits", world.status(each)
        assert world.status(each)["position"] == 1
        assert not had_pods(world.api, each)
    world.create(gang_of("c", 2))
    world.settle(seconds=30)
    assert world.bound("c") == {"n1": 3}


def test_a_pair_waits_for_room_and_says_what_it_lacks() -> None:
    world = World(node("n1", cpu=4), foreign_pod("x", "n1", cpu=2))
    world.create(member("a"), member("b"))
    world.settle(seconds=60)
    assert {reason(world, each)[0] for each in "ab"} == {"InsufficientResources"}
    assert not had_pods(world.api, "a")
    world.api.remove(Key("pods", "others", "x"))
    world.settle(seconds=60)
    assert (world.bound("a"), world.bound("b")) == ({"n1": 2}, {"n1": 2})


def test_of_three_members_one_comes_an_hour_later() -> None:
    """They age from when they are whole: one that came meanwhile, and was passed, is older."""
    three = together("trio", 3)
    world = World(node("n1", cpu=6))
    world.create(member("a", annotations=three), member("b", annotations=three))
    world.settle(seconds=HOUR)
    assert reason(world, "b")[1].startswith("2 of 3 members of trio are there: RayCluster a, ")
    world.create(member("c", annotations=three))
    world.settle(seconds=60)
    assert [world.bound(each) for each in "abc"] == [{"n1": 2}] * 3
    assert len({stamp(world, each) for each in "abc"}) == 1


def test_two_pairs_do_not_deadlock_in_the_room_of_one() -> None:
    """Each has a member there; the first that is whole starts, then the other."""
    world = World(node("n1", cpu=4))
    first, second = together("first"), together("second")
    world.create(member("a1", annotations=first), member("b1", annotations=second))
    world.settle(seconds=60)
    world.create(member("b2", annotations=second))
    world.settle(seconds=60)
    assert (world.bound("b1"), world.bound("b2")) == ({"n1": 2}, {"n1": 2})
    world.create(member("a2", annotations=first))
    world.settle(seconds=60)
    assert {reason(world, each)[0] for each in ("a1", "a2")} == {"InsufficientResources"}
    world.delete("rayclusters", "b1")
    world.settle(seconds=60)
    assert not world.bound("a1")
    world.delete("rayclusters", "b2")
    world.settle(seconds=60)
    assert (world.bound("a1"), world.bound("a2")) == ({"n1": 2}, {"n1": 2})


# --- ResourceQuota ------------------------------------------------------------------------------


def test_two_pairs_do_not_deadlock_in_a_resource_quota() -> None:
    """A member that waits for the other holds no ResourceQuota; a pair takes it as one."""
    world = QuotaWorld(4, node("n1", cpu=16))
    first, second = together("first"), together("second")
    world.create(member("a1", annotations=first), member("b1", annotations=second))
    world.create(member("b2", annotations=second), member("a2", annotations=first))
    world.settle(seconds=120)
    bound = {each: bool(world.bound(each)) for each in ("a1", "a2", "b1", "b2")}
    assert bound == {"a1": True, "a2": True, "b1": False, "b2": False}, {
        each: reason(world, each) for each in bound
    }
    world.delete("rayclusters", "a1")
    world.delete("rayclusters", "a2")
    world.settle(seconds=120)
    assert (world.bound("b1"), world.bound("b2")) == ({"n1": 2}, {"n1": 2})


def test_a_pair_that_a_quota_never_holds_keeps_nobody_else_waiting() -> None:
    world = QuotaWorld(3, node("n1", cpu=16))
    world.create(member("a"), member("b"))
    world.settle(seconds=60)
    assert not world.bound("a")
    assert not world.bound("b")
    told = [reason(world, each)[1] for each in "ab"]
    assert any("needs 4000m of requests.cpu; 3000m of 3000m are left" in each for each in told)
    world.create(held(gang_of("c", 2)))
    world.settle(seconds=60)
    assert world.bound("c") == {"n1": 3}


def test_a_member_that_cannot_be_held_is_not_supported_beside_a_resource_quota() -> None:
    world = QuotaWorld(16, node("n1", cpu=16))
    world.create(gang_of("a", 1, annotations=together()), member("b"))
    world.settle(seconds=60)
    assert reason(world, "a")[0] == "Unsupported"
    assert "AppWrapper" in reason(world, "a")[1]
    said = "2 of 2 members of pair are there; waits for RayCluster a (Unsupported)"
    assert reason(world, "b") == ("WaitsForMembers", said)
    assert world.gated("a") == 2


def test_members_that_are_not_held_wait_gated_where_there_is_no_quota() -> None:
    world = World(node("n1", cpu=4))
    world.create(gang_of("a", 1, annotations=together()))
    world.settle(seconds=60)
    assert (world.gated("a"), reason(world, "a")[0]) == (2, "WaitsForMembers")
    world.create(gang_of("b", 1, annotations=together()))
    world.settle(seconds=60)
    assert (world.bound("a"), world.bound("b")) == ({"n1": 2}, {"n1": 2})


# --- what cannot be -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({names.TOGETHER_SIZE: "1"}, '"1" is not valid; allowed: a whole number from 2 to 16'),
        ({names.TOGETHER_SIZE: "1000"}, '"1000" is not valid; allowed: a whole number from 2'),
        ({names.TOGETHER: "A_b"}, '"A_b" is not valid; allowed: a DNS label: 1 to 63'),
        ({names.TOGETHER_END: "Both"}, '"Both" is not valid; allowed: "Keep" or "All"'),
        ({names.CREATE_PODS: "always"}, '"always" is not valid; allowed: "when-admitted" beside'),
    ],
)
def test_a_bad_value_is_named_with_what_is_allowed(said: dict[str, str], message: str) -> None:
    world = World(node("n1", cpu=4))
    world.create(gang_of("a", 1, annotations=together() | said))
    world.settle(seconds=30)
    assert reason(world, "a")[0] == "Misconfigured"
    assert message in reason(world, "a")[1]


def test_a_size_without_a_name_is_misconfigured() -> None:
    world = World(node("n1", cpu=4))
    world.create(gang_of("a", 1, annotations={names.TOGETHER_SIZE: "2"}))
    world.settle(seconds=30)
    said = '"2" is not valid; allowed: beside muster.dev/together only, which names the group'
    assert said in reason(world, "a")[1]


def test_of_sizes_that_do_not_agree_the_later_is_misconfigured() -> None:
    world = World(node("n1", cpu=4))
    world.create(member("a"))
    world.settle(seconds=30)
    world.create(member("b", annotations=together(size=3)))
    world.settle(seconds=30)
    said = (
        f'{names.TOGETHER_SIZE}: "3" is not valid; allowed: 2, as RayCluster a of group pair says'
    )
    assert reason(world, "b") == ("Misconfigured", said)
    assert reason(world, "a")[0] == "WaitsForMembers"
    assert reason(world, "a")[1].endswith(f"RayCluster b says {names.TOGETHER_SIZE} 3")
    world.create(member("c"))
    world.settle(seconds=60)
    assert (world.bound("a"), world.bound("c")) == ({"n1": 2}, {"n1": 2})
    assert not world.bound("b")


def test_a_third_member_of_two_is_misconfigured_with_the_others_before_their_start() -> None:
    world = World(node("n1", cpu=3))
    world.create(member("a"), member("b"), member("c"))
    world.settle(seconds=60)
    for each in "abc":
        assert reason(world, each)[0] == "Misconfigured"
        assert (
            "and 3 name it: RayCluster a, RayCluster b, RayCluster c; delete"
            in (reason(world, each)[1])
        )
    world.delete("rayclusters", "b")
    world.settle(seconds=30)
    assert {reason(world, each)[0] for each in "ac"} == {"NeverFits"}


def test_a_third_member_that_comes_after_the_start_alone_is_misconfigured() -> None:
    world = World(node("n1", cpu=8))
    world.create(member("a"), member("b"))
    world.settle(seconds=60)
    world.create(member("c"))
    world.settle(seconds=60)
    assert reason(world, "c")[0] == "Misconfigured"
    assert [world.status(each)["phase"] for each in "ab"] == ["Running", "Running"]


def test_members_of_two_queues_are_misconfigured_with_both_values() -> None:
    world = World(node("n1", cpu=8), queue("left"), queue("right"))
    world.create(
        member("a", annotations={names.QUEUE: "left"}),
        member("b", annotations={names.QUEUE: "right"}),
    )
    world.settle(seconds=60)
    said = "gangs that start together must have one queue: a has left, b has right"
    assert [reason(world, each) for each in "ab"] == [("Misconfigured", said)] * 2


def test_many_members_cost_no_more_than_their_number() -> None:
    """Of the group the first few are looked at when one comes, and no others."""
    world = World(node("n1", cpu=8))
    world.create(*(gang_of(f"a{at:03}", 0, annotations=together()) for at in range(40)))
    world.settle(seconds=30)
    world.leader.log.clear()
    world.create(gang_of("z", 0, annotations=together()))
    world.settle(seconds=30)
    assert {world.status(f"a{at:03}")["reason"] for at in range(40)} == {"Misconfigured"}
    written = {each.key.name for each in world.leader.log if isinstance(each, WriteGangStatus)}
    assert written == {"z"}


# --- recording ----------------------------------------------------------------------------------


def test_nothing_starts_before_all_placements_are_recorded() -> None:
    """The first member is written, and the second not: no pod is released or made of either."""
    world = World(node("n1", cpu=4))
    world.create(gang_of("a", 1, annotations=together()), gang_of("b", 1, annotations=together()))
    leader = half_recorded(world)
    assert stamp(world, "a")
    assert not stamp(world, "b")
    assert not any(isinstance(each, ReleasePod) for each in leader.todo)
    leader.act_all()
    leader.hear_all()
    assert {each.gang.name for each in leader.log if isinstance(each, ReleasePod)} == {"a", "b"}


def half_recorded(world: World) -> Any:
    """Carry out what a leader asks for until the placement of a is written, and not that of b."""
    leader = world.leader
    for _ in range(50):
        world.controllers()
        leader.hear_all()
        placing = [each for each in leader.todo if is_placing(each)]
        if placing:
            break
        leader.act_all()
        leader.cycle()
        if any(is_placing(each) for each in leader.todo):
            continue
        world.api.now += 1.0
        leader.tick()
    leader.act(next(at for at, each in enumerate(leader.todo) if is_placing(each, "a")))
    leader.hear_all()
    return leader


def is_placing(action: Any, name: str = "") -> bool:
    if not isinstance(action, WriteGangStatus) or name not in ("", action.key.name):
        return False
    return bool(action.status.get("placement"))


@pytest.mark.parametrize("is_held", [False, True])
def test_a_new_leader_drops_a_set_of_which_a_part_was_written(is_held: bool) -> None:
    world = World(node("n1", cpu=4), replicas=2)
    made = (gang_of(each, 1, annotations=together()) for each in "ab")
    world.create(*(held(each) if is_held else each for each in made))
    half_recorded(world)
    before = stamp(world, "a")
    world.leader.leading = False  # it crashed
    new = world.elect(1)
    new.hear_all()
    releases = (ReleasePod, ResumeRayCluster)
    assert not any(isinstance(each, releases) for each in world.leader.log + new.log)
    world.settle(seconds=120)
    assert (world.bound("a"), world.bound("b")) == ({"n1": 2}, {"n1": 2})
    assert stamp(world, "a") == stamp(world, "b") != before


def test_a_new_leader_goes_on_with_a_set_that_is_whole() -> None:
    world = World(node("n1", cpu=4), replicas=2)
    world.create(gang_of("a", 1, annotations=together()), gang_of("b", 1, annotations=together()))
    leader = half_recorded(world)
    leader.act(next(at for at, each in enumerate(leader.todo) if is_placing(each, "b")))
    before = stamp(world, "a")
    leader.leading = False
    world.elect(1)
    world.settle(seconds=120)
    assert stamp(world, "a") == stamp(world, "b") == before
    assert (world.bound("a"), world.bound("b")) == ({"n1": 2}, {"n1": 2})


# --- afterwards ---------------------------------------------------------------------------------


def running(cpu: int = 4, *more: Json) -> World:
    world = World(node("n1", cpu=cpu), *more)
    world.create(member("a"), member("b"))
    world.settle(seconds=60)
    assert (world.bound("a"), world.bound("b")) == ({"n1": 2}, {"n1": 2})
    return world


def test_the_other_goes_on_where_a_member_is_deleted_and_one_anew_starts_beside_it() -> None:
    world = running()
    world.delete("rayclusters", "b")
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 2}
    world.create(member("d"))
    world.settle(seconds=60)
    assert world.bound("d") == {"n1": 2}


def test_a_lost_worker_is_made_good_by_its_own_gang() -> None:
    world = running()
    lost = next(p for p in world.pods("a") if "workers" in p["metadata"]["name"])
    world.api.remove(Key("pods", "team", lost["metadata"]["name"]))
    world.settle(seconds=60)
    assert (world.bound("a"), world.bound("b")) == ({"n1": 2}, {"n1": 2})


def test_a_member_that_leaves_before_the_start_has_the_other_wait_again() -> None:
    world = World(node("n1", cpu=3))
    world.create(member("a"), member("b"))
    world.settle(seconds=30)
    world.delete("rayclusters", "a")
    world.settle(seconds=30)
    said = "1 of 2 members of pair is there: RayCluster b; waits for 1 more"
    assert reason(world, "b") == ("WaitsForMembers", said)
    assert "position" not in world.status("b")


def test_a_member_of_which_a_pod_cannot_be_made_keeps_the_other_from_starting() -> None:
    """Both are resumed; of b no pod comes: no pod of a is released, and both are held again."""
    world = World(node("n1", cpu=4))
    world.create(member("a"), member("b"))
    half_recorded(world)
    made = world._reconcile_cluster
    world._reconcile_cluster = (  # type: ignore[method-assign]
        lambda cluster, owned: None if cluster["metadata"]["name"] == "b" else made(cluster, owned)
    )
    world.settle(seconds=30)
    assert world.gated("a") == 2
    world.settle(seconds=600)
    assert not any(isinstance(each, ReleasePod) for each in world.leader.log)
    world._reconcile_cluster = made  # type: ignore[method-assign]
    world.settle(seconds=600)
    assert (world.bound("a"), world.bound("b")) == ({"n1": 2}, {"n1": 2})


# --- preemption, backfill -----------------------------------------------------------------------


LOWER = {"withinQueue": "LowerPriority"}


def urgent(name: str, workers: int, **more: Any) -> Json:
    """A RayCluster of priority 10."""
    pods = group("workers", workers, priority=10)
    return ray_cluster(name, pods, head=template(priority=10), **more)


def test_a_pair_is_stopped_whole_for_another_gang_and_starts_whole_again() -> None:
    """Room for one of them would do: both end, and neither comes back without the other."""
    world = running(4, queue("default", preemption=LOWER))
    world.create(urgent("p", 1))
    world.settle(seconds=120)
    assert world.bound("p") == {"n1": 2}
    assert not world.bound("a")
    assert not world.bound("b")
    assert {world.status(each)["phase"] for each in "ab"} == {"Queued"}
    world.delete("rayclusters", "p")
    world.settle(seconds=HOUR)
    assert (world.bound("a"), world.bound("b")) == ({"n1": 2}, {"n1": 2})


def test_a_pair_of_which_one_is_more_urgent_is_no_victim_of_what_is_less() -> None:
    world = World(node("n1", cpu=4), queue("default", preemption=LOWER))
    world.create(held(urgent("a", 1, annotations=together())), member("b"))
    world.settle(seconds=60)
    between = ray_cluster("p", group("workers", 1, priority=5), head=template(priority=5))
    world.create(between)
    world.settle(seconds=120)
    assert (world.bound("a"), world.bound("b")) == ({"n1": 2}, {"n1": 2})


def test_a_pair_has_others_stopped_for_all_of_it() -> None:
    world = World(node("n1", cpu=4), queue("default", preemption=LOWER))
    world.create(gang_of("v", 1), gang_of("w", 1))
    world.settle(seconds=30)
    world.create(held(urgent("a", 1, annotations=together())))
    world.settle(seconds=60)
    assert (world.bound("v"), world.bound("w")) == ({"n1": 2}, {"n1": 2})
    world.create(held(urgent("b", 1, annotations=together())))
    world.settle(seconds=120)
    assert (world.bound("a"), world.bound("b")) == ({"n1": 2}, {"n1": 2})
    assert not world.bound("v")
    assert not world.bound("w")


def test_a_short_gang_is_backfilled_beside_a_blocked_pair_and_a_long_one_is_not() -> None:
    lasting = {names.EXPECTED_DURATION: "1h"}
    world = World(node("n1", cpu=6), queue("default", whenBlocked="Backfill"))
    world.create(gang_of("v", 3, annotations=lasting))
    world.settle(seconds=60)
    world.create(member("a", 2), member("b", 2))
    world.settle(seconds=60)
    assert {reason(world, each)[0] for each in "ab"} == {"InsufficientResources"}
    world.create(gang_of("long", 1, annotations={names.EXPECTED_DURATION: "10h"}))
    world.create(gang_of("short", 1, annotations={names.EXPECTED_DURATION: "10m"}))
    world.settle(seconds=60)
    assert (world.bound("long"), world.bound("short")) == ({}, {"n1": 2})
    world.delete("rayclusters", "short")
    world.delete("rayclusters", "v")
    world.settle(seconds=60)
    assert (world.bound("a"), world.bound("b")) == ({"n1": 3}, {"n1": 3})


def test_a_pair_ages_from_when_it_is_whole() -> None:
    world = World(node("n1", cpu=4), queue("default", ageing={"maxWaitSeconds": 600}))
    world.create(gang_of("v", 1))
    world.settle(seconds=30)
    world.create(member("a"))
    world.settle(seconds=HOUR)
    world.create(member("b"))
    world.settle(seconds=60)
    assert {reason(world, each)[0] for each in "ab"} == {"InsufficientResources"}
    assert not aged(world, "a")
    world.settle(seconds=600)
    assert aged(world, "a")


# --- what is not supported ----------------------------------------------------------------------


class OldApi(Api):
    """Has the Gangs' definition of a release without groups."""

    def _store(self, key: Key, obj: Json) -> Json:
        status = {k: v for k, v in obj.get("status", {}).items() if k != "together"}
        return super()._store(key, {**obj, "status": status})


def test_an_api_server_that_drops_the_stamp_starts_none_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.coordinator.world.Api", OldApi)
    world = World(node("n1", cpu=4))
    world.create(gang_of("a", 1, annotations=together()), gang_of("b", 1, annotations=together()))
    world.settle(seconds=120)
    assert {reason(world, each)[0] for each in "ab"} == {"Unsupported"}
    assert world.gated() == 4
    assert "placement" not in world.status("a")


# --- whose members are made by others -----------------------------------------------------------


def test_a_ray_jobs_next_try_is_no_further_member_and_starts_beside_the_other() -> None:
    world = World(node("n1", cpu=4))
    world.create(member("a"), ray_job("j", gang_of("x", 1, annotations=together()), backoffLimit=1))
    world.settle(seconds=60)
    assert (world.bound("a"), world.bound("j-1")) == ({"n1": 2}, {"n1": 2})
    fail(world.api, "j")
    world.settle(seconds=60)
    assert (world.bound("a"), world.bound("j-2")) == ({"n1": 2}, {"n1": 2})


def version(world: World, name: str) -> Json:
    """A RayCluster of RayService s."""
    service = world.api.get(Key("rayservices", TEAM, "s"))
    return owned_by(service, gang_of(name, 1, annotations=together()))


def test_a_ray_service_is_one_member_by_its_newest_version() -> None:
    world = World(node("n1", cpu=6))
    world.create(ray_service("s"))
    world.create(version(world, "s-1"))
    world.settle(seconds=30)
    assert "1 of 2 members of pair is there: RayService s" in reason(world, "s-1")[1]
    world.create(version(world, "s-2"))
    world.settle(seconds=30)
    said = "RayService s starts with its group by RayCluster s-2"
    assert reason(world, "s-1") == ("WaitsForMembers", said)
    world.create(member("a"))
    world.settle(seconds=60)
    assert (world.bound("a"), world.bound("s-2")) == ({"n1": 2}, {"n1": 2})


def test_a_later_version_of_a_ray_service_starts_alone() -> None:
    world = World(node("n1", cpu=6))
    world.create(ray_service("s"))
    world.create(version(world, "s-1"), member("a"))
    world.settle(seconds=60)
    assert (world.bound("a"), world.bound("s-1")) == ({"n1": 2}, {"n1": 2})
    world.create(version(world, "s-2"))
    world.settle(seconds=60)
    assert [world.bound(each) for each in ("a", "s-1", "s-2")] == [{"n1": 2}] * 3


def test_the_limit_of_a_namespace_counts_a_pair_once() -> None:
    world = World(node("n1", cpu=1))
    limit = world.leader.state.known.waiting_limit
    world.create(member("a"), member("b"), gang_of("c", 1))
    world.settle(seconds=60)
    assert [limit.older(key(each)) for each in "abc"] == [0, 0, 1]


def test_what_another_cluster_asks_about_is_no_member() -> None:
    asked = offers.member(offers.offer("a-1", gang_of("a", 1, annotations=together())))
    said = offers.answer(asked)
    assert said["phase"] == "Asked"
    assert (
        f'{names.TOGETHER}: "pair" is not valid; allowed: on a gang that stays' in said["message"]
    )


def test_an_app_wrapper_is_no_member() -> None:
    wrapper = app_wrapper("w", job("work", 1))
    wrapper["metadata"].setdefault("annotations", {}).update(together())
    world = World(node("n1", cpu=8))
    world.create(wrapper)
    world.settle(seconds=60)
    assert reason(world, "appwrapper.w")[0] == "Misconfigured"
    assert "an AppWrapper starts all that it wraps at once" in reason(world, "appwrapper.w")[1]
