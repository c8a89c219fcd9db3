"""Held gangs stop others, are stopped, and fall behind where their pods never come."""

from typing import Any

import pytest

from coordinator.messages.actions import (
    ResumeRayCluster,
)
from tests.coordinator.builders import (
    Json,
    gang_of,
    node,
)
from tests.coordinator.client import Outcome
from tests.coordinator.held import had_pods, held, held_gang, is_suspended
from tests.coordinator.journeys.held_start.worlds import IN_TEAM, LOWER, phase_of, urgent
from tests.coordinator.journeys.queues.worlds import queue
from tests.coordinator.stopping import choose_whole
from tests.coordinator.world import World, key


def test_a_held_gang_may_stop_others_and_starts_in_their_room() -> None:
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER))
    world.create(gang_of("low", 3, labels=IN_TEAM))
    world.settle(seconds=30)
    world.create(held(urgent("p", 3)))
    world.settle(seconds=60)
    assert world.bound("p") == {"n1": 4}
    assert world.status("low")["phase"] == "Queued"


def test_a_held_gang_that_is_stopped_for_another_is_suspended_again_and_comes_back() -> None:
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER))
    world.create(held_gang("low", 3, labels=IN_TEAM))
    world.settle(seconds=30)
    world.create(urgent("p", 3))
    world.settle(seconds=60)
    assert world.bound("p") == {"n1": 4}
    assert (is_suspended(world.api, "low"), world.pods("low")) == (True, [])
    assert phase_of(world, "low") == "Waiting"
    assert world.status("low")["phase"] == "Queued"

    world.delete("rayclusters", "p")
    world.settle(seconds=60)
    assert world.bound("low") == {"n1": 4}


def test_a_held_gang_that_has_a_placement_and_no_pods_is_stopped_at_once() -> None:
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER))
    world.create(held_gang("low", 3, labels=IN_TEAM))
    leader = world.leader
    for _ in range(3):
        leader.hear_all()
        leader.cycle()
        leader.act_all_but(ResumeRayCluster)
    while any(isinstance(each, ResumeRayCluster) for each in leader.todo):
        leader.act(outcome=Outcome.UNSENT)
    assert "placement" in world.status("low")
    world.create(urgent("p", 3))
    world.kuberay()
    leader.hear_all()
    leader.act_all_but(ResumeRayCluster)
    choose_whole(world, "p", "low")
    assert leader.state.known.views[key("low")].eviction.last is not None
    leader.act_all_but(ResumeRayCluster)
    assert "placement" not in world.status("low")
    assert not had_pods(world.api, "low")


def without_pods(world: World, *names_of_it: str) -> None:
    """Have nothing create pods of these RayClusters."""
    made = world._make_pod

    def make_pod(cluster: Json, *more: Any) -> None:
        if cluster["metadata"]["name"] not in names_of_it:
            made(cluster, *more)

    world._make_pod = make_pod  # type: ignore[method-assign, assignment]


def times_stopped(world: World, name: str, seconds: int) -> int:
    """Count how often a gang that runs is stopped in a time."""
    end, runs, stopped = world.api.now + seconds, True, 0
    while world.api.now < end:
        world.settle(seconds=20)
        ran, runs = runs, bool(world.bound(name))
        stopped += ran and not runs
    return stopped


@pytest.mark.parametrize("replicas", [1, 2])
def test_one_whose_pods_never_come_stops_others_ever_more_rarely(replicas: int) -> None:
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER), replicas=replicas)
    world.create(gang_of("low", 3, labels=IN_TEAM))
    world.settle(seconds=30)
    without_pods(world, "p")
    world.create(held(urgent("p", 3)))
    assert times_stopped(world, "low", 400) == 1
    held_back = world.status("p")["held"]
    assert held_back["failures"] == 1
    assert held_back["until"]
    if replicas > 1:
        world.leader.resign()
        world.elect(1)
    assert times_stopped(world, "low", 3600) <= 3
    assert world.status("p")["held"]["failures"] > 1
    assert world.bound("low") == {"n1": 4}


def test_one_whose_pods_did_not_come_waits_behind_others_until_they_come() -> None:
    world = World(node("n1", cpu=4))
    made = world._make_pod
    without_pods(world, "a")
    world.create(held_gang("a", 3))
    world.settle(seconds=80)
    assert world.status("a")["held"]["failures"] == 1
    world.create(gang_of("b", 3))
    world.settle(seconds=40)
    assert world.bound("b") == {"n1": 4}
    world._make_pod = made  # type: ignore[method-assign]
    world.delete("rayclusters", "b")
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 4}
    assert "failures" not in world.status("a")["held"]
