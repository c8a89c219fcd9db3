"""Held gangs whose pods claim devices: they are decided by templates, before there is a claim."""

from typing import Any

import pytest

from coordinator.messages.actions import ResumeRayCluster, SuspendRayCluster
from tests.coordinator.builders import TEAM, Json, group, node, ray_cluster
from tests.coordinator.device_world import (
    asking,
    claim_template,
    device_class,
    device_slice,
    make_claim,
)
from tests.coordinator.held import had_pods, held, is_suspended
from tests.coordinator.journeys.held_start.worlds import phase_of, sent
from tests.coordinator.journeys.test_together import together
from tests.coordinator.world import World
from tests.kube.devices.objects import GPU

OF_CLASS = f"{GPU}.deviceclass.resource.k8s.io/devices"


def claiming(name: str, workers: int, template: str = "one") -> Json:
    return held(ray_cluster(name, group("w", workers, **asking(template))))


def offering(devices: int = 4, **more: Any) -> World:
    found = [node("n1", cpu=64), device_slice("n1", devices), device_class()]
    return World(*found, claim_template("one"), **more)


def quota(hard_limit: int, resource: str = OF_CLASS) -> Json:
    hard = {resource: str(hard_limit)}
    meta = {"name": "few", "namespace": TEAM}
    status = {"hard": hard, "used": {resource: "0"}}
    return {"kind": "ResourceQuota", "metadata": meta, "spec": {"hard": hard}, "status": status}


def test_it_waits_in_numbers_without_pods_and_runs_once_devices_are_free() -> None:
    world = offering()
    world.create(claiming("a", 3))
    world.settle(seconds=10)
    assert world.bound("a") == {"n1": 4}
    world.create(claiming("b", 2))
    world.settle(seconds=10)
    said = world.status("b")
    assert (said["phase"], said["reason"]) == ("Queued", "InsufficientResources")
    assert GPU in said["message"]
    assert not had_pods(world.api, "b")
    world.delete("rayclusters", "a")
    world.settle(seconds=30)
    assert world.bound("b") == {"n1": 3}


def test_of_two_that_fit_alone_one_is_resumed() -> None:
    world = offering()
    world.scheduler = world.claims = False
    world.create(claiming("a", 3), claiming("b", 3))
    world.settle(seconds=5)
    assert sorted(is_suspended(world.api, name) for name in "ab") == [False, True]


def test_the_devices_of_pods_without_claims_are_promised_for_this_leader_and_the_next() -> None:
    world = offering(replicas=2)
    world.claims = False
    world.create(claiming("a", 3))
    world.settle(seconds=5)
    assert (phase_of(world), world.gated("a")) == ("Resumed", 4)
    world.elect(1)
    world.replicas.reverse()
    world.create(claiming("b", 2), ray_cluster("c", group("w", 1)))
    world.settle(seconds=5)
    assert is_suspended(world.api, "b")
    assert world.bound("c")


def test_no_pod_is_released_before_all_claims_are_made_and_its_message_names_one() -> None:
    world = offering()
    world.claims = False
    world.create(claiming("a", 3))
    world.settle(seconds=5)
    assert (world.gated("a"), world.bound("a")) == (4, {})
    message = world.status("a")["message"]
    assert "the RayCluster was resumed, and 4 of 4 pods exist" in message
    assert "its ResourceClaim is not made yet from ResourceClaimTemplate one" in message
    world.claims = True
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 4}
    assert sent(world, SuspendRayCluster) == 0


def test_one_whose_claims_are_never_made_gives_its_room_back() -> None:
    world = offering()
    world.claims = False
    world.create(claiming("a", 3))
    world.settle(seconds=200)
    assert sent(world, SuspendRayCluster)
    assert "their claims were not made within" in world.status("a")["message"]
    world.claims = True
    world.settle(seconds=600)
    assert world.bound("a") == {"n1": 4}


def test_it_is_not_resumed_before_a_quota_has_room_for_all_its_claims() -> None:
    world = offering()
    world.create(quota(2))
    world.create(claiming("a", 3))
    world.settle(seconds=10)
    assert not had_pods(world.api, "a")
    said = world.status("a")
    assert (said["reason"], sent(world, ResumeRayCluster)) == ("PodsRefused", 0)
    assert f"ResourceQuota few: the gang needs 3 of {OF_CLASS}; 2 of 2 are left" in said["message"]
    more = quota(3)
    world.api.change(more, lambda obj: obj.update(spec=more["spec"], status=more["status"]))
    world.settle(seconds=10)
    assert world.bound("a") == {"n1": 4}


def test_two_are_not_promised_the_same_quota() -> None:
    world = offering(8)
    world.claims = False
    world.create(quota(4))
    world.create(claiming("a", 3), claiming("b", 3))
    world.settle(seconds=10)
    assert sorted(is_suspended(world.api, name) for name in "ab") == [False, True]


def test_it_waits_for_a_template_and_starts_once_there_is_one() -> None:
    world = offering()
    world.create(claiming("a", 3, "two"))
    world.settle(seconds=10)
    said = world.status("a")
    assert (said["reason"], had_pods(world.api, "a")) == ("GangIncomplete", False)
    assert "ResourceClaimTemplate two does not exist" in said["message"]
    world.create(claim_template("two", 1))
    world.settle(seconds=10)
    assert world.bound("a") == {"n1": 4}


def test_a_new_leader_releases_nothing_either_before_all_claims_are_made() -> None:
    world = offering(8, replicas=2)
    world.claims = False
    world.create(claiming("a", 3))
    world.settle(seconds=5)
    old, new = world.replicas
    old.resign()
    world.elect(1)
    world.replicas.reverse()
    world.settle(seconds=200)
    assert not [*old.releases(), *new.releases()]


def test_one_whose_template_became_another_is_judged_by_its_claims_before_any_pod_starts() -> None:
    world = offering()
    world.claims = False
    world.create(claiming("a", 3))
    world.settle(seconds=5)
    world.delete("resourceclaimtemplates", "one")
    world.create(claim_template("one", 2))
    world.claims = True
    world.settle(seconds=20)
    assert world.bound("a") == {}
    assert GPU in world.status("a")["message"]


def test_of_gangs_together_none_starts_before_the_claims_of_all_are_made() -> None:
    world = offering(8)
    world.create(claim_template("two"))
    world.claims = False
    for name, template in (("a", "one"), ("b", "two")):
        member = ray_cluster(name, group("w", 2, **asking(template)), annotations=together())
        world.create(held(member))
    world.settle(seconds=5)
    for pod in [each for each in world.api.all("pods") if each["metadata"]["name"] < "b"]:
        for asked in pod["spec"].get("resourceClaims", ()):
            make_claim(world.api, pod, asked)
    world.settle(seconds=10)
    assert (world.bound("a"), world.bound("b")) == ({}, {})
    world.claims = True
    world.settle(seconds=10)
    assert world.bound("a") == world.bound("b") == {"n1": 3}


@pytest.mark.parametrize("elects", [False, True])
def test_quota_is_kept_for_claims_that_are_not_made_yet_of_pods_that_exist(elects: bool) -> None:
    world = offering(8, replicas=2)
    world.claims = False
    world.create(quota(4))
    world.create(claiming("a", 3))
    world.settle(seconds=5)
    if elects:
        world.elect(1)
        world.replicas.reverse()
    world.create(claiming("b", 3))
    world.settle(seconds=5)
    assert is_suspended(world.api, "b")


def test_what_a_quota_counts_of_pods_is_not_kept_for_them_as_well() -> None:
    world = offering(8)
    world.claims = False
    of_pods = quota(8, "pods")
    world.create(of_pods)
    world.create(claiming("a", 3))
    world.settle(seconds=5)
    world.api.change(of_pods, lambda obj: obj["status"].update(used={"pods": "4"}))
    world.settle(seconds=2)
    world.create(claiming("b", 3))
    world.settle(seconds=5)
    assert not is_suspended(world.api, "b")
