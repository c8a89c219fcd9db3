"""Room of gangs whose RayCluster, owner or namespace goes: kept until then, and no longer."""

from collections.abc import Iterator
from itertools import permutations

import pytest

from coordinator.messages.actions import EvictPod, ReleasePod, WriteGangStatus
from tests.coordinator.api import Key, key_of
from tests.coordinator.builders import TEAM, Json, gang_of, node
from tests.coordinator.held import held
from tests.coordinator.stopping import act_until, choose_whole, go_until
from tests.coordinator.world import World, is_gated, name_of
from tests.examples import every_other

NEXT = "others"
"""The namespace of the gang that waits for all of the room."""


def waiting(world: World) -> None:
    """All of its room is used by another one, which ends as soon as this one has left."""
    world.create(gang_of("first", 2, namespace=NEXT))
    world.settle(seconds=5)
    world.create(gang_of("a", 2))
    world.settle(seconds=5)
    assert world.status("a")["phase"] == "Queued"


def decided(world: World) -> None:
    """It has a placement that is not written yet."""
    begun(world)
    assert "placement" not in world.status("a")


def begun(world: World) -> None:
    world.create(gang_of("a", 2))
    go_until(world, lambda: any(isinstance(each, WriteGangStatus) for each in decides(world)))


def decides(world: World) -> Iterator[WriteGangStatus]:
    return (
        each for each in world.leader.todo if isinstance(each, WriteGangStatus) and each.decides
    )


def placed(world: World) -> None:
    begun(world)
    world.leader.act_all_but(ReleasePod)
    assert "placement" in world.status("a")
    assert world.gated("a") == 3


def releasing(world: World) -> None:
    begun(world)
    act_until(world, lambda: 0 < world.gated("a") < 3)


def released(world: World) -> None:
    begun(world)
    act_until(world, lambda: world.gated("a") == 0)
    assert not world.bound("a")


def running(world: World) -> None:
    world.create(gang_of("a", 2))
    world.settle(seconds=5)
    assert world.status("a")["phase"] == "Running"


def lost_a_worker(world: World) -> None:
    """Its slot is kept for the replacement, which does not come."""
    running(world)
    with world.kuberay_refuses({"type": "ReplicaFailure", "status": "True", "message": "no"}):
        world.api.remove(key_of(worker(world)))
        for _ in range(3):
            world.leader.hear_all()
            world.leader.act_all()
    assert "placement" in world.status("a")


def worker(world: World) -> Json:
    return next(pod for pod in world.pods("a") if "worker" in name_of(pod))


def stopping(world: World) -> None:
    """It ends for another one, its workers first: all were asked to go, and none has gone yet."""
    running(world)
    world.create(gang_of("high", 2, namespace=TEAM))
    world.settle(seconds=5)
    choose_whole(world, "high", "a")
    log = world.leader.log
    go_until(world, lambda: sum(isinstance(each, EvictPod) for each in log) == 3)
    world.leader.act_all()  # what is asked for goes, whatever becomes of the RayCluster
    world.delete("rayclusters", "high")


def held_waiting(world: World) -> None:
    world.create(gang_of("first", 2, namespace=NEXT))
    world.settle(seconds=5)
    world.create(held(gang_of("a", 2)))
    world.settle(seconds=5)
    assert not world.pods("a")


def held_resumed(world: World) -> None:
    """Its room is kept for pods that are still to come."""
    world.create(held(gang_of("a", 2)))
    go_until(world, lambda: not the_cluster(world)["spec"].get("suspend"))
    assert "placement" in world.status("a")


def the_cluster(world: World) -> Json:
    return world.api.get(Key("rayclusters", TEAM, "a"))


PHASES = [
    waiting,
    decided,
    placed,
    releasing,
    released,
    running,
    lost_a_worker,
    stopping,
    held_waiting,
    held_resumed,
]
ORDERS = every_other(permutations(("gangs", "pods", "rayclusters")))


@pytest.fixture(params=PHASES, ids=lambda phase: phase.__name__)
def world(request: pytest.FixtureRequest) -> World:
    """A node with room for one gang, which is in one of the phases."""
    world = World(node("n1", cpu=3))
    world.api.create({"kind": "Namespace", "metadata": {"name": NEXT}})
    request.param(world)
    return world


def room_is_free(world: World) -> bool:
    """Whether a gang that needs all of the room starts; what ran before this test's gang goes."""
    for cluster in list(world.api.all("rayclusters")):
        if cluster["metadata"]["namespace"] == NEXT:
            world.api.delete(key_of(cluster))
    world.create(gang_of("next", 2, namespace=NEXT))
    world.settle(seconds=30)
    return world.bound("next") == {"n1": 3}


def staying(world: World) -> set[str]:
    """The pods that are on a node, without those that were evicted."""
    pods = [pod for pod in world.pods("a") if "deletionTimestamp" not in pod["metadata"]]
    return {name_of(pod) for pod in pods if pod["spec"].get("nodeName")}


def gangs(world: World) -> list[str]:
    return [name_of(each) for each in world.api.all("gangs")]


def test_a_raycluster_that_is_deleted_leaves_nothing(world: World) -> None:
    world.delete("rayclusters", "a")
    world.settle(seconds=30)
    assert "a" not in gangs(world)
    assert not world.pods("a")
    assert room_is_free(world)


def test_a_raycluster_that_a_finalizer_holds_keeps_what_its_pods_use_and_no_more(
    world: World,
) -> None:
    """As with GCS fault tolerance: it goes once a Job has cleaned Redis up."""
    world.api.hold(the_cluster(world), "ray.io/gcs-ft-redis-cleanup-finalizer")
    world.delete("rayclusters", "a")
    stay = staying(world)
    world.settle(seconds=30)
    if "a" in gangs(world):
        assert "placement" not in world.status("a")
        assert world.status("a")["reason"] == "Terminating"
    assert all(pod["spec"].get("nodeName") for pod in world.pods("a") if not is_gated(pod))
    assert stay <= {name_of(pod) for pod in world.pods("a")}
    for pod in world.pods("a"):
        world.api.remove(key_of(pod))
    world.settle(seconds=5)
    assert the_cluster(world)
    assert room_is_free(world)
    world.api.unhold(the_cluster(world))
    world.settle(seconds=30)
    assert "a" not in gangs(world)


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_a_namespace_that_is_deleted_leaves_nothing_whatever_goes_first(
    world: World, order: tuple[str, ...]
) -> None:
    for plural in order:
        for each in [obj for obj in world.api.all(plural) if in_team(obj)]:
            world.api.remove(key_of(each))
        world.leader.hear_all()
        world.leader.cycle()
        world.leader.act_all()
    for plural in order:  # what was made in between
        for each in [obj for obj in world.api.all(plural) if in_team(obj)]:
            world.api.remove(key_of(each))
    world.delete("namespaces", TEAM, namespace="")
    world.settle(seconds=60)
    assert not [obj for obj in world.api.all("gangs") if in_team(obj)]
    assert room_is_free(world)


def in_team(obj: Json) -> bool:
    return bool(obj["metadata"].get("namespace") == TEAM)


def test_pods_that_outlive_their_raycluster_keep_their_room_until_they_go(world: World) -> None:
    """It was deleted with `--cascade=orphan`: the pods have no owner any more."""
    for pod in world.pods("a"):
        world.api.change(pod, lambda obj: obj["metadata"].update(ownerReferences=[]))
    world.api.remove(key_of(the_cluster(world)))
    for _ in range(4):
        world.leader.hear_all()
        world.leader.cycle()
        world.leader.act_all()
    stay = staying(world)
    world.settle(seconds=60)
    assert "a" not in gangs(world)
    assert stay <= {name_of(pod) for pod in world.pods("a")}
    used = sum(bool(pod["spec"].get("nodeName")) for pod in world.pods("a"))
    assert room_is_free(world) is (used == 0)
    for pod in world.pods("a"):
        world.api.remove(key_of(pod))
    world.settle(seconds=30)
    assert world.bound("next") == {"n1": 3}
