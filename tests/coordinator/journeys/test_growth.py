"""A gang that runs grows: by replica as they fit, or all at once; a start is whole again."""

import copy

import pytest

from coordinator.messages.clock import Patience
from kube.objects import names
from tests.coordinator.api import Json, Key
from tests.coordinator.builders import TEAM, gang_of, group, node, ray_cluster
from tests.coordinator.world import World

PATIENCE = Patience()
WHOLE = {names.GROWTH: names.GROWTH_WHOLE}


def surplus_condition(world: World, name: str) -> Json:
    conditions: list[Json] = world.status(name)["conditions"]
    (found,) = (each for each in conditions if each["type"] == "SurplusPlaced")
    return found


def running(*nodes: Json, annotations: dict[str, str] | None = None) -> World:
    """A head and two workers that run."""
    world = World(*nodes)
    world.create(gang_of("a", 2, annotations=annotations or {}))
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 3}
    return world


def test_what_a_person_adds_is_placed_as_it_fits_and_the_gang_says_how_many_wait() -> None:
    world = running(node("n1", cpu=8))
    world.scale("a", 9)
    world.settle(seconds=3 * PATIENCE.torn)
    assert world.bound("a") == {"n1": 8}
    status = world.status("a")
    assert (status["phase"], status["reason"], status["ready"]) == ("Running", "Running", "8/10")
    assert "2 of 10 pods wait: 0 of 2 workers fit" in status["message"]
    assert surplus_condition(world, "a")["reason"] == "InsufficientResources"

    world.create(node("n2", cpu=2))
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 8, "n2": 2}
    assert surplus_condition(world, "a")["status"] == "True"


def test_all_of_it_or_nothing_where_the_ray_cluster_says_so() -> None:
    world = running(node("n1", cpu=8), annotations=WHOLE)
    world.scale("a", 9)
    world.settle(seconds=3 * PATIENCE.torn)
    assert world.bound("a") == {"n1": 3}
    assert "7 of 10 pods wait: 5 of 7 workers fit" in world.status("a")["message"]
    world.create(node("n2", cpu=2))
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 8, "n2": 2}


def test_a_whole_growth_waits_until_all_of_its_pods_exist() -> None:
    world = running(node("n1", cpu=8), annotations=WHOLE)
    world.scale("a", 5)
    made = world.kuberay
    world.kuberay = lambda: None  # type: ignore[method-assign]
    made()
    late = world.pods("a")[-1]
    world.api.remove(Key("pods", TEAM, late["metadata"]["name"]))
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 3}
    said = "all pods that are added start at once, and 2 of 3 exist"
    assert said in world.status("a")["message"]
    world.kuberay = made  # type: ignore[method-assign]
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 6}


def test_a_new_group_of_a_gang_that_runs_is_placed_beside_it() -> None:
    world = running(node("n1", cpu=4))
    groups = copy.deepcopy(world.api.get(Key("rayclusters", TEAM, "a"))["spec"]["workerGroupSpecs"])
    world.edit("a", workerGroupSpecs=[*groups, group("more", 2)])
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 4}
    assert world.status("a")["reason"] == "Running"


@pytest.mark.parametrize("hosts", [1, 2])
def test_a_group_that_began_with_nothing_grows_whenever_the_autoscaler_asks(hosts: int) -> None:
    """KAI's gang has no such group until it is made anew."""
    world = World(node("n1", cpu=8))
    cpus = group("cpus", 1, least=1, most=9)
    none = group("gpus", 0, least=0, most=9, hosts=hosts)
    world.create(ray_cluster("a", cpus, none, enableInTreeAutoscaling=True))
    for replicas in (0, 2, 0, 1):
        world.edit("a", workerGroupSpecs=[cpus, {**none, "replicas": replicas}])
        world.settle(seconds=5)
        assert world.bound("a").total() == 2 + replicas * hosts
        counts = {each["name"]: each["count"] for each in world.gang("a")["spec"]["podSets"]}
        assert counts["gpus"] == replicas * hosts
    assert world.status("a")["reason"] == "Running"


def test_a_minimum_that_is_raised_counts_from_the_next_start() -> None:
    world = World(node("n1", cpu=4))
    least = {names.MIN_REPLICAS: "workers=1"}
    world.create(ray_cluster("a", group("workers", 3), annotations=least))
    world.settle(seconds=5)
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    raised = {names.MIN_REPLICAS: "workers=5"}
    world.scale("a", 5)
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    world.api.change(cluster, lambda obj: obj["metadata"]["annotations"].update(raised))
    world.settle(seconds=5)
    assert (world.bound("a"), world.status("a")["reason"]) == ({"n1": 4}, "Running")

    world.edit("a", suspend=True)
    world.settle(seconds=5)
    world.edit("a", suspend=False)
    world.settle(seconds=5)
    assert (world.bound("a"), world.status("a")["reason"]) == ({}, "NeverFits")


def test_a_gang_that_is_resumed_before_its_pods_are_gone_starts_whole() -> None:
    """Its Gang says a minimum of none then, which is no minimum to go on with."""
    world = running(node("n1", cpu=3))
    made = world.kuberay
    world.kuberay = lambda: None  # type: ignore[method-assign]
    world.edit("a", suspend=True)
    world.settle(seconds=5)
    world.edit("a", suspend=False)
    world.settle(seconds=5)
    world.kuberay = made  # type: ignore[method-assign]
    for pod in world.pods("a")[1:]:
        world.api.remove(Key("pods", TEAM, pod["metadata"]["name"]))
    minimums = [each["minimum"] for each in world.gang("a")["spec"]["podSets"]]
    assert minimums == [1, 2]


def test_a_group_that_is_resumed_comes_back_beside_what_runs() -> None:
    world = running(node("n1", cpu=4))
    groups = world.api.get(Key("rayclusters", TEAM, "a"))["spec"]["workerGroupSpecs"]
    world.edit("a", workerGroupSpecs=[{**groups[0], "suspend": True}])
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 1}
    world.edit("a", workerGroupSpecs=[{**groups[0], "suspend": False, "replicas": 5}])
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 4}


def test_the_next_leader_keeps_the_minimum_that_the_gang_started_with() -> None:
    world = running(node("n1", cpu=4))
    world.scale("a", 5)
    world.settle(seconds=5)
    world.leader.restart()
    world.elect(0)
    world.settle(seconds=5)
    assert (world.bound("a"), world.status("a")["reason"]) == ({"n1": 4}, "Running")


def test_a_growth_of_another_word_is_named() -> None:
    world = World(node("n1", cpu=8))
    world.create(gang_of("a", 2, annotations={names.GROWTH: "fast"}))
    world.settle(seconds=5)
    said = 'muster.dev/growth: "fast" is not valid; allowed: "by-replica" or "whole"'
    assert said in world.status("a")["message"]


def test_what_is_added_while_pods_start_does_not_stop_them() -> None:
    """They are bound and pull their images; whole, the gang would wait for room in vain."""
    world = World(node("n1", cpu=4))
    world.kubelets = lambda: None  # type: ignore[method-assign]
    world.create(gang_of("a", 2))
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 3}
    world.scale("a", 9)
    world.settle(seconds=2 * PATIENCE.torn)
    assert world.bound("a") == {"n1": 4}
    assert world.gated("a") == 6
    world.leader.restart()
    world.elect(0)
    world.settle(seconds=2 * PATIENCE.torn)
    assert world.bound("a") == {"n1": 4}


def test_a_gang_of_which_nothing_is_left_starts_whole_as_it_is_now() -> None:
    """KubeRay makes all pods anew for a new spec (upgradeStrategy Recreate): that is a start."""
    world = running(node("n1", cpu=3))
    world.edit("a", workerGroupSpecs=[group("others", 4)])
    for pod in world.pods("a"):
        world.delete("pods", pod["metadata"]["name"])
    world.settle(seconds=5)
    assert (world.bound("a"), world.status("a")["reason"]) == ({}, "NeverFits")
    world.create(node("n2", cpu=2))
    world.settle(seconds=5)
    assert world.bound("a").total() == 5
