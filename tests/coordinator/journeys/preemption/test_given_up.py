"""Endings that are needed no more are undone."""

from collections.abc import Callable

import pytest

from coordinator.messages.actions import (
    TryEviction,
    WriteGangStatus,
)
from tests.coordinator.api import Key
from tests.coordinator.builders import TEAM, gang_of, group, node, ray_cluster
from tests.coordinator.client import Outcome
from tests.coordinator.journeys.preemption.unsure_worlds import (
    LEAST,
    elastic,
    in_a_team,
    in_mind,
    slots,
    suspend,
    whole,
    writes_its_end,
)
from tests.coordinator.journeys.preemption.worlds import evicted, two_gangs, urgent, workers_of
from tests.coordinator.journeys.test_stopped_jobs import (
    sent,
)
from tests.coordinator.replica import event_of
from tests.coordinator.stopping import (
    choose,
    choose_whole,
    ending,
    go_until,
    names_of,
    parts,
)
from tests.coordinator.world import World

# ---- the need for it is gone at the very moment


def vanish(world: World) -> None:
    world.delete("rayclusters", "p")


def be_deleted(world: World) -> None:
    cluster = world.api.get(Key("rayclusters", TEAM, "p"))
    world.api.hold(cluster, "test/finalizer")
    world.delete("rayclusters", "p")


@pytest.mark.parametrize("goes", [vanish, suspend, be_deleted])
def test_a_gang_goes_on_where_the_news_of_the_other_comes_with_the_answer_to_the_write(
    goes: Callable[[World], None],
) -> None:
    """The other gang, which is younger, was not looked at yet when this one is."""
    world = in_a_team(whole())
    leader = world.leader
    go_until(world, lambda: writes_its_end(world))
    before = names_of(world.pods("v"))
    goes(world)
    write = next(each for each in leader.todo if isinstance(each, WriteGangStatus))
    leader.todo.remove(write)
    answer = leader.carried_out(write, Outcome.DONE)
    news = leader.watch.queues["rayclusters"]
    heard = (event_of(each, leader._reduce) for each in news)
    leader.handle([*answer, *(event for event in heard if event is not None)])
    news.clear()
    world.settle(seconds=60)
    assert (evicted(world), names_of(world.pods("v"))) == ([], before)
    assert ending(world, "v") == []


def test_nothing_is_decided_to_end_for_a_gang_that_is_gone_when_the_last_dry_run_is_over() -> None:
    world = two_gangs()
    choose_whole(world, "p", "v")
    world.delete("rayclusters", "p")
    world.leader.hear("rayclusters")
    world.leader.act_all()
    assert (in_mind(world), ending(world, "v")) == (0, [])
    assert not world.leader.state.known.term.trials


def test_no_gang_ends_for_one_that_got_enough_room_as_another_went() -> None:
    """The trial was of two gangs; one of them is deleted meanwhile."""
    world = World(node("n1", cpu=4))
    world.create(gang_of("v", 1), gang_of("w", 1))
    world.settle(seconds=10)
    world.create(urgent("p", 3))
    world.settle(seconds=10)
    choose_whole(world, "p", "v", "w")
    world.delete("rayclusters", "w")
    world.leader.hear("rayclusters")
    world.leader.act_all()
    assert not world.leader.state.known.term.trials
    assert ending(world, "v") == []


# ---- slots of surplus that was to end


def test_surplus_that_ends_is_not_chosen_again_before_its_end_is_written() -> None:
    """Chosen twice it would lose two slots, and the second one is that of another replica."""
    world = in_a_team(elastic())
    leader = world.leader
    go_until(world, lambda: writes_its_end(world))
    for _ in range(3):
        leader.state.known.agenda.cycle_wanted = True
        leader.cycle()
        leader.act_all_but(WriteGangStatus)
    assert (in_mind(world), sent(world, TryEviction)) == (1, 2)
    world.settle(seconds=30)
    assert (world.bound("v"), slots(world)) == ({"n1": 3}, {"n1": 3})
    world.delete("rayclusters", "p")
    world.settle(seconds=30)
    assert (world.bound("v"), slots(world)) == ({"n1": 5}, {"n1": 5})


def test_surplus_that_stays_after_all_has_its_slots_again_under_a_new_leader() -> None:
    world = in_a_team(elastic(), replicas=2)
    go_until(world, lambda: ending(world, "v"))
    assert slots(world) == {"n1": 3}
    world.leader.resign()
    world.delete("rayclusters", "p")
    world.collect_garbage()
    world.elect(1)
    world.settle(seconds=30)
    assert (world.bound("v"), slots(world)) == ({"n1": 5}, {"n1": 5})
    lost = workers_of(world, "v")[0]
    world.delete("pods", lost)
    world.settle(seconds=30)
    assert (world.bound("v"), world.gated("v")) == ({"n1": 5}, 0)


def test_a_gang_that_is_not_stopped_after_all_has_the_slots_of_its_surplus_again() -> None:
    """Its surplus was to end for one gang, and then all of it for another: both go."""
    world = World(node("n1", cpu=5))
    world.create(ray_cluster("v", group("workers", 4), annotations={LEAST: "workers=1"}))
    world.settle(seconds=10)
    world.create(urgent("p", 1), urgent("q", 2))
    world.settle(seconds=10)
    choose(world, "p", *parts(world, "v")[1:3])
    world.leader.act_all_but(WriteGangStatus)
    choose_whole(world, "q", "v")
    world.leader.act_all_but(WriteGangStatus)
    assert in_mind(world) == 1
    for name in ("p", "q"):
        world.delete("rayclusters", name)
    world.settle(seconds=30)
    assert (evicted(world), ending(world, "v")) == ([], [])
    assert (world.bound("v"), slots(world)) == ({"n1": 5}, {"n1": 5})
