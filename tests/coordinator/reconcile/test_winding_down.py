"""A gang that is opted out gives its room back after a delay, and when its pods are bound."""

from coordinator.messages.actions import DeleteGang, FencePod
from coordinator.messages.events import WatchLost, WatchRecovered
from coordinator.reconcile.winding_down import OPT_OUT_DELAY
from kube.api.errors import Invalid
from tests.coordinator.api import key_of
from tests.coordinator.builders import gang_of, node
from tests.coordinator.client import Outcome
from tests.coordinator.deeds import decided, opt
from tests.coordinator.world import World, name_of


def work(world: World) -> None:
    """Let KubeRay and the leader work, and kube-scheduler not."""
    for _ in range(4):
        world.kuberay()
        world.leader.hear_all()
        world.leader.tick()
        world.leader.act_all()
        world.leader.cycle()
        world.leader.act_all()


def released() -> World:
    """A gang whose pods are pinned and not bound, and another one that waits for their room."""
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 2))
    work(world)
    assert len(world.leader.releases()) == 3
    world.create(gang_of("b", 2))
    return world


def gangs_deleted(world: World) -> list[str]:
    return [each.key.name for each in world.leader.log if isinstance(each, DeleteGang)]


def test_the_room_of_pods_on_their_way_outlives_the_opt_out() -> None:
    world = released()
    opt(world, "false")
    for _ in range(3):
        work(world)
        world.api.now += OPT_OUT_DELAY
    assert "placement" not in world.status("b")
    assert "placement" in world.status("a")
    assert gangs_deleted(world) == []
    world.settle(seconds=60)
    assert (world.bound("a"), world.bound("b")) == ({"n1": 3}, {})
    assert gangs_deleted(world) == ["a"]


def test_a_label_that_is_off_for_a_moment_costs_no_room() -> None:
    world = released()
    opt(world, "false")
    work(world)
    opt(world, "true")
    work(world)
    assert ("placement" in world.status("a"), "placement" in world.status("b")) == (True, False)
    world.settle(seconds=60)
    assert (world.bound("a"), world.status("a")["phase"]) == ({"n1": 3}, "Running")


def test_a_label_that_is_off_for_a_moment_costs_no_kept_slot() -> None:
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 2))
    world.settle(seconds=60)
    world.refused = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreateWorkerPod"}
    world.api.remove(key_of(next(pod for pod in world.pods("a") if "workers" in name_of(pod))))
    world.settle(seconds=5)
    said = world.status("a")["message"]
    assert "1 slot is kept" in said
    opt(world, "false")
    world.settle(seconds=OPT_OUT_DELAY / 2)
    opt(world, "true")
    world.settle(seconds=5)
    assert world.status("a")["message"] == said  # with the same end


def test_an_opt_out_that_is_not_seen_clearly_costs_no_room() -> None:
    world = released()
    world.leader.handle([WatchLost("rayclusters")])
    opt(world, "false")
    for _ in range(3):
        work(world)
        world.api.now += OPT_OUT_DELAY
    assert "placement" in world.status("a")
    world.leader.handle([WatchRecovered("rayclusters")])
    work(world)
    assert ("placement" in world.status("a"), "placement" in world.status("b")) == (True, False)


def test_nothing_is_released_pinned_while_a_gang_is_opted_out() -> None:
    """A release that may yet arrive is fenced before the pods are set free and the room is."""
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 2))
    leader = world.leader
    decided(world)
    [(head, pinned)] = leader.releases()
    assert pinned == "n1"
    leader.act(outcome=Outcome.HELD)
    opt(world, "false")
    work(world)
    world.api.now += OPT_OUT_DELAY + 1
    work(world)
    assert [a.pod.metadata.name for a in leader.log if isinstance(a, FencePod)] == [head]
    assert [at for _, at in leader.releases()] == ["n1", "", "", ""]
    assert isinstance(leader.client.let_go(), Invalid)
    world.settle(seconds=60)
    assert (world.bound("a"), gangs_deleted(world)) == ({"n1": 3}, ["a"])
