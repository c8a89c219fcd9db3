"""Gangs ask for no more nodes than their quota lets run."""

import pytest

from kube.api.errors import Forbidden
from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.builders import GPU, OPTED_IN, TEAM, Json, group, node, ray_cluster
from tests.coordinator.journeys.node_requests.worlds import (
    IN_QUEUE,
    asking,
    elastic,
    gpu_gang,
    message,
    requests,
    say,
    waiting,
)
from tests.coordinator.journeys.queues.worlds import queue
from tests.coordinator.world import World, name_of


def test_gangs_ask_for_no_more_nodes_together_than_their_quota_lets_run() -> None:
    """Each fits its queue, which lets one of them run at a time."""
    world = waiting(quota={GPU: "2"})
    world.create(*(gpu_gang(name, 2) for name in "bcde"))
    world.settle(seconds=60)
    [request] = requests(world)
    assert request["metadata"]["ownerReferences"][0]["name"] == "a"
    assert "what others have asked for fills the quota of elastic" in message(world, "b")

    world.delete("rayclusters", "a")
    world.settle(seconds=15)
    [request] = requests(world)
    assert request["metadata"]["ownerReferences"][0]["name"] == "b"


def test_a_gang_that_got_no_nodes_leaves_its_quota_to_others_while_it_pauses() -> None:
    world = waiting(quota={GPU: "2"})
    world.settle(seconds=10)
    say(world, "Failed")
    world.create(gpu_gang("b", 2))
    world.settle(seconds=20)
    asked = {each["metadata"]["ownerReferences"][0]["name"]: each for each in requests(world)}
    assert asked.keys() == {"a", "b"}
    world.settle(seconds=600)
    assert "what others have asked for fills the quota of elastic" in message(world)
    world.delete("rayclusters", "b")
    world.settle(seconds=30)
    [request] = requests(world)
    assert request["metadata"]["annotations"][names.NODES_ATTEMPT] == "2"


def test_a_new_leader_knows_what_was_asked_for() -> None:
    world = World(
        *(node("n", cpu=8), node("full", cpu=0, gpu=1), elastic(quota={GPU: "4"})),
        *(gpu_gang(name, 2) for name in "ba"),
        replicas=2,
    )
    world.settle(seconds=20)
    assert len(requests(world)) == 2
    world.create(*(gpu_gang(name, 2) for name in "cde"))
    world.leader.resign()
    world.elect(1)
    world.settle(seconds=60)
    assert len(requests(world)) == 2


def test_quota_bounds_nothing_of_queues_without_a_limit() -> None:
    world = waiting()
    world.create(*(gpu_gang(name, 2) for name in "bc"))
    world.settle(seconds=20)
    assert len(requests(world)) == 3


def owners(world: World) -> list[str]:
    """The gangs for which nodes are asked for."""
    return sorted(each["metadata"]["ownerReferences"][0]["name"] for each in requests(world))


def test_a_line_of_gangs_holds_up_none_of_another_queue_that_has_quota_of_its_own() -> None:
    mine = {"parent": "root", "quota": {GPU: "2"}, "borrowingLimit": {GPU: "0"}}
    queues = queue("root"), asking("elastic", **mine), asking("other", **mine)
    world = World(node("n", cpu=8), *queues, *(gpu_gang(name, 2) for name in "abc"))
    world.settle(seconds=30)
    assert owners(world) == ["a"]
    there = {**OPTED_IN, names.QUEUE: "other"}
    world.create(ray_cluster("d", group("workers", 2, gpu=1), labels=there))
    world.settle(seconds=30)
    assert owners(world) == ["a", "d"]


def test_a_gang_waits_for_no_quota_of_what_it_does_not_need() -> None:
    world = waiting(quota={GPU: "2", "cpu": "100"})
    world.create(gpu_gang("b", 2))
    world.settle(seconds=30)
    world.create(ray_cluster("c", group("workers", 1, cpu=20), labels=IN_QUEUE))
    world.settle(seconds=30)
    assert owners(world) == ["a", "c"]


@pytest.mark.parametrize(("blocked", "asks"), [("Strict", ["a"]), ("BestEffort", ["a", "c"])])
def test_a_gang_too_large_for_what_is_left_stops_those_behind_it_in_strict_queues(
    blocked: str, asks: list[str]
) -> None:
    world = waiting(quota={GPU: "5"}, whenBlocked=blocked)
    world.settle(seconds=10)
    world.create(gpu_gang("b", 4))
    world.settle(seconds=10)
    world.create(gpu_gang("c", 1))
    world.settle(seconds=30)
    assert owners(world) == asks


def test_a_gang_whose_request_cannot_be_written_leaves_its_quota_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = waiting(quota={GPU: "2"})
    create = world.api.create

    def within_its_namespace(obj: Json) -> Json:
        if obj["kind"] == "ProvisioningRequest" and name_of(obj).startswith("a-"):
            raise Forbidden(403, "Forbidden", "exceeded quota: requests")
        return create(obj)

    monkeypatch.setattr(world.api, "create", within_its_namespace)
    world.create(gpu_gang("b", 2))
    world.settle(seconds=120)
    assert owners(world) == ["b"]


def test_a_gang_that_lost_its_pods_holds_no_place_before_others() -> None:
    """KubeRay makes no others: it asks for nothing until then."""
    world = waiting(quota={GPU: "2"})
    world.settle(seconds=10)
    world.create(gpu_gang("b", 2))
    world.settle(seconds=10)
    world.create(gpu_gang("c", 2))
    world.settle(seconds=20)
    assert owners(world) == ["a"]
    with world.kuberay_refuses({"type": "ReplicaFailure", "status": "True", "message": "no"}):
        for pod in world.pods("b"):
            world.api.remove(Key("pods", TEAM, name_of(pod)))
        world.delete("rayclusters", "a")
        world.settle(seconds=30)
        assert owners(world) == ["c"]
