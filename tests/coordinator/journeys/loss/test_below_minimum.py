"""Gangs that are below their minimum for good."""

import pytest

from coordinator.messages.actions import EvictPod
from coordinator.messages.events import WatchLost, WatchRecovered
from kube.api.errors import TooManyRequests
from scheduling.model.gang import PendingGang
from tests.coordinator.api import Key
from tests.coordinator.app_wrappers import app_wrapper, job
from tests.coordinator.builders import (
    TEAM,
    node,
)
from tests.coordinator.gang.pods.test_kept_slots import INVALID, QUOTA, failure, lose_workers
from tests.coordinator.journeys.loss.worlds import (
    PATIENCE,
    REQUEUE,
    begun,
    events,
    said,
    without_a_node,
)
from tests.coordinator.journeys.queues.worlds import gang_in, phases, queue
from tests.coordinator.ray_jobs import ray_job
from tests.coordinator.world import World, key, name_of

# ---- lost for good


def test_a_gang_below_its_minimum_for_good_is_left_as_it_is_and_says_so_once() -> None:
    world = begun()
    without_a_node(world)
    world.settle(seconds=PATIENCE.slot - 10)
    assert said(world) == ("Running", "InsufficientResources")
    world.settle(seconds=60)
    assert said(world) == ("Running", "BelowMinimum")
    message = world.status("a")["message"]
    assert message.startswith("below its minimum: 1 of 3 workers run since 2026-01-01T00:01")
    assert "; the gang goes on without: its queue has no whenBroken: Requeue; " in message
    assert "0 of 2 workers fit" in message
    assert (world.bound("a").total(), world.gated("a")) == (2, 2)
    assert len(events(world, "BelowMinimum")) == 1
    world.create(node("n3", cpu=2))
    world.settle(seconds=30)
    assert said(world) == ("Running", "Running")


def test_a_gang_whose_replacements_are_on_their_way_in_time_is_not_broken() -> None:
    world = begun(**REQUEUE)
    gone = without_a_node(world)
    world.settle(seconds=PATIENCE.slot - 30)
    world.create(node(gone, cpu=2))
    world.settle(seconds=60)
    assert said(world) == ("Running", "Running")
    without_a_node(world)
    world.settle(seconds=PATIENCE.slot - 30)
    assert said(world)[0] == "Running", "the time of the first loss is over"


def test_a_gang_that_grows_beyond_its_room_has_lost_nothing() -> None:
    world = begun(**REQUEUE)
    world.scale("a", 4)
    world.settle(seconds=2 * PATIENCE.slot)
    assert (world.bound("a").total(), said(world)[0]) == (4, "Running")
    assert said(world)[1] != "BelowMinimum"
    world.create(node("n3", cpu=1))
    world.settle(seconds=5)
    assert world.bound("a").total() == 5
    world.delete("nodes", "n3")
    world.settle(seconds=PATIENCE.slot + 30)
    assert world.bound("a").total() == 4, "what came later is surplus"
    assert said(world)[1] != "BelowMinimum"


def test_a_queue_may_have_a_broken_gang_stopped_whole_and_wait_again() -> None:
    world = begun(**REQUEUE)
    without_a_node(world)
    world.settle(seconds=PATIENCE.slot + 30)
    assert said(world) == ("Queued", "NeverFits")
    assert (world.bound("a"), world.gated("a")) == ({}, 4)
    assert "below its minimum: 1 of 3 workers run since" in world.status("a")["message"]
    assert len(events(world, "BelowMinimum")) == 1
    assert "placement" not in world.status("a")
    assert world.status("a")["breaks"]["count"] == 1
    world.create(gang_in("team", "b", 1))
    world.settle(seconds=5)
    assert world.bound("b").total() == 2, "others use its room"
    world.create(node("n3", cpu=4))
    world.settle(seconds=30)
    assert (world.bound("a"), said(world)) == ({"n3": 4}, ("Running", "Running"))


def test_a_gang_that_breaks_comes_after_others_for_a_time_under_the_next_leader_too() -> None:
    world = begun(**REQUEUE)
    gone = without_a_node(world)
    world.settle(seconds=PATIENCE.slot + 30)
    world.leader.restart()
    world.elect(0)
    world.create(gang_in("team", "b", 3))
    world.settle(seconds=5)
    world.create(node(gone, cpu=2))
    world.settle(seconds=30)
    assert phases(world, "a", "b") == ["Queued", "Running"]
    assert setbacks(world) == 1
    world.settle(seconds=PATIENCE.setback)
    assert setbacks(world) == 0


def setbacks(world: World) -> int:
    asked = world.leader.state.known.views[key("a")].queueing.asked
    assert isinstance(asked, PendingGang)
    return asked.setbacks


def test_the_clock_of_a_loss_stands_still_while_a_watch_is_down() -> None:
    world = begun(**REQUEUE)
    without_a_node(world)
    world.settle(seconds=10)
    world.leader.handle([WatchLost("raypods")])
    world.settle(seconds=2 * PATIENCE.slot)
    world.leader.handle([WatchRecovered("raypods")])
    world.settle(seconds=PATIENCE.slot - 60)
    assert world.bound("a").total() == 2
    world.settle(seconds=120)
    assert world.bound("a").total() == 0


def test_a_budget_that_refuses_the_end_of_a_broken_gang_counts_one_break() -> None:
    world = begun(**REQUEUE)
    without_a_node(world)
    refusal = TooManyRequests(429, "TooManyRequests", "a disruption budget is against it")
    world.api.budgets.update({name_of(pod): refusal for pod in world.pods("a")})
    world.settle(seconds=PATIENCE.slot + 1800)
    assert world.bound("a").total() == 2
    assert world.status("a")["breaks"]["count"] == 1
    world.api.budgets.clear()
    world.settle(seconds=700)
    assert world.bound("a").total() == 0


@pytest.mark.parametrize("seconds", [0, 30])
def test_a_slot_that_is_not_kept_leaves_kuberay_time_to_make_the_pod_again(seconds: int) -> None:
    world = begun(**REQUEUE, timeouts={"slotSeconds": seconds})
    with world.kuberay_refuses(failure(QUOTA)):
        lose_workers(world, 1)
        world.settle(seconds=PATIENCE.bind - 5)
        assert world.bound("a").total() == 3
    world.settle(seconds=60)
    assert world.bound("a").total() == 4
    assert not [each for each in world.leader.log if isinstance(each, EvictPod)]


def test_a_broken_gang_whose_pods_could_not_be_made_again_is_left_as_it_is() -> None:
    world = begun(**REQUEUE)
    with world.kuberay_refuses(failure(INVALID)):
        lose_workers(world, 1)
        world.settle(seconds=PATIENCE.slot + 60)
        assert world.bound("a").total() == 3
        assert "its pods could not be made again" in world.status("a")["message"]


# ---- what made the RayCluster


def job_world(**spec: object) -> World:
    """A RayJob in a queue that stops broken gangs; its RayCluster runs on two nodes."""
    world = World(node("n1", cpu=2), node("n2", cpu=2), queue("team", **REQUEUE))
    world.create(ray_job("job", gang_in("team", "job", 3), **spec))
    world.settle(seconds=30)
    job = world.api.get(Key("rayjobs", TEAM, "job"))
    world.api.change(job, lambda obj: obj["status"].update(jobDeploymentStatus="Running"))
    world.settle(seconds=30)
    assert world.bound("job-1").total() == 4
    world.delete("nodes", min(world.bound("job-1")))
    return world


def test_a_broken_rayjob_is_suspended_and_its_next_raycluster_waits() -> None:
    world = job_world(shutdownAfterJobFinishes=True)
    world.settle(seconds=PATIENCE.slot + 60)
    assert Key("rayclusters", TEAM, "job-1") not in world.api.objects
    assert phases(world, "job-2") == ["Queued"]
    assert not world.api.get(Key("rayjobs", TEAM, "job"))["spec"].get("suspend")


def test_a_broken_rayjob_that_would_be_lost_goes_on_and_says_why() -> None:
    world = job_world()
    world.settle(seconds=PATIENCE.slot + 60)
    assert said(world, "job-1") == ("Running", "BelowMinimum")
    assert "RayJob job would be lost" in world.status("job-1")["message"]


def test_a_broken_app_wrapper_is_left_to_its_own_retries() -> None:
    world = World(node("n1", cpu=2), node("n2", cpu=2), queue("default", **REQUEUE))
    world.create(app_wrapper("a", job("one", 4)))
    world.settle(seconds=60)
    world.delete("nodes", "n2")
    world.settle(seconds=PATIENCE.slot + 60)
    assert not [each for each in world.leader.log if isinstance(each, EvictPod)]
    assert "an AppWrapper has retries" in world.status("appwrapper.a")["message"]
