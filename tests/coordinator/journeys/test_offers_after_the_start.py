"""What an offer says of a gang that has started: why it is not whole, and nothing while it is."""

from collections.abc import Callable

import pytest

from coordinator.messages.offer_actions import Closed, WriteOffer
from kube.objects.clusters.dispatch import ENDS
from scheduling.model.verdict import Reason
from tests.coordinator.builders import foreign_pod, gang_of, node
from tests.coordinator.journeys.loss.worlds import PATIENCE, without_a_node
from tests.coordinator.offers import accept, answer, created_for, member, offer, started
from tests.coordinator.world import World


def spread() -> World:
    """A gang that runs with two workers on a node without the head."""
    world = member(node("n2", cpu=2), offer("a-1", gang_of("a", 3)), cpu=2)
    accept(world)
    world.settle(seconds=1)
    world.create(created_for(world, gang_of("a", 3)))
    world.settle(seconds=60)
    assert world.status("a")["phase"] == "Running"
    return world


def robbed() -> World:
    """A gang that was started, whose room another pod took before its own came."""
    world = member(offer("a-1", gang_of("a", 3)))
    accept(world)
    world.settle(seconds=1)
    world.create(foreign_pod("big", "n1", cpu=3), created_for(world, gang_of("a", 3)))
    world.settle(seconds=5)
    return world


def writes(world: World) -> int:
    return len([each for each in world.leader.log if isinstance(each, WriteOffer)])


def test_a_gang_that_starts_and_runs_costs_no_write() -> None:
    world = started()
    before = writes(world)
    world.settle(seconds=200)
    assert writes(world) == before
    assert "reason" not in answer(world)


def test_a_worker_that_is_lost_is_told_with_its_numbers_until_there_is_another() -> None:
    world = spread()
    without_a_node(world)
    world.settle(seconds=10)
    said = answer(world)
    assert (said["phase"], said["reason"]) == ("Started", "InsufficientResources")
    assert "0 of 2 workers fit" in said["message"]
    world.settle(seconds=PATIENCE.slot + 30)
    assert answer(world)["reason"] == "BelowMinimum"
    world.create(node("n3", cpu=2))
    world.settle(seconds=60)
    assert answer(world)["phase"] == "Started"
    assert "reason" not in answer(world)


def test_the_next_leader_says_it_too() -> None:
    world = spread()
    without_a_node(world)
    world.settle(seconds=60)
    world.leader.restart()
    world.elect(0)
    world.settle(seconds=10)
    assert answer(world)["reason"] == "InsufficientResources"


def test_one_whose_room_was_taken_before_its_pods_came_says_so_after_a_time() -> None:
    world = robbed()
    assert "reason" not in answer(world)
    world.settle(seconds=60)
    assert (answer(world)["phase"], answer(world)["reason"]) == (
        "Started",
        "InsufficientResources",
    )


def broken() -> World:
    """A gang that ran, and lost a node."""
    world = spread()
    without_a_node(world)
    return world


@pytest.mark.parametrize("lacking", [robbed, broken])
def test_the_next_leader_keeps_what_was_said_until_it_knows_better(
    lacking: Callable[[], World],
) -> None:
    world = lacking()
    world.settle(seconds=60)
    said = answer(world)["reason"]
    assert said in ("InsufficientResources", "BelowMinimum")
    world.leader.restart()
    world.elect(0)
    for _ in range(80):
        world.settle(seconds=0.5)
        assert answer(world)["reason"] == said
    world.create(node("n3", cpu=4))
    world.settle(seconds=60)
    assert "reason" not in answer(world)


def test_the_next_leader_keeps_what_was_said_of_one_that_is_asked_for() -> None:
    world = member(foreign_pod("big", "n1", cpu=3), offer("a-1", gang_of("a", 3)))
    said = answer(world)
    assert said["reason"] == "InsufficientResources"
    world.leader.restart()
    world.elect(0)
    for _ in range(80):
        world.settle(seconds=0.5)
        assert answer(world) == said


def test_no_reason_of_a_gang_is_one_for_which_an_offer_ends() -> None:
    assert not {*ENDS, *Closed} & {*Reason}
