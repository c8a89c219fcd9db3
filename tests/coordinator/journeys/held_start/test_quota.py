"""Held gangs and ResourceQuotas, and what GangQueues count."""

from kube.foreseen.gang import is_foreseen
from tests.coordinator.builders import (
    node,
)
from tests.coordinator.held import had_pods, held_gang, is_suspended
from tests.coordinator.journeys.held_start.worlds import crowded, phase_of, quota, stopped_kuberay
from tests.coordinator.world import World, key


def test_a_quota_of_the_namespace_keeps_it_waiting_and_nothing_is_created() -> None:
    world = World(node("n1", cpu=4), quota(3))
    world.create(held_gang("a", 3))
    world.settle(seconds=30)
    assert not had_pods(world.api, "a")
    status = world.status("a")
    assert status["reason"] == "PodsRefused"
    assert "ResourceQuota few: the gang needs 4 of pods; 3 of 3 are left" in status["message"]

    raised = next(world.api.all("resourcequotas"))
    world.api.change(raised, lambda obj: obj.update(quota(4) | {"metadata": obj["metadata"]}))
    world.settle(seconds=30)
    assert world.bound("a") == {"n1": 4}


def test_queues_count_it_and_evictions_of_it_need_no_pods() -> None:
    world = crowded(held_gang("a", 3))
    assert world.leader.state.known.reports.census.pending["default"] == 1
    assert is_foreseen(world.leader.state.known.views[key("a")].held.expected.foresight.pods[0])


def test_a_quota_is_not_given_to_another_while_pods_are_to_come() -> None:
    world = World(node("n1", cpu=8), quota(4), replicas=1)
    world.create(held_gang("a", 3))
    leader = world.leader
    for _ in range(3):
        leader.hear_all()
        leader.cycle()
        leader.act_all()
    world.create(held_gang("b", 3))
    for _ in range(3):
        leader.hear_all()
        leader.cycle()
        leader.act_all()
    assert (phase_of(world, "a"), is_suspended(world.api, "b")) == ("Resumed", True)


def test_one_that_waits_for_a_quota_is_looked_at_when_another_goes_before_its_pods_come() -> None:
    """No quota changes then: only what the other was promised of it is free again."""
    world = World(node("n1", cpu=8), quota(4))
    world.create(held_gang("a", 3))
    creates = world.kuberay
    stopped_kuberay(world)
    world.settle(seconds=5)
    world.create(held_gang("b", 3))
    world.settle(seconds=5)
    assert "with those of 1 other gang that is being created" in world.status("b")["message"]
    world.delete("rayclusters", "a")
    world.kuberay = creates  # type: ignore[method-assign]
    world.settle(seconds=5)
    assert world.bound("b") == {"n1": 4}


def test_gangs_that_were_placed_in_one_cycle_get_a_quota_in_that_order() -> None:
    world = World(node("n1", cpu=16), quota(4))
    world.create(held_gang("a", 3), held_gang("b", 3), held_gang("c", 3))
    stopped_kuberay(world)
    world.settle(seconds=5)
    assert [is_suspended(world.api, name) for name in "abc"] == [False, True, True]
