"""Held gangs that users suspend, resume, edit, opt out or delete."""

import msgspec
import pytest

from kube.objects import names
from tests.coordinator.builders import (
    gang_of,
    node,
)
from tests.coordinator.deeds import opt
from tests.coordinator.held import cluster_of, held_gang, is_suspended
from tests.coordinator.journeys.held_start.worlds import crowded, phase_of, set_suspend
from tests.coordinator.world import World


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_person_who_resumes_it_has_its_pods_gated_and_decided_as_ever(replicas: int) -> None:
    world = crowded(held_gang("a", 3), replicas=replicas)
    set_suspend(world, False)
    world.settle(seconds=30)
    assert (world.gated("a"), phase_of(world)) == (4, "")
    if replicas > 1:
        world.elect(1)
        world.settle(seconds=30)
    assert world.gated("a") == 4
    world.delete("rayclusters", "b")
    world.settle(seconds=30)
    assert world.bound("a") == {"n1": 4}


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_person_who_suspends_it_while_it_runs_keeps_it_suspended(replicas: int) -> None:
    world = World(node("n1", cpu=4), replicas=replicas)
    world.create(held_gang("a", 3))
    world.settle(seconds=30)
    set_suspend(world, True)
    world.settle(seconds=30)
    if replicas > 1:
        world.elect(1)
        world.settle(seconds=30)
    assert is_suspended(world.api, "a")
    assert (world.status("a")["reason"], phase_of(world)) == ("Suspended", "")
    set_suspend(world, False)
    world.settle(seconds=30)
    assert world.bound("a") == {"n1": 4}


def test_a_persons_own_suspension_is_left_alone() -> None:
    world = World(node("n1", cpu=4))
    cluster = gang_of("a", 3, annotations={names.CREATE_PODS: names.CREATE_WHEN_ADMITTED})
    cluster["spec"]["suspend"] = True
    world.create(cluster)
    world.settle(seconds=60)
    assert is_suspended(world.api, "a")
    assert world.status("a")["reason"] == "Suspended"


@pytest.mark.parametrize("replicas", [1, 2])
def test_an_opt_out_resumes_it_and_leaves_nothing(replicas: int) -> None:
    world = crowded(held_gang("a", 3), replicas=replicas)
    opt(world, "false")
    if replicas > 1:
        world.elect(1)
    world.settle(seconds=30)
    assert not is_suspended(world.api, "a")
    assert len(world.pods("a")) == 4
    assert world.gated("a") == 0
    assert not [each for each in world.api.all("gangs") if each["metadata"]["name"] == "a"]


def test_an_opt_out_before_the_first_look_resumes_it_too() -> None:
    world = World(node("n1", cpu=4))
    world.create(held_gang("a", 3, labels={names.OPT_IN: "false"}))
    world.settle(seconds=30)
    assert not is_suspended(world.api, "a")
    assert world.bound("a") == {"n1": 4}


def test_when_it_is_deleted_its_gang_goes_and_nothing_is_kept() -> None:
    world = crowded(held_gang("a", 3))
    world.delete("rayclusters", "a")
    world.settle(seconds=30)
    assert [each["metadata"]["name"] for each in world.api.all("gangs")] == ["b"]


def test_an_edited_template_is_decided_anew() -> None:
    world = crowded(held_gang("a", 3))
    groups = msgspec.to_builtins(cluster_of(world.api, "a")["spec"]["workerGroupSpecs"])
    groups[0]["replicas"] = 0
    world.edit("a", workerGroupSpecs=groups)
    world.scale("b", 2)
    world.settle(seconds=30)
    assert world.bound("a") == {"n1": 1}


def test_create_pods_always_resumes_it_at_once() -> None:
    world = crowded(held_gang("a", 3))
    cluster = cluster_of(world.api, "a")
    world.api.change(
        cluster, lambda obj: obj["metadata"]["annotations"].update({names.CREATE_PODS: "always"})
    )
    world.settle(seconds=30)
    assert (world.gated("a"), phase_of(world)) == (4, "")
