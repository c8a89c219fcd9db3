"""Failures of neighbours, tried on Muster."""

from tests.coordinator.builders import *
from tests.coordinator.journeys.test_queues import gang_in, phases, queue, change
from tests.coordinator.world import World, name_of
from coordinator.messages.clock import Patience
PATIENCE = Patience()


def older_filler(*queues, filler="team", gang="team"):
    world = World(node("n1", cpu=2), node("n2", cpu=2), *queues)
    gates = [{"name": "example.com/quota"}]
    world.create(gang_in(filler, "filler", 1, head=template(cpu=1, schedulingGates=gates)))
    world.settle(seconds=5)
    world.create(gang_in(gang, "a", 3))
    world.settle(seconds=60)
    assert world.bound("a").total() == 4
    for pod in world.pods("filler"):
        world.api.change(pod, lambda obj: obj["spec"].update(schedulingGates=[g for g in obj["spec"]["schedulingGates"] if g["name"] != "example.com/quota"]))
    world.settle(seconds=60)
    return world


def lose(world):
    (head,) = (pod for pod in world.pods("a") if "headgroup" in name_of(pod))
    gone = ({"n1", "n2"} - {head["spec"]["nodeName"]}).pop()
    world.delete("nodes", gone)
    return gone

import pytest

@pytest.mark.parametrize("away", [30, PATIENCE.slot + 60])
def test_older(away):
    world = older_filler(queue("team"))
    gone = lose(world)
    world.settle(seconds=away)
    world.create(node(gone, cpu=2))
    world.settle(seconds=5)
    assert (world.bound("a").total(), world.bound("filler")) == (4, {})

@pytest.mark.parametrize("away", [30, PATIENCE.slot + 60])
def test_other_queue(away):
    world = older_filler(queue("team", cpu=8), queue("other", cpu=100), filler="other")
    gone = lose(world)
    world.settle(seconds=away)
    world.create(node(gone, cpu=2))
    world.settle(seconds=5)
    assert (world.bound("a").total(), world.bound("filler")) == (4, {})
