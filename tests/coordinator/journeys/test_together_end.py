"""Gangs that end together: where one member has ended the others are stopped, and wait again."""

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.messages.actions import SuspendRayJob
from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.builders import TEAM, Json, gang_of, node
from tests.coordinator.held import is_suspended
from tests.coordinator.journeys.queues.worlds import queue
from tests.coordinator.journeys.test_late_starts import Unready
from tests.coordinator.journeys.test_together import (
    LOWER,
    member,
    reason,
    stamp,
    together,
    urgent,
    version,
)
from tests.coordinator.ray_jobs import fail, job_of, ray_job, ray_service
from tests.coordinator.world import World

ALL = {names.TOGETHER_END: "All"}
WAITS = "1 of 2 members of pair is there: RayCluster a; waits for 1 more"


def bound(world: World, *gangs: str) -> list[int]:
    return [sum(world.bound(each).values()) for each in gangs]


def running(*more: Json, cpu: int = 8, replicas: int = 1) -> World:
    """A pair of RayClusters a and b that end together, or of a and another member."""
    world = World(node("n1", cpu=cpu), replicas=replicas)
    world.create(member("a", annotations=ALL), *(more or (member("b", annotations=ALL),)))
    world.settle(seconds=60)
    assert bound(world, "a") == [2]
    return world


def job(name: str = "j", **spec: Any) -> Json:
    return ray_job(name, gang_of("x", 1, annotations=together() | ALL), **spec)


def say(world: World, name: str, state: str, **spec: Any) -> None:
    """Have a RayJob be in a state, as KubeRay writes it."""
    found = job_of(world.api, name)
    world.api.change(found, lambda obj: obj["status"].update(jobDeploymentStatus=state))
    world.api.change(job_of(world.api, name), lambda obj: obj["spec"].update(spec))


def delete_b(world: World) -> None:
    world.delete("rayclusters", "b")


def suspend_b(world: World) -> None:
    world.edit("b", suspend=True)


def opt_b_out(world: World) -> None:
    found = world.api.get(Key("rayclusters", TEAM, "b"))
    label = {names.OPT_IN: "false"}
    world.api.change(found, lambda obj: obj["metadata"]["labels"].update(label))


@pytest.mark.parametrize("leave", [delete_b, suspend_b, opt_b_out])
def test_the_other_is_stopped_where_a_member_has_ended(leave: Callable[[World], None]) -> None:
    world = running()
    leave(world)
    world.settle(seconds=120)
    assert bound(world, "a") == [0]
    assert is_suspended(world.api, "a")
    assert reason(world, "a")[0] == "WaitsForMembers"
    assert "position" not in world.status("a")


def test_it_says_for_whom_it_waits_and_why_it_was_stopped() -> None:
    world = running()
    delete_b(world)
    world.settle(seconds=120)
    why = "all members are stopped, to wait for each other again (muster.dev/together-end: All)"
    assert reason(world, "a") == ("WaitsForMembers", f"{WAITS}; member b is gone; {why}")
    evicted = [each for each in world.status("a")["conditions"] if each["type"] == "Evicted"]
    assert [each["reason"] for each in evicted] == ["MemberEnded"]


def test_they_start_again_once_all_are_there() -> None:
    world = running()
    before = stamp(world, "a")
    delete_b(world)
    world.settle(seconds=120)
    world.create(member("b", annotations=ALL))
    world.settle(seconds=600)
    assert bound(world, "a", "b") == [2, 2]
    assert stamp(world, "a") == stamp(world, "b") not in ("", before)


def test_one_that_is_made_anew_at_once_waits_for_the_other_to_be_stopped() -> None:
    world = running()
    before = stamp(world, "a")
    delete_b(world)
    world.create(member("c", annotations=ALL))
    world.settle(seconds=600)
    assert bound(world, "a", "c") == [2, 2]
    assert stamp(world, "a") == stamp(world, "c") not in ("", before)


def test_of_three_all_are_stopped() -> None:
    three = together("trio", 3) | ALL
    world = World(node("n1", cpu=8))
    world.create(*(member(each, annotations=three) for each in "abc"))
    world.settle(seconds=60)
    assert bound(world, *"abc") == [2, 2, 2]
    world.delete("rayclusters", "b")
    world.settle(seconds=120)
    assert bound(world, *"abc") == [0, 0, 0]
    assert reason(world, "c")[1].startswith("2 of 3 members of trio are there")


def test_members_that_are_not_held_wait_gated_again() -> None:
    world = World(node("n1", cpu=4))
    world.create(*(gang_of(each, 1, annotations=together() | ALL) for each in "ab"))
    world.settle(seconds=60)
    assert bound(world, "a", "b") == [2, 2]
    delete_b(world)
    world.settle(seconds=120)
    assert (bound(world, "a"), world.gated("a")) == ([0], 2)


def test_a_new_leader_stops_the_others_of_one_that_ended_meanwhile() -> None:
    world = running(replicas=2)
    world.leader.leading = False  # it crashed
    delete_b(world)
    world.elect(1)
    world.settle(seconds=120)
    assert bound(world, "a") == [0]
    assert reason(world, "a")[0] == "WaitsForMembers"


def test_a_lost_worker_stops_nobody() -> None:
    world = running()
    lost = next(p for p in world.pods("b") if "workers" in p["metadata"]["name"])
    world.api.remove(Key("pods", TEAM, lost["metadata"]["name"]))
    world.settle(seconds=60)
    assert bound(world, "a", "b") == [2, 2]


def test_a_pair_that_makes_way_starts_whole_again() -> None:
    world = running()
    world.create(queue("default", preemption=LOWER), urgent("p", 5))
    world.settle(seconds=120)
    assert bound(world, "a", "b", "p") == [0, 0, 6]
    world.delete("rayclusters", "p")
    world.settle(seconds=3600)
    assert bound(world, "a", "b") == [2, 2]


def test_one_that_is_not_ready_in_time_has_the_other_stopped() -> None:
    rules = {"readySeconds": 100, "backoffSeconds": 60}
    world = Unready(node("n1", cpu=8), queue("default", timeouts=rules), slow="b")
    world.create(member("a", annotations=ALL), member("b", annotations=ALL))
    world.settle(seconds=60)
    assert bound(world, "a", "b") == [2, 2]
    world.settle(seconds=60)
    assert bound(world, "a", "b") == [0, 0]
    assert "member b was stopped" in reason(world, "a")[1]
    world.slow.clear()
    world.settle(seconds=3600)
    assert bound(world, "a", "b") == [2, 2]


# --- whose members are made by others -----------------------------------------------------------


@pytest.mark.parametrize("state", ["Complete", "Failed"])
def test_a_ray_job_that_is_over_has_the_other_stopped_though_its_cluster_is_left(
    state: str,
) -> None:
    world = running(job())
    say(world, "j", state)
    world.settle(seconds=120)
    assert bound(world, "a", "j-1") == [0, 2]
    assert f"member j-1 has ended ({state})" in reason(world, "a")[1]
    assert reason(world, "a")[0] == "WaitsForMembers"
    world.delete("rayjobs", "j")
    world.create(job("k"))
    world.settle(seconds=120)
    assert bound(world, "a", "k-2") == [2, 2]


def test_a_ray_job_that_its_user_suspends_has_the_other_stopped() -> None:
    world = running(job(shutdownAfterJobFinishes=True))
    say(world, "j", "Running", suspend=True)
    world.settle(seconds=120)
    assert bound(world, "a") == [0]
    found = job_of(world.api, "j")
    world.api.change(found, lambda obj: obj["spec"].update(suspend=False))
    world.settle(seconds=600)
    assert bound(world, "a", "j-2") == [2, 2]


def test_another_try_of_a_ray_job_stops_nobody_and_belongs_to_the_set() -> None:
    world = running(job(backoffLimit=1))
    before = stamp(world, "a")
    fail(world.api, "j")
    world.settle(seconds=60)
    assert bound(world, "a", "j-2") == [2, 2]
    assert stamp(world, "j-2") == stamp(world, "a") == before
    world.delete("rayclusters", "a")
    world.settle(seconds=120)
    assert bound(world, "j-2") == [0]


def test_a_ray_job_that_goes_between_two_tries_has_the_other_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = running(job(backoffLimit=1))
    monkeypatch.setattr("tests.coordinator.ray_jobs._make", lambda *_: None)
    fail(world.api, "j")
    world.settle(seconds=60)
    assert bound(world, "a") == [2]
    world.delete("rayjobs", "j")
    world.settle(seconds=120)
    assert bound(world, "a") == [0]


def test_a_ray_job_is_suspended_and_resumed_where_the_other_has_ended() -> None:
    world = running(job(shutdownAfterJobFinishes=True))
    say(world, "j", "Running")
    world.settle()
    world.delete("rayclusters", "a")
    world.settle(seconds=120)
    assert any(isinstance(each, SuspendRayJob) for each in world.leader.log)
    assert bound(world, "j-2") == [0]
    assert reason(world, "j-2")[1].startswith("1 of 2 members of pair is there: RayJob j")
    world.create(member("c", annotations=ALL))
    world.settle(seconds=600)
    assert bound(world, "j-2", "c") == [2, 2]


def test_a_ray_job_that_would_be_lost_goes_on_and_says_so() -> None:
    world = running(job())
    say(world, "j", "Running")
    world.settle()
    world.delete("rayclusters", "a")
    world.settle(seconds=120)
    assert bound(world, "j-1") == [2]
    said = "member a is gone, but this gang goes on: RayJob j would be lost"
    assert said in world.status("j-1")["message"]


def test_a_later_version_of_a_ray_service_stops_nobody() -> None:
    world = World(node("n1", cpu=8))
    world.create(ray_service("s"))
    first = version(world, "s-1")
    first["metadata"]["annotations"].update(ALL)
    world.create(first, member("a", annotations=ALL))
    world.settle(seconds=60)
    second = version(world, "s-2")
    second["metadata"]["annotations"].update(ALL)
    world.create(second)
    world.settle(seconds=60)
    world.delete("rayclusters", "s-1")
    world.settle(seconds=60)
    assert bound(world, "a", "s-2") == [2, 2]
    world.delete("rayservices", "s")
    world.delete("rayclusters", "s-2")
    world.settle(seconds=120)
    assert bound(world, "a") == [0]


# --- what cannot be -----------------------------------------------------------------------------


def test_of_ends_that_do_not_agree_the_later_is_misconfigured() -> None:
    world = World(node("n1", cpu=4))
    world.create(member("a"))
    world.settle(seconds=30)
    world.create(member("b", annotations=ALL))
    world.settle(seconds=30)
    said = (
        f'{names.TOGETHER_END}: "All" is not valid; allowed: Keep, as RayCluster a of group pair '
        "says"
    )
    assert reason(world, "b") == ("Misconfigured", said)
    assert reason(world, "a")[1].endswith(f"RayCluster b says {names.TOGETHER_END} All")
