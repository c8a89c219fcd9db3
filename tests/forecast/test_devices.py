"""Forecasts of gangs that claim devices: what a pod is given is free again when it is gone."""

from datetime import datetime
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.forecast.changes import Added, Changes
from cli.forecast.what_if import what_if
from cli.report.forecast.what_if import Effect
from forecast.asking import forecast
from kube.objects import names
from scheduling.model.gang import GangKey
from tests.coordinator.api import Key, stamp_at
from tests.coordinator.builders import TEAM, Json, group, node, ray_cluster
from tests.coordinator.device_world import (
    ANY,
    asking,
    claim_template,
    device_class,
    device_slice,
)
from tests.coordinator.held import held
from tests.coordinator.replica import WALL
from tests.coordinator.world import World
from tests.examples import examples
from tests.forecast.pictures import HOUR, pictured
from tests.forecast.test_properties import starts
from tests.kube.devices.objects import GPU

NIC = "nic.example.com"
RESOURCE = "example.com/gpu"


def offering(*nodes: str, devices: int = 4) -> World:
    found = [node(each, cpu=64) for each in nodes]
    slices = [device_slice(each, devices) for each in nodes]
    slices += [device_slice(each, 2, NIC) for each in nodes]
    classes = device_class(GPU, RESOURCE), device_class(NIC), device_class(ANY)
    templates = claim_template("one"), claim_template("two", 2), claim_template("any", 1, ANY)
    return World(*found, *slices, *classes, *templates)


def gang(name: str, workers: int, hours: float, template: str = "one", **more: Any) -> Json:
    """A gang whose workers claim by a template; by "class" they ask for an extended resource."""
    asked = asking(template) if template != "class" else {}
    amounts = {RESOURCE: 1} if template == "class" else {}
    said = {names.EXPECTED_DURATION: f"{int(hours * HOUR)}s"}
    return ray_cluster(name, group("w", workers, **amounts, **asked), annotations=said, **more)


def came_in_turn(world: World, *gangs: Json) -> World:
    for each in gangs:
        world.create(each)
        world.settle(seconds=2)
    return world


def mark_deleted(ends: str, pod: Json) -> None:
    pod["metadata"] |= {"deletionTimestamp": ends, "deletionGracePeriodSeconds": 30}


def seconds(world: World) -> dict[str, float]:
    """When each waiting gang is expected to start, in seconds of the world."""
    found = forecast(pictured(world)).gangs
    return {
        each.name: datetime.fromisoformat(each.at).timestamp() - WALL for each in found if each.at
    }


def test_a_gang_starts_when_devices_are_free_and_the_next_when_those_are() -> None:
    world = came_in_turn(offering("a"), gang("runs", 3, 1), gang("next", 3, 2), gang("last", 4, 1))
    course = pictured(world).course()
    found = {key.name: each for key, each in course.starts.items()}
    assert found["next"].after == (GangKey(TEAM, "runs"),)
    assert found["last"].after == (GangKey(TEAM, "next"),)
    assert found["last"].at - found["next"].at == pytest.approx(2 * HOUR, abs=5)


def test_a_gang_starts_beside_one_that_could_have_had_its_devices() -> None:
    """What the other was given of two kinds is known, so that what is left is known as well."""
    gangs = gang("runs", 4, 1), gang("mixed", 3, 2, "any"), gang("last", 1, 1)
    course = pictured(came_in_turn(offering("a"), *gangs)).course()
    found = {key.name: each.after for key, each in course.starts.items()}
    assert found == {"mixed": (GangKey(TEAM, "runs"),), "last": (GangKey(TEAM, "runs"),)}


def test_a_pod_that_is_being_deleted_gives_its_devices_back_at_its_end() -> None:
    """No gang needs to end for the next one, which waits for no more than a grace period."""
    world = came_in_turn(offering("a"), gang("runs", 3, 1), gang("next", 3, 2))
    for pod in list(world.api.all("pods")):
        if pod["metadata"]["name"].startswith("runs"):
            ends = stamp_at(world.api.now + 30)
            world.api.change(pod, partial(mark_deleted, ends))
    world.api.delete(Key("rayclusters", TEAM, "runs"))
    world.leader.hear_all()
    assert seconds(world)["next"] == pytest.approx(world.api.now + 30, abs=2)


def test_added_nodes_have_the_devices_of_the_one_that_they_are_like() -> None:
    world = came_in_turn(offering("a"), gang("runs", 3, 2), gang("next", 3, 1))
    (effect,) = what_if(pictured(world), Changes(added=(Added(1, "a"),))).effects
    assert (effect.name, effect.effect) == ("next", Effect.STARTS)


def test_a_drained_node_gives_no_devices_and_those_of_its_pods_are_free() -> None:
    world = came_in_turn(offering("a", "b"), gang("runs", 3, 2), gang("both", 3, 1))
    world.create(gang("next", 3, 1))
    world.settle(seconds=2)
    found = what_if(pictured(world), Changes(drained=("a",))).effects
    assert {each.name: each.effect for each in found} == {"next": Effect.LATER}


kinds = st.sampled_from(("one", "two", "any", "class"))
some = st.lists(
    st.tuples(st.integers(1, 5), st.sampled_from((0.05, 0.1, 0.2)), kinds, st.booleans()),
    min_size=2,
    max_size=5,
)


@given(some)
@examples(12, otherwise=3)
def test_gangs_start_as_they_do_once_the_others_end(
    found: list[tuple[int, float, str, bool]],
) -> None:
    """The judge is the cluster in memory, whose kube-scheduler gives the first devices."""
    made = (gang(f"g-{at}", *each[:3]) for at, each in enumerate(found))
    gangs = [held(one) if each[3] else one for one, each in zip(made, found, strict=True)]
    world = came_in_turn(offering("a", "b"), *gangs)
    told = seconds(world)
    came = starts(world, {f"g-{at}": each[1] for at, each in enumerate(found)})
    for name, at in told.items():
        assert abs(at - came[name]) < 5, f"{name} came at {came[name]}"
