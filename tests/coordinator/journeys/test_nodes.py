"""What happens to gangs when their nodes change: cordons, drains, taints, labels, lost devices."""

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.messages.actions import DeletePod, ReleasePod
from tests.coordinator.api import Key
from tests.coordinator.builders import GPU, Json, gang_of, group, node, ray_cluster, template
from tests.coordinator.deeds import decided
from tests.coordinator.world import World, is_gated, name_of

TOLERANT: dict[str, Any] = {"tolerations": [{"operator": "Exists"}]}
GOING = {"key": "ToBeDeletedByClusterAutoscaler", "value": "1", "effect": "NoSchedule"}
UNREADY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def change(world: World, name: str, how: Callable[[Json], object]) -> None:
    world.api.change(world.api.get(Key("nodes", "", name)), how)


def taint(world: World, name: str, *taints: Json) -> None:
    change(world, name, lambda obj: obj.setdefault("spec", {}).update(taints=list(taints)))


def cordon(world: World, name: str, *, off: bool = False) -> None:
    change(world, name, lambda obj: obj.setdefault("spec", {}).update(unschedulable=not off))


def offer(world: World, name: str, gpus: int) -> None:
    """Have the device plugin of a node offer so many GPUs."""
    change(world, name, lambda obj: obj["status"]["allocatable"].update({GPU: str(gpus)}))


def delete_pods_on(world: World, name: str) -> None:
    for pod in world.pods():
        if pod["spec"].get("nodeName") == name:
            world.delete("pods", name_of(pod))


def cordoned(world: World, name: str) -> None:
    cordon(world, name)


def not_ready(world: World, name: str) -> None:
    taint(world, name, UNREADY)


def drained_by_autoscaler(world: World, name: str) -> None:
    taint(world, name, GOING)


def deleted_and_held(world: World, name: str) -> None:
    """As Karpenter does it: the Node object waits for its finalizer while it is drained."""
    world.api.hold(world.api.get(Key("nodes", "", name)), "karpenter.sh/termination")
    world.delete("nodes", name)


def relabelled(world: World, name: str) -> None:
    change(world, name, lambda obj: obj["metadata"].update(labels={}))


ENDS = [cordoned, not_ready, drained_by_autoscaler, deleted_and_held, relabelled]


def running_on(*nodes: Json, **pod: Any) -> World:
    """A gang of a head and two workers, on nodes with the label that they ask for."""
    wanted: dict[str, Any] = {"nodeSelector": {"pool": "a"}, **pod}
    world = World(*nodes)
    world.create(ray_cluster("a", group("workers", 2, **wanted), head=template(cpu=1, **wanted)))
    return world


def of_pool(name: str, **more: Any) -> Json:
    return node(name, labels={"pool": "a"}, **more)


@pytest.mark.parametrize("end", ENDS)
def test_what_befalls_a_node_leaves_the_gang_on_it_running(
    end: Callable[[World, str], None],
) -> None:
    world = running_on(of_pool("n1", cpu=3))
    world.settle(seconds=5)
    before = {pod["metadata"]["uid"] for pod in world.pods("a")}
    world.create(of_pool("n2", cpu=3))
    end(world, "n1")
    world.settle(seconds=700)
    assert {pod["metadata"]["uid"] for pod in world.pods("a")} == before
    assert world.status("a")["phase"] == "Running"
    assert world.bound("a") == {"n1": 3}


@pytest.mark.parametrize("end", ENDS)
def test_pods_that_are_drained_from_a_node_come_back_on_another_at_once(
    end: Callable[[World, str], None],
) -> None:
    world = running_on(of_pool("n1", cpu=3))
    world.settle(seconds=5)
    world.create(of_pool("n2", cpu=3))
    end(world, "n1")
    world.settle(seconds=1)
    delete_pods_on(world, "n1")
    world.settle(seconds=5)
    assert world.bound("a") == {"n2": 3}
    assert world.status("a")["phase"] == "Running"


@pytest.mark.parametrize("end", ENDS)
def test_drained_pods_without_another_node_wait_and_say_why_until_one_is_added(
    end: Callable[[World, str], None],
) -> None:
    world = running_on(of_pool("n1", cpu=3))
    world.settle(seconds=5)
    end(world, "n1")
    world.settle(seconds=1)
    delete_pods_on(world, "n1")
    world.settle(seconds=30)
    assert all(map(is_gated, world.pods("a")))
    assert world.status("a")["reason"] in ("NoFeasibleNode", "NeverFits", "InsufficientResources")
    world.create(of_pool("n2", cpu=3))
    world.settle(seconds=1)
    assert world.bound("a") == {"n2": 3}


@pytest.mark.parametrize("end", ENDS)
def test_what_befalls_a_node_after_the_verdict_moves_what_was_not_released(
    end: Callable[[World, str], None],
) -> None:
    """The release of the head was sent, so it is deleted; the workers only get other slots."""
    world = running_on(of_pool("n1", cpu=3))
    decided(world)
    world.create(of_pool("n2", cpu=3))
    end(world, "n1")
    world.leader.hear_all()
    world.settle(seconds=5)
    assert world.bound("a") == {"n2": 3}
    deleted = [each.name for each in world.leader.log if isinstance(each, DeletePod)]
    assert [name.split("-")[1] for name in deleted] == ["headgroup"]


@pytest.mark.parametrize("end", [cordoned, not_ready, relabelled])
def test_what_befalls_a_node_between_release_and_bind_brings_the_pods_back(
    end: Callable[[World, str], None],
) -> None:
    world = running_on(of_pool("n1", cpu=3))
    decided(world)
    world.leader.act_all()
    while world.leader.todo:
        world.leader.act_all()
    world.create(of_pool("n2", cpu=3))
    end(world, "n1")
    world.settle(seconds=120)
    assert world.bound("a") == {"n2": 3}
    assert world.status("a")["phase"] == "Running"


@pytest.mark.parametrize("end", [drained_by_autoscaler, deleted_and_held])
def test_pods_that_tolerate_everything_do_not_start_on_a_node_that_goes(
    end: Callable[[World, str], None],
) -> None:
    world = World(of_pool("n1", cpu=3))
    end(world, "n1")
    world.create(
        ray_cluster("a", group("workers", 2, **TOLERANT), head=template(cpu=1, **TOLERANT))
    )
    world.settle(seconds=20)
    assert world.gated("a") == 3
    assert "is being deleted" in world.status("a")["message"]
    world.create(of_pool("n2", cpu=3))
    world.settle(seconds=1)
    assert world.bound("a") == {"n2": 3}


def test_a_candidate_of_the_autoscaler_is_taken_last_and_taken_where_it_must_be() -> None:
    """Full of GPUs, `n2` would be the worse choice for pods without any."""
    world = World(node("n1", cpu=3), node("n2", cpu=3, gpu=8))
    key = "DeletionCandidateOfClusterAutoscaler"
    taint(world, "n1", {"key": key, "value": "1", "effect": "PreferNoSchedule"})
    world.create(gang_of("a", 2))
    world.settle(seconds=5)
    assert world.bound("a") == {"n2": 3}
    world.create(gang_of("b", 2))
    world.settle(seconds=5)
    assert world.bound("b") == {"n1": 3}


def gpu_gang(name: str, gpus: int) -> Json:
    return ray_cluster(name, group("workers", gpus, gpu=1))


def test_a_device_plugin_that_restarts_costs_no_gang_anything_and_lets_none_in() -> None:
    """The node has 8 GPUs, then 0 while pods hold 6, then 8."""
    world = World(node("n1", cpu=32, gpu=8))
    world.create(gpu_gang("a", 6))
    world.settle(seconds=5)
    before = {pod["metadata"]["uid"] for pod in world.pods("a")}
    offer(world, "n1", 0)
    world.create(gpu_gang("b", 2))
    world.settle(seconds=900)
    assert {pod["metadata"]["uid"] for pod in world.pods("a")} == before
    assert world.status("a")["phase"] == "Running"
    assert world.gated("b") == 3
    assert world.status("b")["reason"] in ("NeverFits", "InsufficientResources")
    offer(world, "n1", 8)
    world.settle(seconds=1)
    assert world.bound("b") == {"n1": 3}
    assert {pod["metadata"]["uid"] for pod in world.pods("a")} == before


def test_a_worker_lost_while_the_devices_are_gone_comes_back_with_them() -> None:
    world = World(node("n1", cpu=32, gpu=8))
    world.create(gpu_gang("a", 8))
    world.settle(seconds=5)
    offer(world, "n1", 0)
    worker = next(pod for pod in world.pods("a") if "worker" in name_of(pod))
    world.delete("pods", name_of(worker))
    world.settle(seconds=60)
    assert world.gated("a") == 1
    assert world.bound("a") == {"n1": 8}
    offer(world, "n1", 8)
    world.settle(seconds=1)
    assert world.bound("a") == {"n1": 9}


def test_devices_that_go_while_a_gang_starts_are_waited_for() -> None:
    """Seconds later they are back: the gang starts where it was to start, and nothing is torn."""
    world = World(node("n1", cpu=32, gpu=8))
    world.create(gpu_gang("a", 8))
    decided(world)
    world.leader.act_all_but(ReleasePod)
    offer(world, "n1", 0)
    world.leader.hear_all()
    world.settle(seconds=20)
    assert world.status("a")["phase"] != "Running"
    offer(world, "n1", 8)
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 9}
    assert world.status("a")["phase"] == "Running"


def test_a_node_that_is_added_is_taken_at_once_by_the_gang_that_waits_for_it() -> None:
    world = World(node("n1", cpu=2))
    world.create(gang_of("a", 2))
    world.settle(seconds=300)
    assert world.gated("a") == 3
    world.create(node("n2", cpu=2))
    world.settle(seconds=0.5)
    assert world.bound("a").total() == 3
