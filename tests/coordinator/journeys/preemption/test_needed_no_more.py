"""Gangs go on where the one that they were to end for needs it no more."""

import pytest

from coordinator.messages.actions import (
    EvictPod,
    TryEviction,
    WriteGangStatus,
)
from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.builders import (
    TEAM,
    Json,
    gang_of,
    node,
)
from tests.coordinator.client import Outcome
from tests.coordinator.journeys.preemption.worlds import IN_TEAM, LOWER, evicted, two_gangs, urgent
from tests.coordinator.journeys.queues.worlds import change, gang_in, phases, queue
from tests.coordinator.stopping import (
    act_until,
    choose_whole,
    condition,
    ending,
    go_until,
    names_of,
)
from tests.coordinator.world import World, key

# ---- what is needed no more


def test_a_gang_goes_on_where_the_one_that_it_was_to_end_for_is_deleted() -> None:
    world = two_gangs()
    leader = world.leader
    choose_whole(world, "p", "v")
    leader.act_all_but(WriteGangStatus)
    world.delete("rayclusters", "p")
    world.settle(seconds=20)
    assert evicted(world) == []
    assert world.status("v")["phase"] == "Running"
    assert ending(world, "v") == []
    assert condition(world, "v", "Evicted") == {}
    assert world.bound("v") == {"n1": 4}


def test_a_gang_of_which_one_pod_was_evicted_is_stopped_whole() -> None:
    world = two_gangs()
    leader = world.leader
    choose_whole(world, "p", "v")
    act_until(world, lambda: evicted(world))
    at = next(at for at, each in enumerate(leader.todo) if isinstance(each, EvictPod))
    leader.act(at)
    before = set(names_of(world.pods("v")))
    world.delete("rayclusters", "p")
    world.settle(seconds=60)
    assert world.status("v")["phase"] == "Running"  # anew, in the room that came free
    assert not before & set(names_of(world.pods("v")))


@pytest.mark.parametrize("quota", [None, 6])
def test_a_gang_that_is_opted_out_halfway_ends_no_further_and_nothing_waits_for_that(
    quota: int | None,
) -> None:
    """Nor is its end taken up where it is opted in again."""
    world = World(node("n1", cpu=4), queue("team", quota, preemption=LOWER), replicas=2)
    world.create(gang_in("team", "v", 3))
    world.settle(seconds=10)
    world.create(urgent("p", 3, labels=IN_TEAM))
    leader = world.leader
    while len(evicted(world)) < 2:
        world.kuberay()
        leader.hear_all()
        leader.tick()
        leader.cycle()
        if leader.todo:
            leader.act()
    cluster = world.api.get(next(k for k in world.api.objects if k.name == "v"))
    world.api.change(cluster, lambda o: o["metadata"]["labels"].update({names.OPT_IN: "false"}))
    world.settle(seconds=60)
    assert world.bound("v").total() == 4
    assert world.status("p")["reason"] == "InsufficientResources"
    assert "it is opted out" in world.status("p")["message"]
    left = names_of(world.pods("v"))
    world.leader.resign()
    world.elect(1)
    world.api.change(cluster, lambda o: o["metadata"]["labels"].update({names.OPT_IN: "true"}))
    world.api.change(
        world.api.get(Key("gangqueues", "", "team")), lambda o: o["spec"].pop("preemption")
    )
    world.settle(seconds=60)
    assert names_of(world.pods("v")) == left


@pytest.mark.parametrize("label", [{names.OPT_IN: "false"}, {names.QUEUE: "nowhere"}])
def test_a_gang_goes_on_where_the_one_that_it_was_to_end_for_may_ask_no_more(label: Json) -> None:
    world = two_gangs()
    choose_whole(world, "p", "v")
    world.leader.act_all_but(WriteGangStatus)
    cluster = world.api.get(Key("rayclusters", TEAM, "p"))
    world.api.change(cluster, lambda o: o["metadata"]["labels"].update(label))
    world.settle(seconds=20)
    assert evicted(world) == []
    assert ending(world, "v") == []
    assert world.bound("v") == {"n1": 4}


def at_the_write() -> World:
    """The end of gang v for p is written, and no eviction was sent."""
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER), replicas=2)
    world.create(gang_in("team", "v", 3))
    world.settle(seconds=10)
    world.create(urgent("p", 3, labels=IN_TEAM))
    leader = world.leader
    go_until(world, lambda: any(isinstance(each, EvictPod) for each in leader.todo))
    while sends := [at for at, a in enumerate(leader.todo) if isinstance(a, EvictPod)]:
        leader.act(sends[0], Outcome.UNSENT)
    assert ending(world, "v")
    return world


def test_a_gang_goes_on_where_the_queue_of_the_other_lets_it_stop_no_more() -> None:
    world = at_the_write()
    before = names_of(world.pods("v"))
    change(world, "team", preemption={"withinQueue": "Never"})
    world.settle(seconds=30)
    assert names_of(world.pods("v")) == before
    assert phases(world, "v", "p") == ["Running", "Queued"]
    assert ending(world, "v") == []


@pytest.mark.parametrize("leader", [0, 1])
def test_a_gang_goes_on_where_the_other_was_made_anew_under_its_name(leader: int) -> None:
    """The new one asks for more than there ever was: a priority alone gives no right to v."""
    world = at_the_write()
    before = names_of(world.pods("v"))
    world.delete("rayclusters", "p")
    world.collect_garbage()
    world.create(urgent("p", 30, labels=IN_TEAM))
    if leader:
        world.kuberay()
        world.leader.resign()
        world.elect(leader)
    world.settle(seconds=30)
    assert names_of(world.pods("v")) == before
    assert world.status("v")["phase"] == "Running"


def test_a_new_leader_stops_no_gang_of_which_nothing_is_gone_for_one_that_is_gone() -> None:
    world = two_gangs(replicas=2)
    leader = world.leader
    choose_whole(world, "p", "v")
    act_until(world, lambda: ending(world, "v"))
    before = names_of(world.pods("v"))
    leader.resign()
    world.delete("rayclusters", "p")
    world.collect_garbage()
    world.elect(1)
    world.settle(seconds=60)
    assert names_of(world.pods("v")) == before
    assert ending(world, "v") == []
    assert (world.status("v")["phase"], world.bound("v").total()) == ("Running", 4)


def test_a_new_leader_ends_a_gang_of_which_a_pod_was_evicted() -> None:
    world = two_gangs(replicas=2)
    leader = world.leader
    choose_whole(world, "p", "v")
    act_until(world, lambda: evicted(world))
    before = set(names_of(world.pods("v")))
    at = next(at for at, each in enumerate(leader.todo) if isinstance(each, EvictPod))
    leader.act(at)
    world.kubelets()
    leader.resign()
    world.delete("rayclusters", "p")
    world.collect_garbage()
    world.elect(1)
    world.settle(seconds=60)
    assert world.status("v")["phase"] == "Running"
    assert not before & set(names_of(world.pods("v")))


def test_a_trial_ends_where_the_queue_allows_no_preemption_any_more() -> None:
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER))
    world.create(gang_of("v", 3, labels=IN_TEAM))
    world.settle(seconds=10)
    leader = world.leader
    world.create(urgent("p", 3, labels=IN_TEAM))
    while not leader.state.known.term.trials:
        world.kuberay()
        leader.hear_all()
        leader.act_all()
        leader.cycle()
    change(world, "team", preemption={"withinQueue": "Never"})
    leader.hear_all()
    leader.cycle()
    world.settle(seconds=60)
    assert evicted(world) == []
    assert world.status("p")["phase"] == "Queued"


def test_a_trial_ends_with_the_gang_that_it_is_for() -> None:
    world = two_gangs()
    choose_whole(world, "p", "v")
    world.delete("rayclusters", "p")
    world.settle(seconds=20)
    assert not world.leader.state.known.term.trials
    assert evicted(world) == []
    assert world.leader.state.known.views[key("v")].eviction.probes == {}


def test_a_choice_that_changes_is_tried_anew_and_one_that_stands_is_not() -> None:
    world = two_gangs()
    choose_whole(world, "p", "v")
    choose_whole(world, "p", "v")
    assert sum(isinstance(each, TryEviction) for each in world.leader.log) == 4
