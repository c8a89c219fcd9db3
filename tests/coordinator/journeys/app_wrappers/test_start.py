"""AppWrappers: nothing exists before the whole fits, and all of it starts then."""

import pytest

from coordinator.messages.actions import DeletePod, ResumeRayCluster, SuspendRayCluster
from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.app_wrappers import (
    app_wrapper,
    bare_pod,
    config_map,
    had_objects,
    job,
    nodes_of,
    phase,
    pods_of,
    wrapper_of,
)
from tests.coordinator.builders import (
    TEAM,
    Json,
    foreign_pod,
    gang_of,
    group,
    node,
    ray_cluster,
    template,
)
from tests.coordinator.journeys.app_wrappers.worlds import gang_status, held_phase, in_queue
from tests.coordinator.journeys.queues.worlds import queue
from tests.coordinator.stopping import condition
from tests.coordinator.world import World, is_gated


def crowded(*wrappers: Json, cpu: int = 4, replicas: int = 1) -> World:
    """A world whose one node is full of gang b."""
    world = World(node("n1", cpu=cpu), replicas=replicas)
    world.create(gang_of("b", cpu - 1))
    world.settle(seconds=30)
    world.create(*wrappers)
    world.settle(seconds=30)
    return world


# ---- waiting, and starting


def test_nothing_exists_before_the_whole_fits_and_all_of_it_runs_then() -> None:
    world = crowded(app_wrapper("a", config_map("settings"), job("work", 3)))
    assert not had_objects(world.api, "a")
    status = gang_status(world)
    assert (status["phase"], status["reason"]) == ("Queued", "InsufficientResources")
    assert held_phase(world) == "Waiting"
    owner = world.gang("appwrapper.a")["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"]) == ("AppWrapper", "a")
    assert "the AppWrapper is suspended" in condition(world, "appwrapper.a", "Gathered")["message"]

    world.delete("rayclusters", "b")
    world.settle(seconds=30)
    assert nodes_of(world.api, "a") == ["n1"] * 3
    assert phase(world.api, "a") == "Running"
    assert (gang_status(world)["phase"], held_phase(world)) == ("Running", "Resumed")


def test_objects_are_created_only_after_the_placement_is_written_and_never_by_the_coordinator() -> (
    None
):
    world = World(node("n1"))
    world.create(app_wrapper("a", job("work", 3)))
    leader = world.leader
    leader.hear_all()
    leader.act()  # the Gang
    leader.cycle()
    world.wrap()
    assert not had_objects(world.api, "a")
    world.settle(seconds=30)
    assert nodes_of(world.api, "a") == ["n1"] * 3
    writes = (ResumeRayCluster, SuspendRayCluster)
    assert not [each for each in leader.log if isinstance(each, writes)]


@pytest.mark.parametrize(("cpu", "pods"), [(4, 3), (4, 1), (3, 3), (2, 1)])
def test_a_placement_is_of_the_spec_that_the_record_names(cpu: int, pods: int) -> None:
    """It may be edited between its placement and its start."""
    world = World(node("n1", cpu=4))
    world.wrapper = False
    world.create(app_wrapper("a", job("work", 2)))
    world.settle(seconds=30)
    before = gang_status(world)
    assert (before["held"]["generation"], "placement" in before) == (1, True)

    template = app_wrapper("a", job("work", pods, cpu=cpu))["spec"]
    wrapper = wrapper_of(world.api, "a")
    world.api.change(wrapper, lambda obj: obj.update(spec=template))
    world.settle(seconds=30)
    after = gang_status(world)
    assert after["held"]["generation"] == 2
    fits = cpu * pods <= 4
    assert ("placement" in after) is fits
    gangs = (each.new for each in world.api.history if (each.new or {}).get("kind") == "Gang")
    said = [gang.get("status") or {} for gang in gangs if gang]
    of_now = [each for each in said if each.get("held", {}).get("generation") == 2]
    assert of_now
    assert any("placement" in each for each in of_now) is fits
    world.wrapper = True
    world.settle(seconds=30)
    assert nodes_of(world.api, "a") == (["n1"] * pods if fits else [])
    assert had_objects(world.api, "a") is fits


def test_a_part_that_would_fit_is_not_created() -> None:
    world = World(*(node(f"n{number}", gpu=8) for number in range(10)))
    world.create(app_wrapper("a", job("work", 100, cpu="100m", gpu=1)))
    world.settle(seconds=60)
    assert not had_objects(world.api, "a")
    assert "needs 100 nvidia.com/gpu in all; the nodes" in gang_status(world)["message"]


def test_of_two_items_neither_is_created_before_both_fit() -> None:
    world = World(node("n1", cpu=4))
    world.create(app_wrapper("a", job("one", 3), bare_pod("two", cpu=2)))
    world.settle(seconds=30)
    assert not had_objects(world.api, "a")
    world.create(node("n2", cpu=2))
    world.settle(seconds=30)
    assert nodes_of(world.api, "a") == ["n1", "n1", "n1", "n2"]


def test_a_wrapped_pod_that_is_refused_on_its_node_is_not_deleted_but_all_starts_anew() -> None:
    """Nothing would create it again, and its AppWrapper would have failed."""
    world = World(node("n1", cpu=4), node("n2", cpu=4))
    world.grudges = {"n1"}
    world.create(app_wrapper("a", bare_pod("one", cpu=1), bare_pod("two", cpu=1)))
    world.settle(seconds=300)
    assert not [each for each in world.leader.log if isinstance(each, DeletePod)]
    assert (phase(world.api, "a"), nodes_of(world.api, "a")) == ("Running", ["n2", "n2"])


def test_a_wrapped_ray_cluster_is_no_gang_of_its_own() -> None:
    world = World(node("n1", cpu=4))
    team = world.api.get(Key("namespaces", "", TEAM))
    world.api.change(team, lambda obj: obj["metadata"].update(labels={names.OPT_IN: "true"}))
    cluster = ray_cluster("train", group("workers", 3), labels={})
    world.create(app_wrapper("a", cluster))
    world.settle(seconds=30)
    assert nodes_of(world.api, "a") == ["n1"] * 4
    gangs = [each["metadata"]["name"] for each in world.api.all("gangs")]
    assert gangs == ["appwrapper.a"]
    sets = [each["name"] for each in gang_status(world)["podSets"]]
    assert len(sets) == 2


def test_workers_that_rays_autoscaler_adds_are_placed_as_they_fit() -> None:
    world = World(node("n1", cpu=4))
    elastic = {"minReplicas": 1, "maxReplicas": 9}
    cluster = ray_cluster(
        "train", group("workers", 1, **elastic), labels={}, enableInTreeAutoscaling=True
    )
    world.create(app_wrapper("a", cluster))
    world.settle(seconds=60)
    assert nodes_of(world.api, "a") == ["n1"] * 2

    world.scale("train", 4)
    world.settle(seconds=60)
    assert nodes_of(world.api, "a") == ["n1"] * 4
    assert sum(is_gated(each) for each in pods_of(world.api, "a")) == 1
    assert condition(world, "appwrapper.a", "SurplusPlaced")["reason"] == "InsufficientResources"
    world.create(node("n2", cpu=1))
    world.settle(seconds=60)
    assert sorted(nodes_of(world.api, "a")) == ["n1"] * 4 + ["n2"]


def test_one_of_mcads_group_is_a_gang() -> None:
    world = crowded({**app_wrapper("a", job("work", 3)), "apiVersion": names.MCAD_V1BETA1})
    world.delete("rayclusters", "b")
    world.settle(seconds=60)
    assert nodes_of(world.api, "a") == ["n1"] * 3
    (gang,) = (each for each in world.api.all("gangs") if each["metadata"]["name"] != "b")
    assert gang["metadata"]["name"] == "appwrapper-mcad.a"
    assert gang["metadata"]["ownerReferences"][0]["apiVersion"] == names.MCAD_V1BETA1


def test_an_app_wrapper_without_pods_is_created_at_once() -> None:
    world = World(node("n1"))
    world.create(app_wrapper("a", config_map("settings")))
    world.settle(seconds=30)
    assert gang_status(world)["reason"] == "NotRequired"
    assert phase(world.api, "a") == "Running"
    assert world.api.get(Key("configmaps", TEAM, "settings"))


def test_a_gang_queue_holds_it_back() -> None:
    world = World(node("n1"), queue("team", cpu=2))
    world.create(in_queue(app_wrapper("a", job("work", 3))))
    world.settle(seconds=30)
    assert gang_status(world)["reason"] == "QuotaExceeded"
    assert not had_objects(world.api, "a")


def test_the_second_of_the_walk_through_waits_until_the_first_is_deleted() -> None:
    """One node of 8 CPU, of which others have 2050m; a RayCluster of 4000m, and another."""
    world = World(node("n1", cpu=8))
    world.create(foreign_pod("system", "n1", cpu="2050m"))
    for number, name in enumerate(("raycluster-complete", "raycluster-complete-1")):
        head, workers = template(cpu="2"), group("small-group", 2, cpu="1")
        cluster = ray_cluster(name, workers, labels={}, head=head)
        world.create(app_wrapper(name, config_map(f"settings-{number}"), cluster))
        world.settle(seconds=30)
    used = world.used()["n1"]
    assert used["cpu"] == 6050
    assert phase(world.api, "raycluster-complete") == "Running"
    status = gang_status(world, "raycluster-complete-1")
    assert (status["phase"], status["reason"]) == ("Queued", "InsufficientResources")
    assert not had_objects(world.api, "raycluster-complete-1")

    world.delete("appwrappers", "raycluster-complete")
    world.settle(seconds=30)
    assert len(nodes_of(world.api, "raycluster-complete-1")) == 3
    assert Key("configmaps", TEAM, "settings-0") not in world.api.objects
    assert Key("gangs", TEAM, "appwrapper.raycluster-complete") not in world.api.objects
