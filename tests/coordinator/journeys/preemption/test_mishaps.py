"""Preemption ends whole whatever happens to leaders and requests."""

import random

import pytest

from kube.objects import names
from tests.coordinator.builders import (
    gang_of,
    node,
)
from tests.coordinator.client import Outcome
from tests.coordinator.journeys.preemption.worlds import (
    IN_TEAM,
    PDB,
    evicted,
    refused_halfway,
    two_gangs,
    urgent,
)
from tests.coordinator.journeys.queues.worlds import phases, queue
from tests.coordinator.stopping import (
    choose_whole,
    ending,
    names_of,
)
from tests.coordinator.world import World
from tests.examples import every_other, one_in

# ---- another leader


@pytest.mark.parametrize("acts", every_other(range(22)))
def test_another_leader_finishes_or_undoes_what_one_began(acts: int) -> None:
    world = two_gangs(replicas=2)
    leader = world.leader
    choose_whole(world, "p", "v")
    for _ in range(acts):
        if leader.todo:
            leader.act()
        leader.hear_all()
        world.kubelets()
    leader.resign()
    written = bool(ending(world, "v"))
    begun = evicted(world) != []
    world.elect(1)
    world.settle(seconds=60)
    states = phases(world, "v", "p")
    assert states in (["Running", "Queued"], ["Queued", "Running"])
    assert sorted((world.bound(each).total(), world.gated(each)) for each in ("v", "p")) == [
        (0, 4),
        (4, 0),
    ]
    assert states == ["Queued", "Running"] or not (written or begun)


def test_a_new_leader_finishes_an_end_of_which_no_room_is_left_to_be_given_back() -> None:
    world = two_gangs(replicas=2)
    refused_halfway(world)
    world.settle(seconds=30)
    assert world.gated("v") == 2
    assert "placement" not in world.status("v")
    world.leader.resign()
    for pod in world.pods("v"):
        world.delete("pods", pod["metadata"]["name"])
    world.controllers()
    assert world.gated("v") == 4
    world.elect(1)
    world.settle(seconds=120)
    assert (world.gated("v"), world.bound("p").total()) == (4, 4)
    assert ending(world, "v") == []


# ---- whatever happens to requests


MISHAPS = [Outcome.DONE] * 6 + [
    Outcome.LOST,
    Outcome.UNSENT,
    Outcome.BROKEN,
    Outcome.THROTTLED,
    Outcome.HELD,
]


def crowd() -> World:
    """Two gangs of which one has surplus, on all of the room, and two that may stop them."""
    world = World(
        node("n1", cpu=5),
        node("n2", cpu=5),
        queue("team", preemption={"withinQueue": "LowerPriority", "deleteAfterSeconds": 300}),
        replicas=2,
    )
    elastic = {names.MIN_REPLICAS: "workers=2"}
    world.create(gang_of("a", 4, labels=IN_TEAM, annotations=elastic))
    world.create(gang_of("b", 4, labels=IN_TEAM))
    world.settle(seconds=10)
    assert world.gated() == 0
    world.create(urgent("p", 1, labels=IN_TEAM), urgent("q", 3, labels=IN_TEAM))
    return world


def stumble(world: World, chance: random.Random, index: int) -> int:
    """Do one thing at random; return which replica leads."""
    leader = world.replicas[index]
    match chance.randrange(12):
        case 0 | 1:
            world.controllers()
        case 2 | 3:
            leader.hear_all()
        case 4:
            world.api.now += chance.choice([0.5, 5.0, 20.0])
            leader.tick()
        case 5 | 6:
            leader.cycle()
        case 7 if leader.client.held:
            leader.client.let_go()
        case 8 if chance.random() < 0.2:
            leader.resign()
            world.elect(1 - index)
            return 1 - index
        case 9 if chance.random() < 0.1:
            budgets = world.api.budgets
            pods = names_of(world.pods())
            budgets.clear() if budgets else budgets.update({chance.choice(pods): PDB})
        case _ if leader.todo:
            leader.act(0, chance.choice(MISHAPS))
        case _:
            pass
    return index


@pytest.mark.parametrize("seed", one_in(4, range(20)))
def test_every_gang_is_whole_or_waits_whatever_happens_to_requests(seed: int) -> None:
    world, chance, index = crowd(), random.Random(seed), 0
    for _ in range(400):
        index = stumble(world, chance, index)
    world.api.budgets.clear()
    for replica in world.replicas:
        while replica.client.held:
            replica.client.let_go()
    world.settle(seconds=2000)
    least = {"a": 3, "b": 5, "p": 2, "q": 4}
    bound = {name: world.bound(name).total() for name in least}
    assert all(count == 0 or count >= least[name] for name, count in bound.items()), bound
    assert (bound["p"], bound["q"]) == (2, 4)
    assert sum(bound.values()) + world.gated() == 16
    assert all(ending(world, name) == [] for name in least)
    used = world.used()
    assert all(each["cpu"] <= 5000 for each in used.values())
