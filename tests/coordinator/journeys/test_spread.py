"""A gang with spread constraints is decided again when the pods that it counts change."""

import pytest

from coordinator.messages.actions import ReleasePod
from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.builders import TEAM, Json, foreign_pod, group, node, ray_cluster, template
from tests.coordinator.world import World


def spread(key: str, value: str, **more: object) -> Json:
    return {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {key: value}},
        **more,
    }


def spread_workers(name: str, replicas: int, constraint: Json) -> Json:
    workers = group("workers", replicas, topologySpreadConstraints=[constraint])
    return ray_cluster(name, workers, head=template(cpu=0))


def zone(name: str, cpu: int = 8) -> Json:
    return node(name, cpu=cpu, labels={"zone": name[0]})


def counted(name: str, on: str) -> Json:
    """A foreign pod in the gang's namespace, with the label x=y and no requests."""
    pod = foreign_pod(name, on, cpu=0)
    pod["metadata"] = {"name": name, "namespace": TEAM, "labels": {"x": "y"}}
    return pod


def test_a_counted_pod_that_is_being_deleted_counts_no_more() -> None:
    """No room was taken or freed; the gang is asked anew all the same."""
    world = World(zone("a1", cpu=1), zone("b1"))
    world.create(counted("one", "b1"))
    world.create(counted("other", "b1"))
    world.create(spread_workers("gang", 2, spread("x", "y")))
    world.settle(seconds=5)
    assert world.status("gang")["reason"] == "NoFeasibleNode"
    world.api.change(
        world.api.get(Key("pods", TEAM, "one")),
        lambda pod: pod["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"),
    )
    world.settle(seconds=5)
    assert world.status("gang")["phase"] == "Running"


def test_a_counted_pod_elsewhere_that_comes_lifts_the_least() -> None:
    """More pods let more pods start."""
    world = World(zone("a1", cpu=0), zone("b1"))
    world.create(spread_workers("gang", 2, spread(names.RAY_GROUP, "workers")))
    world.settle(seconds=5)
    assert "1 of 2 workers fit" in world.status("gang")["message"]
    standing = counted("one", "a1")
    standing["metadata"]["labels"] = {names.RAY_GROUP: "workers"}
    world.create(standing)
    world.settle(seconds=5)
    assert world.bound("gang")["b1"] >= 2


def test_a_gang_waits_until_pods_that_its_constraints_count_are_bound() -> None:
    """The first two ignore their pins: what else comes to their zone could have them refused."""
    strict = spread(names.RAY_GROUP, "workers", nodeAffinityPolicy="Ignore")
    world = World(zone("a1"), zone("b1"))
    world.create(spread_workers("first", 2, strict))
    world.create(ray_cluster("second", group("workers", 2)))
    world.settle(seconds=30)
    assert world.status("first")["phase"] == world.status("second")["phase"] == "Running"
    released = [action.gang.name for action in world.leader.log if isinstance(action, ReleasePod)]
    assert released == ["first"] * 3 + ["second"] * 3


@pytest.mark.parametrize("amounts", [{"pods": "lots"}, {"pods": "10E"}])
def test_a_node_whose_amounts_cannot_be_read_is_full_and_its_zone_counts(amounts: Json) -> None:
    """kube-scheduler counts the zone: with no pod in it, two elsewhere are too many."""
    broken = zone("c1")
    broken["status"]["allocatable"].update(amounts)
    world = World(zone("a1"), broken)
    world.create(counted("one", "a1"))
    world.create(counted("other", "a1"))
    world.create(spread_workers("gang", 1, spread("x", "y")))
    world.settle(seconds=5)
    assert not world.leader.releases()
    world.api.change(broken, lambda obj: obj["status"]["allocatable"].update(pods="110"))
    world.settle(seconds=5)
    assert world.bound("gang") == {"c1": 1, "a1": 1} or world.bound("gang") == {"c1": 2}
