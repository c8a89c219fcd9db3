"""Gangs are ordered by priority, and a tenant cannot raise its own without permission."""

from typing import Any

import pytest

from coordinator.gang.priority import SETTING, Asked
from coordinator.messages.actions import WriteGangStatus
from kube.objects import names
from kube.objects.core import PriorityClass
from tests.coordinator.api import Key
from tests.coordinator.builders import TEAM, Json, gang_of, group, node, ray_cluster, template
from tests.coordinator.world import World

SYSTEM = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
CLASSES = {**SYSTEM, "high": 1000, "low": -5, "lower": -10}


def world_of(cpu: int = 8, **more: Any) -> World:
    world = World(node("n1", cpu=cpu), **more)
    for name, value in CLASSES.items():
        world.create({"kind": "PriorityClass", "metadata": {"name": name}, "value": value})
    return world


def named(name: str, priority_class: str, workers: int = 2, *, priority: int = 0) -> Json:
    """A gang that names a class, whose pods all have one priority."""
    return ray_cluster(
        name,
        group("workers", workers, priority=priority),
        annotations={names.PRIORITY_CLASS: priority_class},
        head=template(cpu=1, priority=priority),
    )


def priority_of(world: World, name: str) -> int:
    return int(world.gang(name)["spec"]["priority"])


@pytest.mark.parametrize("attack", ["system-node-critical", "high"])
def test_an_annotation_gets_no_gang_ahead_of_others(attack: str) -> None:
    """The attacker comes last and names what it may not use: the others start before it."""
    world = world_of(cpu=3)
    world.create(gang_of("runs", 2))
    world.settle(seconds=2)
    world.create(gang_of("honest", 2), named("attacker", attack))
    world.settle(seconds=30)
    assert priority_of(world, "attacker") == 0
    status = world.status("attacker")
    assert (status["reason"], status.get("position", 0)) == ("Misconfigured", 0)
    assert SETTING in status["message"]
    assert "priorityClassName" in status["message"]
    world.delete("rayclusters", "runs")
    world.settle(seconds=30)
    assert world.status("honest")["phase"] == "Running"
    assert world.gated("attacker") == 3


def test_a_high_class_on_the_head_alone_lifts_nothing() -> None:
    """A quota scoped by class guards every pod of it; a head of 100m is cheap."""
    world = world_of()
    world.create(ray_cluster("a", group("workers", 2), head=template(cpu=1, priority=1000)))
    world.create(ray_cluster("b", group("workers", 2, priority=7), head=template(cpu=1)))
    world.create(
        ray_cluster("c", group("workers", 1, priority=7), head=template(cpu=1, priority=9))
    )
    world.settle(seconds=5)
    assert [priority_of(world, name) for name in "abc"] == [0, 0, 7]


def test_a_class_that_is_not_above_the_pods_needs_no_permission() -> None:
    world = world_of()
    world.create(named("a", "low"), named("b", "high", priority=1000))
    world.settle(seconds=30)
    assert (priority_of(world, "a"), priority_of(world, "b")) == (-5, 1000)
    assert [world.status(name)["phase"] for name in "ab"] == ["Running", "Running"]


@pytest.mark.parametrize("place", [TEAM, "*"])
def test_the_operator_may_allow_a_class_in_a_namespace(place: str) -> None:
    world = world_of(allowed={place: ["high"], "elsewhere": ["system-node-critical"]})
    world.create(named("a", "high"), named("b", "system-node-critical"))
    world.settle(seconds=30)
    assert (priority_of(world, "a"), world.status("a")["phase"]) == (1000, "Running")
    assert (priority_of(world, "b"), world.status("b")["reason"]) == (0, "Misconfigured")


@pytest.mark.parametrize("asked", ["system-node-critical", "nowhere"])
def test_only_classes_that_may_be_used_are_proposed(asked: str) -> None:
    """Of the system's none, whatever the operator allows."""
    world = world_of(allowed={TEAM: ["high", "not-there", "system-cluster-critical"]})
    world.create(named("a", asked))
    world.settle(seconds=30)
    message = world.status("a")["message"]
    assert message.startswith(f'{names.PRIORITY_CLASS}: "{asked}" is not valid; allowed: high, low')
    assert "system-" not in message.removeprefix(f'{names.PRIORITY_CLASS}: "{asked}"')
    assert "not-there" not in message


def test_a_pod_of_lower_priority_that_comes_later_puts_its_gang_back() -> None:
    """Surplus counts: a gang is above the others with all of its pods."""
    world = world_of(cpu=3)
    world.create(gang_of("runs", 2))
    world.settle(seconds=2)
    pods = {"priority": 1000, "least": 1, "most": 2}
    world.create(ray_cluster("a", group("workers", 1, **pods), head=template(cpu=1, priority=1000)))
    world.create(ray_cluster("b", group("workers", 1, priority=10), head=template(priority=10)))
    world.settle(seconds=60)
    assert (world.status("a")["position"], world.status("b")["position"]) == (1, 2)
    more = [group("workers", 1, **pods), group("more", 1, priority=-5)]
    world.edit("a", workerGroupSpecs=more)
    world.settle(seconds=60)
    assert priority_of(world, "a") == -5
    assert (world.status("a")["position"], world.status("b")["position"]) == (2, 1)


def test_the_order_does_not_depend_on_which_pods_came_first() -> None:
    """While pods are made the priority may only fall, and nothing is decided before all are."""
    world = world_of(cpu=3)
    world.create(gang_of("runs", 2))
    world.settle(seconds=2)
    for name, priorities in (("a", (7, 3)), ("b", (3, 7)), ("c", (5, 5))):
        head, workers = priorities
        made = group("workers", 2, priority=workers)
        world.create(ray_cluster(name, made, head=template(cpu=1, priority=head)))
        world.settle(seconds=2)
    world.settle(seconds=60)
    assert [priority_of(world, name) for name in "abc"] == [3, 3, 5]
    assert [world.status(name)["position"] for name in "abc"] == [2, 3, 1]


def test_without_pods_a_class_raises_nothing_and_is_not_complained_of_yet() -> None:
    """It is not known whether it is above them; one that does not exist is told at once."""
    classes = {"high": PriorityClass(value=1000), "low": PriorityClass(value=-5)}
    for name, allowed, priority in (("high", "", 0), ("high", "high", 1000), ("low", "", -5)):
        asked = Asked(name, TEAM, classes, frozenset([allowed]))
        assert (asked.priority(None), asked.problem(None)) == (priority, "")
    unknown = Asked("unknown", TEAM, classes, frozenset())
    assert unknown.priority(None) == 0
    assert "there is no PriorityClass of that name" in unknown.problem(None)


def test_a_class_that_is_taken_away_from_a_running_gang_changes_nothing_that_runs() -> None:
    world = world_of()
    world.create(named("a", "low"))
    world.settle(seconds=30)
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    raised = {names.PRIORITY_CLASS: "system-node-critical"}
    world.api.change(cluster, lambda obj: obj["metadata"]["annotations"].update(raised))
    world.settle(seconds=30)
    assert (world.status("a")["phase"], priority_of(world, "a")) == ("Running", 0)


def test_gangs_that_are_admitted_at_once_are_written_in_the_order_of_the_queue() -> None:
    """What is written first is released first: names are no order."""
    world = world_of(cpu=0)
    for name, priority in (("a", -10), ("b", 1000), ("c", -5)):
        world.create(named(name, "", workers=1, priority=priority))
    world.settle(seconds=60)
    world.create(node("n2", cpu=64))
    world.leader.hear_all()
    world.leader.log.clear()
    world.leader.cycle()
    written = [each.key.name for each in world.leader.log if isinstance(each, WriteGangStatus)]
    assert written == ["b", "c", "a"]
