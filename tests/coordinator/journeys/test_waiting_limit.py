"""One namespace makes more gangs than are decided at a time."""

import pytest

from coordinator.messages.actions import WriteGangStatus
from coordinator.queues.waiting_limit import WaitingLimit
from tests.coordinator.api import Key
from tests.coordinator.builders import TEAM, gang_of, node
from tests.coordinator.journeys.queues.worlds import queue
from tests.coordinator.world import World

CROWD = 40
MOST = 3


@pytest.fixture
def world() -> World:
    """Room for one gang at a time, and a limit of three waiting gangs of a namespace."""
    found = World(node("n1", cpu=4), {"kind": "Namespace", "metadata": {"name": "other"}})
    found.leader.state.known.waiting_limit = WaitingLimit(MOST)
    return found


def crowd(world: World, count: int = CROWD) -> list[str]:
    """Gangs of one namespace, one second after the other; the first of them runs."""
    made = [f"gang-{at:02}" for at in range(count)]
    for name in made:
        world.create(gang_of(name, 3))
        world.settle(seconds=1)
    world.settle(seconds=10)
    return made


def reasons(world: World, *gangs: str) -> list[str]:
    return [world.status(each)["reason"] for each in gangs]


def writes(world: World, gang: str) -> int:
    """How often the status of a gang was written."""
    log = world.leader.log
    return sum(isinstance(each, WriteGangStatus) and each.key.name == gang for each in log)


def test_gangs_beyond_the_limit_say_so_and_come_up_as_older_ones_end(world: World) -> None:
    first, *waiting = crowd(world, 6)
    assert reasons(world, first, *waiting) == [
        "Running", *["InsufficientResources"] * MOST, *["NamespaceLimit"] * 2,
    ]  # fmt: skip
    assert world.status(waiting[-1])["message"] == (
        "4 older gangs of namespace team wait, and of one namespace the 3 oldest that wait are "
        "decided: this gang comes up as those start or end"
    )
    assert "position" not in world.status(waiting[-1])

    world.delete("rayclusters", first)
    world.settle(seconds=10)
    assert reasons(world, *waiting) == [
        "Running", *["InsufficientResources"] * MOST, "NamespaceLimit",
    ]  # fmt: skip
    for name in waiting[:-1]:
        world.delete("rayclusters", name)
        world.settle(seconds=10)
    assert reasons(world, waiting[-1]) == ["Running"]


def test_gangs_that_come_up_are_told_of_the_quota_that_they_wait_for() -> None:
    """They are not decided one by one, and yet each is refused anew."""
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.leader.state.known.waiting_limit = WaitingLimit(MOST)
    first, *waiting = crowd(world, 6)
    quota, limit = ["QuotaExceeded"] * MOST, ["NamespaceLimit"]
    assert reasons(world, first, *waiting) == ["Running", *quota, *limit, *limit]
    world.delete("rayclusters", waiting[0])
    world.settle(seconds=10)
    assert reasons(world, *waiting[1:]) == [*quota, *limit]


def test_a_crowd_costs_other_namespaces_no_decision_and_no_write(world: World) -> None:
    first, *waiting = crowd(world)
    assert len(world.leader.state.known.cycles.waiting) == MOST
    assert {writes(world, name) for name in waiting[MOST:]} == {1}
    world.create(gang_of("theirs", 3, namespace="other"))
    world.settle(seconds=10)
    assert len(world.leader.state.known.cycles.waiting) == MOST + 1
    world.delete("rayclusters", first)
    world.delete("rayclusters", waiting[0])
    world.settle(seconds=120)
    assert {writes(world, name) for name in waiting[MOST + 2 :]} == {1}


def test_a_new_leader_says_the_same(world: World) -> None:
    waiting = crowd(world, 8)[1:]
    world.delete("rayclusters", waiting[0])
    world.settle(seconds=10)
    before = world.status(waiting[-1])
    told = writes(world, waiting[-1])
    world.leader.resign()
    world.elect(0)
    world.settle(seconds=120)
    assert world.status(waiting[-1])["message"] == before["message"]
    assert writes(world, waiting[-1]) == told


def test_a_running_gang_gets_its_lost_worker_back_beside_a_crowd(world: World) -> None:
    first, *_ = crowd(world, 8)
    worker = next(pod for pod in world.pods(first) if "workers" in pod["metadata"]["name"])
    world.api.delete(Key("pods", TEAM, worker["metadata"]["name"]))
    world.settle(seconds=30)
    assert world.bound(first) == {"n1": 4}


def test_surplus_of_running_gangs_does_not_count(world: World) -> None:
    """A gang that is done waiting leaves its place to the next."""
    first, *waiting = crowd(world, 6)
    world.scale(first, 4)
    world.settle(seconds=10)
    assert reasons(world, *waiting[:MOST]) == ["InsufficientResources"] * MOST


def test_a_limit_of_one_starts_all_that_have_room() -> None:
    """Each start calls the next one, without anything else that happens."""
    world = World(node("n1", cpu=100))
    world.leader.state.known.waiting_limit = WaitingLimit(1)
    world.create(*(gang_of(f"gang-{at}", 1) for at in range(8)))
    world.settle(seconds=20)
    assert reasons(world, *(f"gang-{at}" for at in range(8))) == ["Running"] * 8
