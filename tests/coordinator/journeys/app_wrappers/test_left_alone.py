"""AppWrappers of others, those that cannot be created, and pods that belong to none."""

import pytest

from coordinator.cluster import foreseen_gangs
from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.app_wrappers import (
    app_wrapper,
    bare_pod,
    config_map,
    gated,
    had_objects,
    job,
    nodes_of,
    pods_of,
    wrapper_of,
)
from tests.coordinator.builders import (
    TEAM,
    Json,
    gang_of,
    node,
)
from tests.coordinator.journeys.app_wrappers.worlds import gang_status, running, suspend
from tests.coordinator.journeys.held_start.worlds import quota
from tests.coordinator.stopping import condition
from tests.coordinator.world import World, is_gated, key


def test_one_that_another_controller_manages_is_left_alone() -> None:
    world = World(node("n1"))
    world.create(app_wrapper("a", job("work", 1), managedBy="kueue.x-k8s.io/multikueue"))
    world.settle(seconds=30)
    assert not list(world.api.all("gangs"))
    assert not had_objects(world.api, "a")


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (job("work", -1), "components[1] (Job work): template.spec.parallelism"),
        (job("work", 1, cpu="much"), "pod set[work].template: spec.containers[ray]"),
        ({"kind": "Job"}, "components[1] (Job): template.apiVersion"),
    ],
)
def test_what_cannot_be_created_is_said_with_its_item_and_field(broken: Json, said: str) -> None:
    world = World(node("n1"))
    world.create(app_wrapper("a", config_map("settings"), broken))
    world.settle(seconds=30)
    assert not had_objects(world.api, "a")
    status = gang_status(world)
    assert status["reason"] == "PodsRefused"
    assert said in status["message"]


def test_one_that_no_webhook_reviewed_reserves_nothing() -> None:
    world = World(node("n1"))
    wrapper = app_wrapper("a", job("work", 1))
    wrapper["metadata"]["annotations"].clear()
    world.create(wrapper)
    world.settle(seconds=30)
    status = gang_status(world)
    assert (status["reason"], "placement" in status) == ("PodsRefused", False)
    assert names.CREATED_BY in status["message"]


def test_a_quota_of_the_namespace_is_judged_for_all_pods_together() -> None:
    world = World(node("n1"), quota(3))
    world.create(app_wrapper("a", job("one", 2), job("two", 2)))
    world.settle(seconds=30)
    assert not had_objects(world.api, "a")
    assert "needs 4 of pods; 3 of 3 are left" in gang_status(world)["message"]


# ---- labels that others write


def forged(world: World, name: str, uid: str) -> Json:
    pod = bare_pod(name, cpu=1)
    labels = {names.APP_WRAPPER: "a", names.APP_WRAPPER_UID: uid, names.POD_SET: "x"}
    owner = {"kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}
    pod["metadata"] |= {"namespace": TEAM, "labels": labels, "annotations": {}}
    pod["metadata"]["ownerReferences"] = [owner] if not uid else []
    return gated(world.api, {**pod, "status": {"phase": "Pending"}})


def test_a_pod_with_forged_labels_is_surplus_and_never_released() -> None:
    world = running(app_wrapper("a", job("work", 4)))
    world.create(node("n2", cpu=4))
    uid = wrapper_of(world.api, "a")["metadata"]["uid"]
    world.create(forged(world, "forged", uid))
    world.settle(seconds=60)
    assert is_gated(world.api.get(Key("pods", TEAM, "forged")))
    released = {each for each, _ in world.leader.releases()}
    assert "forged" not in released
    assert gang_status(world)["phase"] == "Running"


def test_a_pod_beyond_its_pod_set_is_told_so() -> None:
    world = running(app_wrapper("a", job("work", 4)))
    pods = pods_of(world.api, "a")
    uid = wrapper_of(world.api, "a")["metadata"]["uid"]
    pod = forged(world, "more", uid)
    pod["metadata"]["labels"][names.POD_SET] = pods[0]["metadata"]["labels"][names.POD_SET]
    world.create(pod, node("n2"))
    world.settle(seconds=60)
    assert is_gated(world.api.get(Key("pods", TEAM, "more")))
    told = condition(world, "appwrapper.a", "SurplusPlaced")
    assert told["reason"] == "ExcessPods"
    assert "the AppWrapper asks for 4 pods of the pod set; Muster" in told["message"]


def test_a_pod_of_an_earlier_app_wrapper_is_no_member() -> None:
    world = running(app_wrapper("a", job("work", 4)))
    pod = forged(world, "old", "uid-0")
    assert not is_gated(pod)
    world.create(pod)
    world.settle(seconds=10)
    uid = wrapper_of(world.api, "a")["metadata"]["uid"]
    members = world.leader.state.known.cache.members(key("appwrapper.a"), uid)
    assert len(members) == 4


def test_a_ray_cluster_in_the_form_of_such_a_name_does_not_take_its_place() -> None:
    world = running(app_wrapper("a", job("work", 4)))
    world.create(gang_of("appwrapper.a", 1))
    world.leader.hear_all()
    world.delete("rayclusters", "appwrapper.a")
    world.settle(seconds=30)
    assert nodes_of(world.api, "a") == ["n1"] * 4
    assert gang_status(world)["phase"] == "Running"


def test_those_that_a_person_suspended_take_no_part_of_what_may_be_foreseen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(foreseen_gangs, "MOST_PODS", 4)
    world = World(node("n1", cpu=4))
    world.create(app_wrapper("stopped", job("idle", 4), suspend=True))
    world.settle(seconds=10)
    assert gang_status(world, "stopped")["reason"] == "Suspended"
    world.create(app_wrapper("a", job("work", 4)))
    world.settle(seconds=30)
    assert len(nodes_of(world.api, "a")) == 4
    world.delete("appwrappers", "a")
    world.settle(seconds=30)
    suspend(world, False, "stopped")
    world.settle(seconds=30)
    assert len(nodes_of(world.api, "stopped")) == 4
