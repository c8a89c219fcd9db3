"""A manager lets one member at a time stop gangs for an offer, or ask for nodes."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.messages.actions import EvictPod
from kube.objects import names
from tests.coordinator.builders import Json, gang_of, node
from tests.coordinator.journeys.queues.worlds import change, queue
from tests.coordinator.journeys.test_offers import HIGH, LOWER, nodes_of
from tests.coordinator.offers import answer, let_stop, offer
from tests.coordinator.world import World

LABELS = {names.OPT_IN: "true", names.QUEUE: "team"}


def asked_for(**rules: Any) -> World:
    """A full member, and an urgent gang that another cluster asks about."""
    world = World(node("n1", cpu=4), queue("team", **rules), HIGH)
    world.create(gang_of("low", 3, labels=LABELS))
    world.settle(seconds=5)
    urgent = gang_of("a", 3, labels=LABELS)
    for each in (urgent["spec"]["headGroupSpec"], *urgent["spec"]["workerGroupSpecs"]):
        each["template"]["spec"] |= {"priorityClassName": "high", "priority": 7}
    world.create(offer("a-1", urgent))
    world.settle(seconds=10)
    assert nodes_of(world, "low") == ["n1"] * 4
    return world


def stopped(world: World) -> list[EvictPod]:
    return [each for each in world.leader.log if isinstance(each, EvictPod)]


def test_with_leave_gangs_are_stopped_for_it_and_the_room_is_offered() -> None:
    world = asked_for(preemption=LOWER)
    assert not stopped(world)
    let_stop(world)
    world.settle(seconds=20)
    assert stopped(world)
    assert answer(world)["phase"] == "Offered", answer(world)
    assert nodes_of(world, "low") != ["n1"] * 4


def test_its_queue_has_to_allow_that() -> None:
    world = asked_for()
    let_stop(world)
    world.settle(seconds=20)
    assert not stopped(world)
    assert answer(world)["phase"] == "Asked"


def test_leave_that_is_over_stops_nothing() -> None:
    world = asked_for(preemption=LOWER)
    let_stop(world, seconds=-1.0)
    world.settle(seconds=20)
    assert not stopped(world)


def test_it_ends_by_the_clock_of_the_member_whoever_leads_there() -> None:
    world = asked_for()
    let_stop(world, seconds=100.0)
    world.settle(seconds=90)
    world.elect(0)
    world.settle(seconds=20)
    change(world, "team", preemption=LOWER)
    world.settle(seconds=20)
    assert not stopped(world)


def test_with_leave_nodes_are_asked_for_and_without_it_that_ends() -> None:
    rules: Json = {"className": "check.example", "backoffSeconds": 60}
    world = asked_for(provisioning=rules)
    world.settle(seconds=60)
    assert not list(world.api.all("provisioningrequests"))
    let_stop(world, seconds=100.0)
    world.settle(seconds=60)
    assert list(world.api.all("provisioningrequests"))
    world.settle(seconds=50)
    assert not list(world.api.all("provisioningrequests"))


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ([node("n1", cpu=1)], "NeverFits"),
        ([node("n1", cpu=8, cordoned=True)], "NoFeasibleNode"),
        ([], "NoFeasibleNode"),
    ],
)
def test_with_leave_nodes_are_asked_for_where_no_node_there_is_would_do(
    nodes: list[Json], reason: str
) -> None:
    world = World(*nodes, queue("team", provisioning={"className": "check.example"}))
    world.create(offer("a-1", gang_of("a", 3, labels=LABELS)))
    world.settle(seconds=60)
    assert (answer(world)["phase"], answer(world)["reason"]) == ("Asked", reason)
    assert not list(world.api.all("provisioningrequests"))
    let_stop(world)
    world.settle(seconds=60)
    assert list(world.api.all("provisioningrequests"))
    world.create(node("n2", cpu=4))
    world.settle(seconds=10)
    assert answer(world)["phase"] == "Offered"
