"""After an upgrade: pods that a build released which noted nothing on them stay as they are."""

import pytest

from coordinator.messages.actions import DeletePod
from coordinator.messages.clock import Patience
from kube.objects import names
from tests.coordinator.api import key_of
from tests.coordinator.builders import gang_of, node
from tests.coordinator.deeds import decided
from tests.coordinator.world import World

PATIENCE = Patience()


def upgraded(world: World) -> None:
    """Have a new leader find the pods as that build left them."""
    for pod in world.pods("a"):
        if names.RELEASED in pod["metadata"].get("annotations", {}):
            world.api.change(pod, lambda obj: obj["metadata"]["annotations"].pop(names.RELEASED))
    world.leader.restart()
    world.leader.log.clear()
    world.create(node("n0", cpu=64))  # where a new decision would rather go
    world.elect(0)


def deleted(world: World) -> list[str]:
    return [each.name for each in world.leader.log if isinstance(each, DeletePod)]


def two_nodes() -> World:
    world = World(node("n1", cpu=3), node("n2", cpu=3))
    world.create(gang_of("a", 5))
    return world


def test_a_gang_that_runs_goes_on_and_its_lost_pods_keep_their_slots() -> None:
    world = two_nodes()
    world.settle(seconds=60)
    upgraded(world)
    world.settle(seconds=3600)
    assert world.status("a")["phase"] == "Running"
    assert [each.get("notReleased", 0) for each in world.status("a")["podSets"]] == [0, 0]
    world.api.remove(key_of(world.pods("a")[-1]))
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 3, "n2": 3}
    assert deleted(world) == []


@pytest.mark.parametrize("sent", range(1, 7))
def test_pods_on_their_way_arrive_where_they_were_sent(
    sent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Released in the seconds before the upgrade: they are pinned, whatever is noted."""
    world = two_nodes()
    decided(world)
    for _ in range(sent):
        world.leader.act()
    upgraded(world)
    with monkeypatch.context() as slow:
        slow.setattr(world, "schedule", lambda: None)
        world.settle(seconds=PATIENCE.bind - 5)
        assert world.bound("a") == {}
    world.settle(seconds=3600)
    assert (world.bound("a"), deleted(world)) == ({"n1": 3, "n2": 3}, [])
    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Running", "Running")
