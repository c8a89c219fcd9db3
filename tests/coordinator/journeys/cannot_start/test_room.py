"""Gangs that lack room hold nothing, say why, and start whole."""

import pytest

from coordinator.messages.actions import WriteGangStatus
from coordinator.record.urgency import QUIET_DELAY
from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.builders import (
    GPU,
    TEAM,
    foreign_pod,
    gang_of,
    group,
    node,
    ray_cluster,
    template,
)
from tests.coordinator.world import World, is_gated, name_of


def test_a_gang_that_does_not_fit_holds_nothing_says_why_and_starts_whole_when_room_is_freed() -> (
    None
):
    """The first scene of the demo: two Ray clusters of 5 CPUs on a node with 8."""
    world = World(node("n1"))
    world.create(gang_of("a", 4))
    world.settle(seconds=1)
    world.create(gang_of("b", 4))
    world.settle(seconds=60)

    assert (world.bound("a"), world.bound("b")) == ({"n1": 5}, {})
    assert world.gated("b") == 5
    status = world.status("b")
    assert (status["phase"], status["position"]) == ("Queued", 1)
    assert status["reason"] == "InsufficientResources"
    assert status["message"] == (
        "2 of 4 workers fit beside headgroup: each needs 1 cpu on one node, the gang 5 in all; "
        "3 are free, and those that fit leave 0. 5 of 8 cpu are held by RayCluster team/a"
    )
    [workers] = [each for each in status["podSets"] if each["name"] == "workers"]
    assert workers["message"] == "2 of 4 fit"
    amounts = {key: workers["shortage"].get(key) for key in ("each", "needed", "free", "left")}
    assert amounts == {"each": "1000m", "needed": "5000m", "free": "3000m", "left": "0m"}
    assert "placement" not in status

    world.delete("rayclusters", "a")
    world.settle(seconds=1)
    assert world.bound("b") == {"n1": 5}
    assert "position" not in world.status("b")


def test_free_but_scattered_gpus_start_nobody() -> None:
    """The second scene of the demo: 4 + 4 GPUs are free, a worker wants 8 on one node."""
    world = World(node("n1", gpu=8), node("n2", gpu=8))
    world.create(foreign_pod("x", "n1", gpu=4), foreign_pod("y", "n2", gpu=4))
    world.create(ray_cluster("a", group("gpu-workers", 1, gpu=8)))
    world.settle(seconds=1)

    assert world.bound("a") == {}
    assert world.status("a")["message"] == (
        "0 of 1 gpu-workers fits: it needs 8 nvidia.com/gpu on one node; "
        "8 are free, at most 4 on one node. 8 of 16 nvidia.com/gpu are held by Namespace others"
    )
    [workers] = [each for each in world.status("a")["podSets"] if each["name"] == "gpu-workers"]
    assert workers["shortage"] == {
        "resource": GPU,
        "each": "8",
        "needed": "8",
        "free": "8",
        "left": "8",
        "largest": "4",
        "total": "16",
        "holders": [{"kind": "Namespace", "name": "others", "amount": "8"}],
    }


def test_head_and_cpu_workers_do_not_start_without_the_least_of_gpu_workers() -> None:
    """Nine pods of eleven would fit, as many as all the minimums together ask for."""
    world = World(node("n1", cpu=32, gpu=4), node("n2", cpu=32, gpu=4))
    groups = group("cpus", 8, least=2, most=8), group("gpus", 2, least=1, most=2, gpu=8)
    world.create(ray_cluster("a", *groups, enableInTreeAutoscaling=True))
    world.settle(seconds=5)
    assert (world.bound("a"), world.gated("a")) == ({}, 11)
    world.create(node("n3", cpu=1, gpu=8))
    world.settle(seconds=5)
    assert (world.bound("a").total(), world.bound("a")["n3"]) == (10, 1)


def test_what_kuberay_adds_to_the_head_counts_too() -> None:
    """The autoscaler's container is in no template; beside it the workers do not fit."""
    world = World(node("n1", cpu=3))
    workers = group("workers", 2, least=2, most=9)
    world.create(ray_cluster("a", workers, enableInTreeAutoscaling=True))
    world.kuberay()
    (head,) = (pod for pod in world.pods("a") if "headgroup" in name_of(pod))
    added = template(cpu="500m")["spec"]["containers"][0] | {"name": "autoscaler"}
    world.api.change(head, lambda pod: pod["spec"]["containers"].append(added))
    world.settle(seconds=5)
    assert (world.bound("a"), world.gated("a")) == ({}, 3)
    world.create(node("n2", cpu=2))
    world.settle(seconds=5)
    assert world.bound("a").total() == 3


def test_nine_of_ten_pods_that_would_fit_take_nothing_from_others() -> None:
    world = World(node("n1", cpu=10), foreign_pod("x", "n1", cpu=1))
    world.create(gang_of("a", 9))
    world.settle(seconds=5)
    assert "8 of 9 workers fit beside headgroup" in world.status("a")["message"]
    world.create(gang_of("b", 8))
    world.settle(seconds=1)
    assert (world.bound("a"), world.bound("b")) == ({}, {"n1": 9})


@pytest.mark.long
def test_a_gang_that_waits_for_a_week_has_the_same_pods_and_says_why() -> None:
    """Nothing fails or recreates them, and what is said of them is there to be read."""
    world = World(node("n1", cpu=4), foreign_pod("x", "n1", cpu=2))
    world.create(gang_of("a", 3))
    world.settle(seconds=5)
    before = {pod["metadata"]["uid"] for pod in world.pods("a")}
    world.settle(seconds=7 * 86400)
    assert {pod["metadata"]["uid"] for pod in world.pods("a")} == before
    assert world.status("a")["reason"] == "InsufficientResources"
    assert {each.reason for each in world.leader.emitted} == {"InsufficientResources"}
    world.delete("pods", "x", namespace="others")
    world.api.remove(Key("pods", "others", "x"))
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 4}


def test_a_gang_that_waits_for_another_names_it_and_is_not_written_again_for_nothing() -> None:
    world = World(node("n1", cpu=4))
    world.create(gang_of("runs", 3))
    world.settle(seconds=1)
    world.create(gang_of("waits", 3))
    world.settle(seconds=60)
    status = world.status("waits")
    assert status["message"].endswith(". 4 of 4 cpu are held by RayCluster team/runs")
    [held] = status["podSets"][0]["shortage"]["holders"]
    assert held == {"kind": "RayCluster", "namespace": TEAM, "name": "runs", "amount": "4000m"}
    written = [each for each in world.leader.log if isinstance(each, WriteGangStatus)]
    world.settle(seconds=300)
    assert [each for each in world.leader.log if isinstance(each, WriteGangStatus)] == written


def test_gangs_start_by_priority_then_first_come_and_a_small_one_may_pass() -> None:
    world = World(node("n1", cpu=4), allowed={TEAM: ["high"]})
    world.create({"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000})
    world.create(gang_of("running", 3))
    world.settle(seconds=2)
    urgent = {names.PRIORITY_CLASS: "high"}
    for name, annotations in (("first", {}), ("second", {}), ("urgent", urgent)):
        world.create(gang_of(name, 2, annotations=annotations))
        world.settle(seconds=2)
    world.settle(seconds=2 * QUIET_DELAY)
    positions = {name: world.status(name)["position"] for name in ("urgent", "first", "second")}
    assert positions == {"urgent": 1, "first": 2, "second": 3}
    assert world.gang("urgent")["spec"]["priority"] == 1000

    order = []
    for gone in ("running", "urgent", "first"):
        world.delete("rayclusters", gone)
        world.settle(seconds=2)
        order.append({name_of(pod).split("-")[0] for pod in world.pods() if not is_gated(pod)})
    assert order == [{"urgent"}, {"first"}, {"second"}]
