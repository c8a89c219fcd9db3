"""Gangs whose pods mount claims wait for them, and start when the volumes allow it."""

from typing import Any

import pytest

from coordinator.messages.events import Event, FactSeen, FactsLost, FactsSeen
from coordinator.shell.sinks import fact_sink
from kube.api.watch.events import Sighted, Synced, Unreadable
from scheduling.model.volume import Volume
from tests.coordinator.api import Key
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
from tests.coordinator.world import World

ZONE = "topology.kubernetes.io/zone"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
NODES = (node("a1", labels={ZONE: "a"}), node("b1", labels={ZONE: "b"}))


def mounts(claim: str = "data") -> Json:
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}


def claim(
    name: str = "data", *, mode: str = "ReadWriteMany", bound: bool = True, **spec: Any
) -> Json:
    annotations = BOUND if bound else {}
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": TEAM, "annotations": annotations},
        "spec": {"accessModes": [mode], **({"volumeName": name} if bound else {}), **spec},
    }


def volume(name: str = "data", *, zone: str = "") -> Json:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}} if zone else {}
    source = {"csi": {"driver": "disk", "volumeHandle": name}}
    return {"kind": "PersistentVolume", "metadata": {"name": name}, "spec": {**affinity, **source}}


def limit(on: str, count: int) -> Json:
    drivers = [{"name": "disk", "allocatable": {"count": count}}]
    return {"kind": "CSINode", "metadata": {"name": on}, "spec": {"drivers": drivers}}


def test_a_gang_starts_where_its_volume_is() -> None:
    world = World(*NODES, claim(), volume(zone="b"))
    world.create(ray_cluster("r", group("workers", 3, **mounts())))
    world.settle(seconds=1)
    assert world.bound("r")["b1"] >= 3


def test_a_missing_claim_is_named_and_the_gang_starts_once_it_is_there_and_bound() -> None:
    world = World(*NODES)
    world.create(ray_cluster("r", group("workers", 2, **mounts())))
    world.settle(seconds=1)
    assert world.status("r")["reason"] == "NoFeasibleNode"
    assert 'volume claim "data" does not exist' in world.status("r")["message"]
    assert world.gated("r") == 3

    world.create(claim(bound=False))
    world.settle(seconds=60)
    assert 'volume claim "data" is not bound' in world.status("r")["message"]

    world.create(volume(zone="b"))
    held = world.api.get(Key("persistentvolumeclaims", TEAM, "data"))
    world.api.change(
        held,
        lambda obj: (
            obj["metadata"].update(annotations=BOUND),
            obj["spec"].update(volumeName="data"),
        ),
    )
    world.settle(seconds=1)
    assert sum(world.bound("r").values()) == 3
    assert world.bound("r")["b1"] >= 2


def test_a_gang_that_mounts_nothing_does_not_wait_for_the_watches_of_volumes() -> None:
    world = World(*NODES, claim(), volume())
    world.leader.handle([FactsLost(Volume)])
    world.create(ray_cluster("r", group("workers", 2, **mounts())), gang_of("usual", 2))
    world.settle(seconds=1)
    assert sum(world.bound("usual").values()) == 3
    assert world.bound("r") == {}
    assert "volumes cannot be watched" in world.status("r")["message"]
    world.leader.handle([FactsSeen(Volume)])
    world.settle(seconds=1)
    assert sum(world.bound("r").values()) == 3


def test_a_claim_for_one_pod_goes_to_one_gang_and_then_to_the_next() -> None:
    world = World(*NODES, claim(mode="ReadWriteOncePod"), volume())
    for name in ("first", "second"):
        world.create(ray_cluster(name, head=template(**mounts())))
        world.settle(seconds=1)
    assert (sum(world.bound("first").values()), sum(world.bound("second").values())) == (1, 0)
    assert "is ReadWriteOncePod and in use" in world.status("second")["message"]
    world.delete("rayclusters", "first")
    world.settle(seconds=1)
    assert sum(world.bound("second").values()) == 1


def test_a_claim_for_one_pod_is_kept_for_a_pod_that_is_on_its_way() -> None:
    """The first gang is placed and nothing of it is bound yet when the second asks."""
    world = World(*NODES, claim(mode="ReadWriteOncePod"), volume())
    world.schedule = lambda: None  # type: ignore[method-assign]
    world.create(ray_cluster("first", head=template(**mounts())))
    world.settle(seconds=1)
    assert [name.split("-")[0] for name, _ in world.leader.releases()] == ["first"]
    world.create(ray_cluster("second", head=template(**mounts())))
    world.settle(seconds=1)
    assert len(world.leader.releases()) == 1
    assert 'volume claim "data" is reserved for another pod' in world.status("second")["message"]


def test_disks_that_are_attached_or_promised_leave_no_place_for_more() -> None:
    ours, theirs = (claim("mine"), volume("mine")), (claim("yours"), volume("yours"))
    world = World(node("a1"), limit("a1", 1), *ours, *theirs)
    world.create(ray_cluster("first", head=template(**mounts("mine"))))
    world.settle(seconds=1)
    world.create(ray_cluster("second", head=template(**mounts("yours"))))
    world.settle(seconds=1)
    assert (sum(world.bound("first").values()), sum(world.bound("second").values())) == (1, 0)
    assert world.status("second")["message"] == (
        "0 of 1 headgroup fits: it needs 1 attachable disk (NodeVolumeLimits) on one node; "
        "0 are free"
    )
    world.delete("rayclusters", "first")
    world.settle(seconds=1)
    assert sum(world.bound("second").values()) == 1


@pytest.mark.parametrize("size", ["10E", "1e19", "lots"])
def test_a_disk_counts_whatever_its_size_is_said_to_be(size: str) -> None:
    """And the gang whose disk it is starts."""
    ours, theirs = [claim("mine"), volume("mine")], [claim("yours"), volume("yours")]
    for bound, made in (ours, theirs):
        bound["spec"]["resources"] = {"requests": {"storage": size}}
        made["spec"]["capacity"] = {"storage": size}
    world = World(node("a1"), limit("a1", 1), *ours, *theirs)
    for name, of in (("first", "mine"), ("second", "yours")):
        world.create(ray_cluster(name, head=template(**mounts(of))))
        world.settle(seconds=1)
    assert (sum(world.bound("first").values()), sum(world.bound("second").values())) == (1, 0)
    assert "1 attachable disk" in world.status("second")["message"]


def test_where_a_fact_cannot_be_read_volumes_cannot_be_watched_until_a_list_can() -> None:
    told: list[Event] = []
    sink = fact_sink(told.extend, Volume)
    bad, seen = Unreadable("", "pv", "u", "no volume"), FactsSeen(Volume)
    sink([Synced()])
    sink([bad])
    sink([Sighted()])
    sink([bad, Synced()])
    assert told == [seen, *[FactsLost(Volume)] * 4]
    sink([Synced()])
    assert told[-1] == seen


def test_disks_of_others_count_as_soon_as_their_claim_is_known() -> None:
    world = World(node("a1"), limit("a1", 1), claim("mine"), volume("mine"))
    world.create(
        {**foreign_pod("x", "a1", **mounts("yours")), "metadata": {"name": "x", "namespace": TEAM}}
    )
    world.create(claim("yours"), volume("yours"))
    world.settle()
    world.create(ray_cluster("r", head=template(**mounts("mine"))))
    world.settle(seconds=1)
    assert world.bound("r") == {}
    world.api.remove(Key("pods", TEAM, "x"))
    world.settle(seconds=1)
    assert sum(world.bound("r").values()) == 1


def test_a_place_for_a_disk_is_kept_for_a_pod_that_is_on_its_way() -> None:
    ours, theirs = (claim("mine"), volume("mine")), (claim("yours"), volume("yours"))
    world = World(node("a1"), limit("a1", 1), *ours, *theirs)
    world.schedule = lambda: None  # type: ignore[method-assign]
    for name, of in (("first", "mine"), ("second", "yours")):
        world.create(ray_cluster(name, head=template(**mounts(of))))
        world.settle(seconds=1)
    assert [name.split("-")[0] for name, _ in world.leader.releases()] == ["first"]
    assert "NodeVolumeLimits" in world.status("second")["message"]


def test_a_claim_that_is_deleted_is_missed() -> None:
    world = World(node("a1", cpu=4), foreign_pod("x", "a1", cpu=2), claim(), volume())
    world.create(ray_cluster("r", group("workers", 3, **mounts())))
    world.settle(seconds=1)
    assert world.status("r")["reason"] == "InsufficientResources"
    world.api.remove(Key("persistentvolumeclaims", TEAM, "data"))
    world.settle(seconds=1)
    assert world.status("r")["reason"] == "NoFeasibleNode"
    assert 'volume claim "data" does not exist' in world.status("r")["message"]


def test_news_of_volumes_are_no_matter_once_no_gang_waits_with_one() -> None:
    world = World(*NODES, claim(), volume())
    world.create(ray_cluster("r", group("workers", 1, **mounts())))
    world.settle(seconds=1)
    assert sum(world.bound("r").values()) == 2
    world.leader.handle([FactSeen(Volume("other"))])
    assert not world.leader.state.cycle_wanted


LOCAL = {
    "kind": "StorageClass",
    "metadata": {"name": "local"},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def shares(on: str, *keys: str) -> Json:
    """Say that the driver of class `made` is on a node, and by which labels it tells places."""
    drivers = [{"name": "disk", "nodeID": on, "topologyKeys": list(keys)}]
    return {"kind": "CSINode", "metadata": {"name": on}, "spec": {"drivers": drivers}}


def test_pods_that_share_a_claim_to_be_bound_wait_for_those_on_the_first_node() -> None:
    """kube-scheduler would refuse them until the volume is there."""
    made = {**LOCAL, "metadata": {"name": "made"}, "provisioner": "disk"}
    asked = claim(bound=False, storageClassName="made")
    world = World(node("a1", cpu=2), node("a2", cpu=2), made, asked, shares("a1"), shares("a2"))
    schedule, world.schedule = world.schedule, lambda: None  # type: ignore[method-assign]
    world.create(ray_cluster("r", group("workers", 3, **mounts())))
    world.settle(seconds=1)
    sharing = [name for name, _ in world.leader.releases() if "workers" in name]
    assert world.status("r")["message"].endswith("in 2 waves")
    assert len(sharing) == 2
    world.schedule = schedule  # type: ignore[method-assign]
    world.settle(seconds=1)
    assert sum(world.bound("r").values()) == 4
