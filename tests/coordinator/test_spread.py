"""When is a gang looked at again whose pods are to be spread, and whom does it wait for?"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from coordinator.actions import ReleasePod
from kube import names
from kube.profiles import DEFAULT_SCHEDULER, Profile
from scheduling.model import PodTerm, SpreadConstraint
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
    """Somebody's pod in the gang's namespace, with the label x=y and no requests."""
    pod = foreign_pod(name, on, cpu=0)
    pod["metadata"] = {"name": name, "namespace": TEAM, "labels": {"x": "y"}}
    return pod


def test_a_counted_pod_that_is_being_deleted_counts_no_more() -> None:
    """Nobody has taken or freed room; the gang is asked anew all the same."""
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


def test_a_gang_waits_until_pods_that_mind_its_own_are_bound() -> None:
    """The first two ignore their pins: what else comes to their zone could have them refused."""
    strict = spread(names.RAY_GROUP, "workers", nodeAffinityPolicy="Ignore")
    world = World(zone("a1"), zone("b1"))
    world.create(spread_workers("first", 2, strict))
    world.create(ray_cluster("second", group("workers", 2)))
    world.settle(seconds=30)
    assert world.status("first")["phase"] == world.status("second")["phase"] == "Running"
    released = [action.gang.name for action in world.leader.log if isinstance(action, ReleasePod)]
    assert released == ["first"] * 3 + ["second"] * 3


ZONES = SpreadConstraint(PodTerm("zone", (), ()), 1)
BY_GROUP = {names.RAY_GROUP: "workers"}


def spread_by_default(constraint: SpreadConstraint) -> World:
    """A world whose scheduler spreads pods that say nothing of it."""
    profile = Profile(defaults=(constraint,))
    return World(zone("a1"), zone("b1"), profiles={DEFAULT_SCHEDULER: profile})


def service(name: str, selector: Json) -> Json:
    return {"kind": "Service", "metadata": {"name": name, "namespace": TEAM}} | {
        "spec": {"selector": selector}
    }


def unselect(world: World) -> None:
    found = world.api.get(Key("services", TEAM, "workers"))
    world.api.change(found, lambda each: each["spec"].update(selector={"x": "y"}))


@pytest.mark.parametrize("change", [unselect, lambda world: world.delete("services", "workers")])
def test_a_service_that_changes_or_goes_lets_a_waiting_gang_start(
    change: Callable[[World], None],
) -> None:
    """Nothing of its pods or of any node has changed."""
    world = spread_by_default(ZONES)
    world.create(service("workers", BY_GROUP), foreign_pod("full", "b1", cpu=8))
    world.create(ray_cluster("gang", group("workers", 3), head=template(cpu=0)))
    world.settle(seconds=5)
    assert "1 of 3 workers fit: topology spread over zone" in world.status("gang")["message"]
    change(world)
    world.settle()
    assert world.status("gang")["phase"] == "Running"
    assert world.bound("gang")["a1"] >= 3


def test_a_gang_waits_until_pods_that_are_spread_by_default_are_bound() -> None:
    """As where the pods themselves say so: the pin leaves kube-scheduler all zones to count."""
    world = spread_by_default(replace(ZONES, heeds_affinity=False))
    world.create(service("workers", BY_GROUP))
    for name in ("first", "second"):
        world.create(ray_cluster(name, group("workers", 2)))
        for _ in range(9):  # nobody binds what is released meanwhile
            world.kuberay()
            world._work(world.leader)
    assert world.status("first")["phase"] == "Admitted"
    assert "decided once those are bound" in world.status("second")["message"]
    world.settle(seconds=30)
    assert world.status("first")["phase"] == world.status("second")["phase"] == "Running"
    released = [action.gang.name for action in world.leader.log if isinstance(action, ReleasePod)]
    assert released == ["first"] * 3 + ["second"] * 3


@pytest.mark.parametrize("amounts", [{"pods": "lots"}, {"pods": "10E"}])
def test_a_node_whose_amounts_cannot_be_read_is_full_and_its_zone_counts(amounts: Json) -> None:
    """kube-scheduler counts the zone: with nobody in it, two elsewhere are too many."""
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
