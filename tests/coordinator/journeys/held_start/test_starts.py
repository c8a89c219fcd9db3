"""Held gangs: no pods exist before the whole fits, and all of them start then."""

from coordinator.messages.actions import (
    DeletePod,
    EvictPod,
    FencePod,
    ReleasePod,
    ResumeRayCluster,
    SuspendRayCluster,
    WakeKubeRay,
    WriteGangStatus,
)
from kube.objects import names
from tests.coordinator.builders import (
    gang_of,
    node,
)
from tests.coordinator.client import Outcome
from tests.coordinator.held import cluster_of, had_pods, held_gang, is_suspended
from tests.coordinator.journeys.held_start.worlds import crowded, phase_of, sent, stopped_kuberay
from tests.coordinator.world import World


def test_a_held_gang_that_fits_not_has_no_pods_and_runs_whole_once_there_is_room() -> None:
    world = crowded(held_gang("a", 3))
    assert not had_pods(world.api, "a")
    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Queued", "InsufficientResources")
    assert status["position"] == 1
    assert phase_of(world) == "Waiting"
    assert all("gated" not in each for each in status["podSets"])

    world.delete("rayclusters", "b")
    world.settle(seconds=30)
    assert world.bound("a") == {"n1": 4}
    assert world.status("a")["phase"] == "Running"
    assert phase_of(world) == "Resumed"
    assert names.HELD not in cluster_of(world.api, "a")["metadata"]["annotations"]


def test_it_is_resumed_only_after_its_placement_is_written() -> None:
    world = World(node("n1"))
    world.create(held_gang("a", 3))
    leader = world.leader
    leader.hear_all()
    leader.act()  # the Gang
    leader.cycle()
    assert [type(each) for each in leader.todo] == [WriteGangStatus]
    leader.act(outcome=Outcome.UNSENT)
    assert not any(isinstance(each, ResumeRayCluster) for each in leader.todo)
    world.settle(seconds=30)
    assert world.bound("a") == {"n1": 4}
    assert (sent(world, ResumeRayCluster), sent(world, SuspendRayCluster)) == (1, 0)


def test_nothing_is_ever_written_to_a_foreseen_pod() -> None:
    world = crowded(held_gang("a", 3), held_gang("c", 1), replicas=2)
    world.leader.resign()
    world.elect(1)
    world.settle(seconds=30)
    world.delete("rayclusters", "b")
    world.settle(seconds=60)
    pods = [
        each.pod.metadata.name if isinstance(each, ReleasePod | FencePod) else each.name
        for replica in world.replicas
        for each in replica.log
        if isinstance(each, ReleasePod | FencePod | DeletePod | EvictPod)
    ]
    assert pods
    assert not [name for name in pods if "~" in name]
    heads = [each for replica in world.replicas for each in replica.echoed if each.regarding]
    assert not [each for each in heads if each.regarding and "~" in each.regarding.name]


def test_a_gang_whose_placement_is_written_keeps_its_room_until_its_pods_come() -> None:
    world = World(node("n1", cpu=4))
    world.create(held_gang("a", 3))
    leader = world.leader
    leader.hear_all()
    leader.act()
    leader.cycle()
    leader.act_all()
    leader.hear_all()  # resumed; KubeRay is slow
    assert not is_suspended(world.api, "a")
    world.create(gang_of("b", 0))
    for _ in range(3):
        leader.hear_all()
        leader.cycle()
        leader.act_all()
    assert phase_of(world) == "Resumed"
    assert "0 of 4 pods exist" in world.status("a")["message"]
    assert "lost pod" not in world.status("a")["message"]
    world.settle(seconds=30)
    assert world.bound("a") == {"n1": 4}
    assert world.status("b")["phase"] == "Queued"


def test_pods_that_come_one_by_one_are_released_together() -> None:
    world = World(node("n1", cpu=4))
    world.create(held_gang("a", 3))
    leader = world.leader
    leader.hear_all()
    leader.act()
    leader.cycle()
    leader.act_all()
    leader.hear_all()
    world.kuberay()
    for _ in range(3):
        leader.hear("pods", 1)
        leader.act_all()
        leader.cycle()
        assert not leader.releases()
    world.settle(seconds=30)
    assert world.bound("a") == {"n1": 4}


def test_where_no_pods_come_it_is_suspended_again_and_others_get_the_room() -> None:
    world = World(node("n1", cpu=4))
    world.create(held_gang("a", 3))
    stopped_kuberay(world)
    world.settle(seconds=20)
    assert phase_of(world) == "Resumed"
    world.settle(seconds=45)
    assert sent(world, SuspendRayCluster) == 1
    assert "placement" not in world.status("a")
    assert "is KubeRay running?" in world.status("a")["message"]


def test_kuberay_is_woken_once_where_it_does_not_look_again_by_itself() -> None:
    """It makes no pod for 30 s where the last one was gone before its cache showed it."""
    world = World(node("n1", cpu=4))
    world.create(held_gang("a", 3))
    make_pods = world.kuberay

    def only_when_woken() -> None:
        if names.WOKEN in cluster_of(world.api, "a")["metadata"].get("annotations", {}):
            make_pods()

    world.kuberay = only_when_woken  # type: ignore[method-assign]
    world.settle(seconds=30)
    assert sent(world, WakeKubeRay) == 0
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 4}
    assert (sent(world, WakeKubeRay), sent(world, SuspendRayCluster)) == (1, 0)


def test_a_kuberay_that_is_gone_is_woken_no_more_than_once() -> None:
    world = World(node("n1", cpu=4))
    world.create(held_gang("a", 3))
    stopped_kuberay(world)
    world.settle(seconds=55)
    assert (sent(world, WakeKubeRay), phase_of(world)) == (1, "Resumed")


def test_a_new_leader_goes_on_in_every_state() -> None:
    """At each point of the way another replica takes over, and the gang runs whole."""
    for steps in range(14):
        world = World(node("n1", cpu=4), replicas=2)
        world.create(held_gang("a", 3))
        leader = world.replicas[0]
        for _ in range(steps):
            if leader.todo:
                leader.act()
            elif leader.watch.waiting():
                leader.hear_all()
            elif leader.state.cycle_wanted:
                leader.cycle()
            else:
                world.controllers()
        leader.restart()
        world.elect(1)
        world.settle(seconds=60)
        assert world.bound("a") == {"n1": 4}, steps
        assert phase_of(world) == "Resumed", steps
        assert sent(world, SuspendRayCluster) == 0, steps
