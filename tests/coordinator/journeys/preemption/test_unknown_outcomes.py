"""Evictions of which it is not known whether they came to pass."""

import pytest

from coordinator.gang.eviction.endings import LAST_PAUSE
from coordinator.messages.actions import (
    DeletePod,
    EvictPod,
)
from tests.coordinator.client import Outcome
from tests.coordinator.journeys.preemption.unsure_worlds import asks, in_a_team, in_mind, whole
from tests.coordinator.journeys.preemption.worlds import evicted, two_gangs
from tests.coordinator.stopping import (
    act_until,
    choose_whole,
    ending,
    go_until,
    names_of,
    out_of_sight,
)

# ---- an answer is never heard, or came to nothing


@pytest.mark.parametrize("outcome", [Outcome.LOST, Outcome.HELD])
def test_a_gang_of_which_a_pod_may_have_been_evicted_ends_whole(outcome: Outcome) -> None:
    world = two_gangs()
    leader = world.leader
    choose_whole(world, "p", "v")
    act_until(world, lambda: evicted(world))
    before = set(names_of(world.pods("v")))
    for _ in evicted(world):
        at = next(at for at, each in enumerate(leader.todo) if isinstance(each, EvictPod))
        leader.act(at, outcome)
        outcome = Outcome.UNSENT  # all others
    world.delete("rayclusters", "p")
    world.settle(seconds=LAST_PAUSE)
    while leader.client.held:
        leader.client.let_go()
    world.settle(seconds=LAST_PAUSE)
    assert not before & set(names_of(world.pods("v")))
    assert (world.status("v")["phase"], ending(world, "v")) == ("Running", [])


def test_a_gang_of_which_no_eviction_was_sent_goes_on() -> None:
    world = two_gangs()
    leader = world.leader
    choose_whole(world, "p", "v")
    act_until(world, lambda: evicted(world))
    before = names_of(world.pods("v"))
    while asks(world, EvictPod):
        at = next(at for at, each in enumerate(leader.todo) if isinstance(each, EvictPod))
        leader.act(at, Outcome.UNSENT)
    world.delete("rayclusters", "p")
    world.settle(seconds=LAST_PAUSE)
    assert (names_of(world.pods("v")), ending(world, "v")) == (before, [])


def test_a_gang_ends_whole_whose_first_eviction_is_under_way_when_the_other_gang_goes() -> None:
    world = two_gangs()
    choose_whole(world, "p", "v")
    act_until(world, lambda: evicted(world))
    before = set(names_of(world.pods("v")))
    world.delete("rayclusters", "p")
    world.leader.hear_all()
    with out_of_sight(world):
        pass  # all gangs are looked at
    assert in_mind(world) == 1
    world.settle(seconds=60)
    assert not before & set(names_of(world.pods("v")))
    assert (world.status("v")["phase"], world.bound("v")) == ("Running", {"n1": 4})


def test_a_pod_whose_eviction_was_not_refused_is_evicted_again_and_not_deleted() -> None:
    world = in_a_team(whole(), deleteAfterSeconds=30)
    leader = world.leader
    go_until(world, lambda: evicted(world))
    while leader.todo:
        leader.act(0, Outcome.UNSENT)
    for _ in range(100):
        world.api.now += 1
        leader.tick()
        while leader.todo:
            leader.act(0, Outcome.UNSENT)
    assert len(evicted(world)) > 4
    world.settle(seconds=LAST_PAUSE)
    assert world.gated("v") == 5
    assert not any(isinstance(each, DeletePod) for each in leader.log)
