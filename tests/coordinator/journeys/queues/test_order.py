"""Which gangs age, and which block others."""

from typing import Any

import pytest

from coordinator.state.cycle.cycle_input import line_up, queues_of
from kube.objects import names
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey
from tests.coordinator.api import Key
from tests.coordinator.builders import (
    OPTED_IN,
    TEAM,
    Json,
    foreign_pod,
    group,
    node,
    ray_cluster,
    template,
)
from tests.coordinator.journeys.queues.worlds import change, gang_in, phases, queue, status_of
from tests.coordinator.replica import WALL
from tests.coordinator.world import World


def aged(world: World, gang: str) -> bool:
    state, now = world.leader.state, world.api.now
    moment = Moment(now, "", WALL + now)
    line_up(state.known)
    return GangKey(TEAM, gang) in queues_of(state.known, moment).aged


def test_age_counts_from_the_time_when_the_whole_minimum_was_there() -> None:
    """A RayCluster that was suspended for long has not waited."""
    ageing = {"maxWaitSeconds": 100}
    world = World(node("n1", cpu=4), queue("team", cpu=100, ageing=ageing))
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    late = gang_in("team", "b", 3)
    late["spec"]["suspend"] = True
    world.create(late)
    world.settle(seconds=200)
    world.edit("b", suspend=False)
    world.settle(seconds=20)
    assert (phases(world, "b"), aged(world, "b")) == (["Queued"], False)
    world.settle(seconds=120)
    assert aged(world, "b")


def test_a_gang_that_waits_for_surplus_alone_does_not_age() -> None:
    ageing = {"maxWaitSeconds": 100}
    world = World(node("n1", cpu=3), queue("team", cpu=100, ageing=ageing))
    world.create(gang_in("team", "a", 2, annotations={names.MIN_REPLICAS: "workers=2"}))
    world.settle(seconds=10)
    world.scale("a", 5)
    world.settle(seconds=200)
    assert world.gated("a") == 3
    assert not aged(world, "a")


def test_a_gang_that_waits_for_surplus_alone_has_no_position_before_others() -> None:
    world = World(node("n1", cpu=4), queue("team", cpu=100))
    world.create(gang_in("team", "a", 2, annotations={names.MIN_REPLICAS: "workers=2"}))
    world.settle(seconds=10)
    world.scale("a", 9)
    world.settle(seconds=10)
    world.create(gang_in("team", "b", 3))
    world.settle(seconds=90)
    assert status_of(world, "team")["pending"] == 1
    assert world.status("b")["position"] == 1


def test_a_running_gang_that_loses_a_node_is_repaired_before_a_blocked_one_in_a_strict_queue() -> (
    None
):
    """`big` came first and waits for n0, which a pod of others fills."""
    nodes = (node("n0", cpu=10), node("n1", cpu=2), node("n2", cpu=1))
    world = World(*nodes, foreign_pod("x", "n0", cpu=10), queue("team", cpu=100))
    world.create(gang_in("team", "big", 9))
    world.settle(seconds=2)
    world.create(gang_in("team", "small", 2))
    world.settle(seconds=10)
    assert phases(world, "big", "small") == ["Queued", "Running"]

    change(world, "team", whenBlocked="Strict")
    world.delete("nodes", "n2", namespace="")
    for pod in world.pods("small"):
        if pod["spec"].get("nodeName") == "n2":
            world.delete("pods", pod["metadata"]["name"])
    world.create(node("n3", cpu=1), gang_in("team", "behind", 0))
    world.settle(seconds=60)
    assert world.bound("small") == {"n1": 2, "n3": 1}
    assert world.status("behind")["reason"] == "QueueBlocked"


def test_gangs_that_run_in_a_queue_that_stopped_working_are_expected_to_end() -> None:
    world = World(node("n1", cpu=4), queue("team", cpu=4))
    lasts = {names.EXPECTED_DURATION: "10m"}
    urgent = template(priority=7)
    labels = {**OPTED_IN, names.QUEUE: "team"}
    workers = group("workers", 3, priority=7)
    world.create(ray_cluster("a", workers, head=urgent, labels=labels, annotations=lasts))
    world.settle(seconds=10)
    change(world, "team", parent="none")
    world.settle(seconds=10)
    state, now = world.leader.state, world.api.now
    (holding,) = queues_of(state.known, Moment(now, "", WALL + now)).holdings()
    assert (holding.queue, holding.key) == ("team", GangKey(TEAM, "a"))
    assert holding.ends == pytest.approx(WALL + 600, abs=5)
    assert holding.priority == 7
    assert holding.since == pytest.approx(WALL, abs=5)


# ---- gangs that the nodes could hold only without DaemonSets


def comes_with_node(kind: str, on: str) -> Json:
    """A pod of a DaemonSet, or of a static pod, which uses 100m."""
    pod = foreign_pod("agent", on, cpu="100m")
    owner = {"kind": kind, "name": on, "uid": on, "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]
    return pod


@pytest.mark.parametrize("kind", ["DaemonSet", "Node"])
@pytest.mark.parametrize("rules", [{"whenBlocked": "Strict"}, {"ageing": {"maxWaitSeconds": 60}}])
def test_a_gang_that_asks_for_more_than_daemonsets_leave_holds_back_no_other(
    rules: dict[str, Any], kind: str
) -> None:
    """Neither in its Strict queue nor, once it has aged, in other queues."""
    world = World(node("n1", cpu=4), queue("team", **rules), queue("other"))
    world.create(comes_with_node(kind, "n1"), gang_in("team", "big", 3))
    world.settle(seconds=100)
    world.create(gang_in("team" if "whenBlocked" in rules else "other", "small", 0))
    world.settle(seconds=10)
    assert phases(world, "big", "small") == ["Queued", "Running"]
    assert "it holds back no other gang" in world.status("big")["message"]


def test_a_gang_holds_others_back_again_once_daemonsets_leave_enough() -> None:
    world = World(node("n1", cpu=4), queue("team", whenBlocked="Strict"))
    world.create(foreign_pod("x", "n1"), gang_in("team", "big", 3))
    world.settle(seconds=10)
    world.create(gang_in("team", "first", 0))
    world.settle(seconds=60)
    assert phases(world, "first") == ["Queued"]

    world.create(comes_with_node("DaemonSet", "n1"))
    world.settle(seconds=60)
    assert phases(world, "big", "first") == ["Queued", "Running"]

    world.api.remove(Key("pods", "others", "agent"))
    world.create(gang_in("team", "second", 0))
    world.settle(seconds=60)
    assert phases(world, "big", "second") == ["Queued", "Queued"]
    assert "holds back no other" not in world.status("big")["message"]

    world.api.remove(Key("pods", "others", "x"))
    world.delete("rayclusters", "first")
    world.settle(seconds=60)
    assert phases(world, "big") == ["Running"]
