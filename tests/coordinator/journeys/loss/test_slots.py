"""Lost pods keep their slots for a time, and replacements take them."""

from typing import Any

import pytest

from tests.coordinator.api import Key, key_of
from tests.coordinator.builders import (
    Json,
    foreign_pod,
    gang_of,
    group,
    node,
    ray_cluster,
    template,
)
from tests.coordinator.deeds import slots
from tests.coordinator.gang.pods.test_kept_slots import QUOTA, failure, kept, lose_workers
from tests.coordinator.journeys.loss.worlds import HEADS, OTHER, begun, said, without_other_gate
from tests.coordinator.journeys.queues.worlds import change, gang_in
from tests.coordinator.world import World, is_gated, name_of


def autoscaled(name: str, least: int, **more: Any) -> Json:
    """A Ray cluster that begins with its least workers, and that Ray's autoscaler may grow."""
    workers = group("workers", least, least=least, most=20)
    return ray_cluster(name, workers, enableInTreeAutoscaling=True, **more)


# ---- how long slots are kept


def test_a_queue_says_for_how_long_slots_are_kept() -> None:
    world = begun(timeouts={"slotSeconds": 60})
    with world.kuberay_refuses(failure(QUOTA)):
        lose_workers(world, 1)
        world.settle(seconds=50)
        assert (kept(world), slots(world)) == ({"workers": 1}, 4)
        world.settle(seconds=15)
        assert (kept(world), slots(world)) == ({}, 3)


def test_a_queue_whose_slots_are_not_kept_gives_the_room_to_the_next_at_once() -> None:
    world = begun(timeouts={"slotSeconds": 0})
    world.create(gang_in("team", "b", 0))
    world.settle(seconds=5)
    with world.kuberay_refuses(failure(QUOTA)):
        lose_workers(world, 1)
        world.settle(seconds=1)
        assert world.bound("b").total() == 1


def test_a_queue_that_says_otherwise_later_is_heard_for_slots_that_are_kept_already() -> None:
    world = begun()
    with world.kuberay_refuses(failure(QUOTA)):
        lose_workers(world, 1)
        world.settle(seconds=100)
        change(world, "team", timeouts={"slotSeconds": 90})
        world.settle(seconds=5)
        assert slots(world) == 3


# ---- replacements


def test_a_failed_pod_keeps_its_slot_and_its_replacement_is_released_at_once() -> None:
    """KubeRay deletes a pod in phase Failed, and makes the next one after it (Kueue 9986)."""
    world = begun()
    world.create(gang_in("team", "b", 0))
    world.settle(seconds=5)
    worker = next(pod for pod in world.pods("a") if "workers" in name_of(pod))
    world.api.change(worker, lambda obj: obj["status"].update(phase="Failed"))
    world.kubelets = lambda: None  # type: ignore[method-assign]
    world.settle(seconds=5)
    assert (slots(world), world.bound("b")) == (4, {})
    del world.kubelets
    world.delete("pods", name_of(worker))
    world.settle(seconds=1)
    assert (world.bound("a"), world.bound("b")) == ({"n1": 2, "n2": 2}, {})
    assert said(world) == ("Running", "Running")


def test_a_replacement_goes_elsewhere_at_once_where_its_node_is_gone() -> None:
    """Short of its minimum as the gang is: no count is asked for anew (scheduler-plugins 358)."""
    world = begun(node("n1", cpu=2), node("n2", cpu=2), node("n3", cpu=1), node("n4", cpu=1))
    nodes = world.bound("a").keys()
    gone = max(nodes)
    world.delete("nodes", gone)
    world.settle(seconds=1)
    assert world.bound("a").total() == 4
    assert gone not in world.bound("a")


@pytest.mark.parametrize("out_of_reach", [True, False])
def test_a_replica_of_which_one_host_hangs_is_made_again_elsewhere(out_of_reach: bool) -> None:
    """Its other slot is of no use to the next one, which has another name; else that waits."""
    world = World(*(node(f"n{at}", cpu=1) for at in range(1, 5)))
    world.create(ray_cluster("a", group("slices", 1, hosts=2)))
    world.settle(seconds=10)
    stuck, other = (pod for pod in world.pods("a") if "slices" in name_of(pod))
    spare = ({"n1", "n2", "n3", "n4"} - world.bound("a").keys()).pop()
    world.kubelets = lambda: None  # type: ignore[method-assign]
    if out_of_reach:
        lost = world.api.get(Key("nodes", "", stuck["spec"]["nodeName"]))
        taints = [{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]
        world.api.change(lost, lambda obj: obj["spec"].update(taints=taints))
    world.delete("pods", name_of(stuck))
    world.api.remove(key_of(other))
    world.settle(seconds=5)
    fresh = [pod for pod in world.pods("a") if "slices" in name_of(pod) and pod != stuck]
    nodes = {pod["spec"].get("nodeName") for pod in fresh} - {stuck["spec"]["nodeName"]}
    assert nodes == ({other["spec"]["nodeName"], spare} if out_of_reach else {None})


@pytest.mark.parametrize("new_leader", [False, True])
def test_a_lost_worker_that_the_autoscaler_had_added_comes_back_to_its_slot(
    new_leader: bool,
) -> None:
    """What a cluster has grown by is no second gang, of which a pod could be left (Kueue 9986)."""
    world = World(node("n1", cpu=5))
    world.create(autoscaled("a", least=1))
    world.settle(seconds=10)
    world.scale("a", 4)
    world.settle(seconds=10)
    world.create(gang_of("filler", 0))
    world.settle(seconds=10)
    with world.kuberay_refuses(failure(QUOTA)):
        lose_workers(world, 1)
        world.settle(seconds=30)
        if new_leader:
            world.leader.restart()
            world.elect(0)
    world.settle(seconds=1)
    assert (world.bound("a").total(), world.bound("filler")) == (5, {})


@pytest.mark.parametrize("with_node", [False, True])
@pytest.mark.parametrize("held", [False, True])
def test_one_of_three_replacements_starts_without_the_others(with_node: bool, held: bool) -> None:
    """KubeRay could not make them yet, or gates of others hold them (scheduler-plugins 358)."""
    world = World(node("n1", cpu=1, labels=HEADS), node("n2", cpu=3))
    world.create(gang_of("a", 3, head=template(cpu=1, nodeSelector=HEADS)))
    world.settle(seconds=60)
    lose_workers(world, 3)
    if with_node:
        world.delete("nodes", "n2")
        world.create(node("n3", cpu=3))
    world.leader.hear_all()
    world.kuberay()
    world.kuberay = lambda: None  # type: ignore[method-assign]
    for late in [pod for pod in world.pods("a") if is_gated(pod)][1:]:
        if held:
            world.api.change(late, lambda pod: pod["spec"]["schedulingGates"].append(OTHER))
        else:
            world.api.remove(key_of(late))
    world.settle(seconds=5)
    assert world.bound("a").total() == 2
    del world.kuberay
    for pod in world.pods("a"):
        world.api.change(pod, without_other_gate)
    world.settle(seconds=5)
    assert world.bound("a").total() == 4


@pytest.mark.parametrize("hosts", [1, 2])
def test_of_several_lost_replicas_as_many_start_as_fit(hosts: int) -> None:
    """Else others take what comes free bit by bit, and the gang stays short (Volcano 5805)."""
    world = World(node("n1", cpu=1, labels=HEADS), node("n2", cpu=3 * hosts))
    head = template(cpu=1, nodeSelector=HEADS)
    world.create(ray_cluster("a", group("workers", 3, hosts=hosts), head=head))
    world.settle(seconds=60)
    world.delete("nodes", "n2")
    world.create(node("n3", cpu=3 * hosts))
    world.create(foreign_pod("x", "n3", cpu=2 * hosts), foreign_pod("y", "n3", cpu=hosts))
    world.create(gang_of("filler", 0))
    world.settle(seconds=10)
    world.api.remove(Key("pods", "others", "x"))
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 1, "n3": 2 * hosts}
    world.api.remove(Key("pods", "others", "y"))
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 1, "n3": 3 * hosts}
    assert (said(world), world.bound("filler")) == (("Running", "Running"), {})
