"""The clock of the leader's machine is set by an hour: nothing ends early, or waits for long."""

import pytest

from coordinator.messages.actions import DeletePod, EvictPod
from tests.coordinator.api import Key, key_of
from tests.coordinator.builders import foreign_pod, gang_of, node
from tests.coordinator.deeds import slots
from tests.coordinator.gang.pods.test_kept_slots import QUOTA, failure
from tests.coordinator.journeys.preemption.worlds import IN_TEAM, LOWER, PDB, urgent, workers_of
from tests.coordinator.journeys.queues.worlds import gang_in, phases, queue
from tests.coordinator.journeys.test_late_starts import READY, begun
from tests.coordinator.journeys.test_owners import with_job
from tests.coordinator.world import World, name_of

HOUR = 3600.0
jumps = pytest.mark.parametrize("by", [HOUR, -HOUR])


def jump(world: World, by: float) -> None:
    """Set the clock of the leader's machine, and have it look."""
    world.leader.clock_off += by
    world.settle(seconds=1)


@jumps
def test_gangs_that_wait_keep_their_order_and_start_at_once(by: float) -> None:
    world = World(node("n1", cpu=4))
    world.create(foreign_pod("other", "n1", cpu=1))
    world.create(gang_of("a", 3))
    world.settle(seconds=10)
    world.create(gang_of("b", 3))
    world.settle(seconds=10)
    for step in (by, -by, by):
        jump(world, step)
        world.settle(seconds=60)
        assert [world.status(name)["position"] for name in "ab"] == [1, 2]
    world.create(gang_of("c", 3))
    world.api.remove(Key("pods", "others", "other"))
    world.settle(seconds=2)
    assert (world.bound("a"), world.bound("b")) == ({"n1": 4}, {})
    world.settle(seconds=60)
    assert [world.status(name)["position"] for name in "bc"] == [1, 2]


@jumps
def test_a_kept_slot_lasts_as_long_as_ever(by: float) -> None:
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 2))
    world.settle(seconds=60)
    with world.kuberay_refuses(failure(QUOTA)):
        world.api.remove(key_of(next(pod for pod in world.pods("a") if "workers" in name_of(pod))))
        world.settle(seconds=10)
        jump(world, by)
        world.settle(seconds=500)
        assert slots(world) == 3
        world.settle(seconds=120)
        assert slots(world) == 2


@jumps
def test_a_start_has_the_time_that_its_queue_grants_and_its_pause_too(by: float) -> None:
    world = begun()
    jump(world, by)
    world.settle(seconds=READY - 20)
    assert phases(world, "a") == ["Admitted"]
    world.settle(seconds=30)
    assert phases(world, "a") == ["Queued"]
    jump(world, -by)
    world.settle(seconds=70)
    assert phases(world, "a") == ["Admitted"]


@jumps
def test_each_late_start_is_counted(by: float) -> None:
    """By the new clock the next one may be before the pause of the last one is over."""
    world = begun()
    world.settle(seconds=READY + 10)
    assert world.status("a")["lateStarts"]["count"] == 1
    jump(world, by)
    world.settle(seconds=60 + READY + 20)
    assert phases(world, "a") == ["Failed"]


@jumps
def test_a_pod_that_a_budget_keeps_is_deleted_when_its_queue_says(by: float) -> None:
    rules = {**LOWER, "deleteAfterSeconds": 120}
    world = World(node("n1", cpu=4), queue("team", preemption=rules))
    world.create(gang_in("team", "v", 3))
    world.settle(seconds=10)
    protected = workers_of(world, "v")[1]
    world.api.budgets[protected] = PDB
    world.create(urgent("p", 3, labels=IN_TEAM))
    world.settle(seconds=20)
    assert any(isinstance(each, EvictPod) for each in world.leader.log)
    jump(world, by)
    world.settle(seconds=80)
    assert not [each for each in world.leader.log if isinstance(each, DeletePod)]
    world.settle(seconds=60)
    assert [each.name for each in world.leader.log if isinstance(each, DeletePod)] == [protected]


def test_a_leader_whose_clock_was_wrong_for_a_time_warns_of_a_deadline_once() -> None:
    world = with_job(activeDeadlineSeconds=4000)
    jump(world, -HOUR)
    world.settle(seconds=60)
    jump(world, HOUR)
    world.settle(seconds=3800)
    told = [each for each in world.leader.echoed if each.reason == "DeadlineNear"]
    assert len(told) == 1
