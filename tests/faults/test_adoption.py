"""A Ray cluster that is opted in while only a part of it runs ends whole."""

from __future__ import annotations

import pytest

from tests.controlplane.plot import Plot, is_held, pin
from tests.controlplane.rayclusters import GANG, Json, group, ray_cluster
from tests.faults.crew import Crew

IMPATIENT = {"BIND_PATIENCE": "0.5"}


def opt_in(plot: Plot) -> None:
    plot.patch("RayCluster", "joins", {"metadata": {"labels": GANG}})


def uids(pods: list[Json]) -> set[str]:
    return {each["metadata"]["uid"] for each in pods}


def bound(plot: Plot) -> list[Json]:
    return [each for each in plot.pods("joins") if "nodeName" in each["spec"]]


def wait_bound(plot: Plot, count: int) -> list[Json]:
    plot.wait(lambda: len(bound(plot)) == count, f"{count} pods to be bound")
    return bound(plot)


@pytest.mark.long
def test_a_ray_cluster_that_is_partly_pending_becomes_a_gang_that_waits_for_the_rest(
    plot: Plot, crew: Crew
) -> None:
    """What runs stays; what is pending comes back gated, and starts when all of it fits."""
    plot.add_node(3)
    plot.create(ray_cluster("joins", group(replicas=4)))
    plot.wait_unschedulable("joins")
    before = wait_bound(plot, 3)
    crew.start_leader(IMPATIENT)
    opt_in(plot)
    status = plot.wait_phase("joins", "Queued", "InsufficientResources", "3 pods were not released")
    assert sum(each.get("notReleased", 0) for each in status["podSets"]) == 3
    assert sum(each.get("gated", 0) for each in status["podSets"]) == 2
    assert uids(bound(plot)) == uids(before)
    assert sum(is_held(each) for each in plot.pods("joins")) == 2
    plot.add_equal_nodes(2, cpus=1)
    pods = plot.wait_running("joins", 5)
    assert uids(before) < uids(pods)
    pins = sorted(pin(each) for each in pods)
    assert pins == [[], [], [], [plot.node("n-0")], [plot.node("n-1")]]


@pytest.mark.variant
def test_a_part_that_never_ran_whole_is_given_back_and_starts_whole_later(
    plot: Plot, crew: Crew
) -> None:
    """Two halves that wait for each other's room is what gangs are for."""
    plot.add_node(3)
    plot.create(ray_cluster("joins", group(replicas=4)))
    plot.wait_unschedulable("joins")
    before = wait_bound(plot, 3)
    crew.start_leader(IMPATIENT | {"TORN_PATIENCE": "1"})
    opt_in(plot)
    plot.wait(
        lambda: not uids(plot.pods("joins")) & uids(before) and len(plot.pods("joins")) == 5,
        "all pods to be made again",
    )
    assert all(is_held(each) for each in plot.pods("joins"))
    plot.add_equal_nodes(2, cpus=1)
    plot.wait_running("joins", 5)


@pytest.mark.variant
def test_a_ray_cluster_that_ran_before_its_opt_in_runs_though_it_lost_a_worker(
    plot: Plot, crew: Crew
) -> None:
    """KubeRay says that it was provisioned: the others are not given up for the one."""
    plot.add_node(3)
    plot.create(ray_cluster("joins", group(replicas=2)))
    plot.wait_ready("joins", 3)
    plot.wait(
        lambda: plot.get("RayCluster", "joins").get("status", {}).get("state") == "ready",
        "KubeRay to have seen it run",
    )
    plot.patch_node("node", {"spec": {"unschedulable": True}})
    plot.delete("Pod", plot.pods("joins", "worker")[0]["metadata"]["name"])
    plot.wait_unschedulable("joins")
    crew.start_leader(IMPATIENT | {"TORN_PATIENCE": "1"})
    before = uids(bound(plot))
    opt_in(plot)
    plot.wait_phase("joins", "Running", "NoFeasibleNode")
    plot.patch_node("node", {"spec": {"unschedulable": None}})
    pods = plot.wait_running("joins", 3)
    assert before < uids(pods)
