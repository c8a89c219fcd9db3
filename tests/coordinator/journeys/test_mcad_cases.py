"""MCAD's own end-to-end cases that are about room, in its numbers (docs/mcad-cases.md has all).

Two nodes, as in its test cluster, with 975m of CPU free on each. Jobs stand in for its Deployments.
"""

from typing import Any

import pytest

from coordinator.messages.actions import ReleasePod
from tests.coordinator.app_wrappers import app_wrapper, had_objects, job, nodes_of, phase
from tests.coordinator.builders import Json, foreign_pod, node
from tests.coordinator.world import World

NODES = ("n1", "n2")


def two_nodes(*wrappers: Json) -> World:
    world = World(*(node(name, cpu=1) for name in NODES))
    world.create(*(foreign_pod(f"system-{name}", name, cpu="25m") for name in NODES))
    for each in wrappers:
        world.create(each)
        world.settle(seconds=30)
    return world


def mcad(name: str, pods: int, cpu: str, declared: str = "", **spec: object) -> Json:
    """An AppWrapper of MCAD's generation with one Job; what its user declares of the pods."""
    wrapper = app_wrapper(name)
    item: Json = {"generictemplate": job(f"work-{name}", pods, cpu=cpu)}
    if declared:
        amounts = {"cpu": declared}
        item["custompodresources"] = [{"replicas": pods, "requests": amounts, "limits": amounts}]
    return {**wrapper, "spec": {"resources": {"GenericItems": [item]}, **spec}}


def first() -> Json:
    """What most of the cases begin with: one pod on each node, and 425m left beside it."""
    return mcad("first", 2, "550m")


def said(world: World, name: str) -> dict[str, Any]:
    return world.status(f"appwrapper.{name}")


def runs(world: World, name: str) -> bool:
    return (phase(world.api, name), said(world, name)["phase"]) == ("Running", "Running")


def test_what_the_first_leaves_is_given_to_the_second() -> None:
    world = two_nodes(first(), mcad("second", 2, "350m"))
    assert nodes_of(world.api, "first") == nodes_of(world.api, "second") == [*NODES]


def test_a_smaller_one_passes_a_larger_one_of_which_nothing_exists() -> None:
    """MCAD's comments expect this of its preemption, and grant it two minutes."""
    world = two_nodes(first(), mcad("large", 2, "426m"), mcad("small", 2, "425m"))
    assert nodes_of(world.api, "small") == [*NODES]
    assert not had_objects(world.api, "large")
    assert said(world, "large")["reason"] == "InsufficientResources"


def test_a_pod_that_fits_only_the_sum_of_two_nodes_is_never_created() -> None:
    """MCAD creates it, and needs up to 12 minutes until it has deleted it for the next."""
    world = two_nodes(first(), mcad("scattered", 1, "850m"))
    message = said(world, "scattered")["message"]
    assert "it needs 850m cpu on one node; 850m are free, at most 425m on one node" in message
    world.create(mcad("next", 2, "340m"))
    world.settle(seconds=30)
    assert nodes_of(world.api, "next") == [*NODES]
    assert not had_objects(world.api, "scattered")

    world.delete("appwrappers", "next")
    world.delete("appwrappers", "first")
    world.settle(seconds=30)
    assert runs(world, "scattered")


@pytest.mark.parametrize(
    ("declared", "real", "fits"),
    [("550m", "550m", True), ("425m", "426m", False), ("4270m", "425m", False)],
)
def test_of_a_size_that_is_declared_and_one_that_is_read_the_larger_counts(
    declared: str, real: str, fits: bool
) -> None:
    """MCAD goes by what is declared: the second would be created, and never be ready."""
    before = () if fits else (first(),)
    world = two_nodes(*before, mcad("lies", 2, real, declared))
    assert had_objects(world.api, "lies") == fits == (nodes_of(world.api, "lies") == [*NODES])


@pytest.mark.parametrize(("cpu", "gpu"), [("100", 0), ("100", 100)])
def test_what_is_larger_than_the_cluster_waits_without_pods(cpu: str, gpu: int) -> None:
    world = two_nodes(app_wrapper("vast", job("vast", 1, cpu=cpu, gpu=gpu)))
    assert not had_objects(world.api, "vast")
    assert (said(world, "vast")["phase"], said(world, "vast")["reason"]) == ("Queued", "NeverFits")


@pytest.mark.long
def test_fifty_of_two_pods_run_at_once() -> None:
    """MCAD is given four minutes for them."""
    world = two_nodes()
    world.create(*(mcad(f"aw-{n}", 2, "5m") for n in range(50)))
    world.settle(seconds=60)
    assert all(runs(world, f"aw-{n}") for n in range(50))
    assert sum(isinstance(each, ReleasePod) for each in world.leader.log) == 100
