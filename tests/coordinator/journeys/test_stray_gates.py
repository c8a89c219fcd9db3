"""A pod with our gate and no gang is told so by an Event on it: never stuck in silence."""

from collections import Counter
from typing import Any

from coordinator.record.stray_gates import PODS
from kube.objects import names
from tests.coordinator.api import Key, key_of
from tests.coordinator.builders import TEAM, foreign_pod, gang_of, node
from tests.coordinator.world import World

Json = dict[str, Any]


def gated(name: str, **labels: str) -> Json:
    """A pod that no RayCluster made, with our gate."""
    made = foreign_pod(name, "")
    metadata = {"name": name, "namespace": TEAM, "labels": labels}
    spec = {**made["spec"], "schedulingGates": [{"name": names.GATE}]}
    return {**made, "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def told(world: World) -> Counter[str]:
    """How often each pod was told of that it has our gate and no gang."""
    found = [each.regarding for each in world.leader.echoed if each.reason == "NoGang"]
    assert all(each is not None and each.kind == "Pod" for each in found)
    return Counter(each.name for each in found if each is not None)


def test_each_is_told_at_once_and_again_while_it_is_there() -> None:
    """With the labels of a Ray pod, by which another watch tells of it, and without."""
    world = World(node("n1", cpu=4))
    world.create(gated("plain"))
    world.settle(seconds=5)
    world.create(gated("forged", **{names.RAY_NODE_TYPE: "worker", names.RAY_CLUSTER: "a"}))
    world.settle(seconds=5)
    assert told(world) == {"plain": 1, "forged": 1}
    world.settle(seconds=1600)
    assert told(world) == {"plain": 2, "forged": 2}
    world.api.remove(Key("pods", TEAM, "plain"))
    world.settle(seconds=1600)
    assert told(world) == {"plain": 2, "forged": 3}


def test_each_leader_tells_it_once_more() -> None:
    world = World(node("n1", cpu=4), replicas=2)
    world.create(gated("plain"))
    world.settle(seconds=5)
    world.elect(1)
    world.settle(seconds=5)
    assert told(world) == {"plain": 1}
    world.elect(0)
    world.settle(seconds=5)
    assert told(world) == {"plain": 2}


def test_of_many_some_are_told_at_a_time() -> None:
    world = World(node("n1", cpu=4))
    for at in range(2 * PODS + 1):
        world.create(gated(f"p-{at}"))
    world.settle(seconds=50)
    assert told(world).total() == PODS
    world.settle(seconds=100)
    assert set(told(world).values()) == {1}
    assert len(told(world)) == 2 * PODS + 1


def test_pods_whose_raycluster_went_without_them_are_told() -> None:
    """As `kubectl delete --cascade=orphan` leaves them."""
    world = World(node("n1", cpu=1))
    world.create(gang_of("a", 1))
    world.settle(seconds=5)
    assert told(world) == {}
    for pod in world.pods("a"):
        world.api.change(pod, lambda obj: obj["metadata"].update(ownerReferences=[]))
    world.delete("rayclusters", "a")
    world.settle(seconds=5)
    assert len(told(world)) == 2


def test_a_pod_that_is_made_again_under_its_name_is_another_one() -> None:
    world = World(node("n1", cpu=4))
    world.create(gated("plain"))
    world.settle(seconds=5)
    world.api.remove(Key("pods", TEAM, "plain"))
    world.create(gated("plain"))
    world.settle(seconds=100)
    assert told(world) == {"plain": 2}
    assert key_of(world.api.get(Key("pods", TEAM, "plain"))) == Key("pods", TEAM, "plain")


def test_no_more_are_told_of_those_that_are_made_and_deleted_in_a_loop() -> None:
    world = World(node("n1", cpu=4))
    for at in range(2 * PODS):
        world.create(gated(f"p-{at}"))
        world.settle(seconds=1)
        world.api.remove(Key("pods", TEAM, f"p-{at}"))
        world.settle(seconds=1)
    assert told(world).total() == PODS
    world.settle(seconds=60)
    world.create(gated("last"))
    world.settle(seconds=1)
    assert told(world)["last"] == 1
