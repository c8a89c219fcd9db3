"""Gangs that start together whose pods are bound in an order over all, or are in domains apart."""

from functools import partial

import msgspec
import pytest

from kube.codec.pod_patches import pinned_node
from kube.objects import names
from kube.objects.core import Pod
from tests.coordinator.builders import Json, affinity_to, group, node, ray_cluster
from tests.coordinator.deeds import apart, in_zones, zone
from tests.coordinator.device_world import asking
from tests.coordinator.held import held
from tests.coordinator.journeys.test_devices import two_waves
from tests.coordinator.journeys.test_together import member, reason, together
from tests.coordinator.world import World, is_gated, name_of

ZONE = "zone"
EACH = {names.TOGETHER_TOPOLOGY: names.TOGETHER_EACH}
IN_ZONE = {names.TOPOLOGY_REQUIRED: ZONE}


def pods_by_name(world: World) -> dict[str, bool]:
    """Say of each pod whether it is released."""
    return {name_of(each): not is_gated(each) for each in world.pods()}


def beside_a() -> Json:
    """A member whose worker must find pods of the other in its zone."""
    worker = group("workers", 1, affinity=affinity_to("a"), nodeSelector={ZONE: "w"})
    return held(ray_cluster("b", worker, annotations=together()))


def bind(world: World, of: str) -> None:
    """Have kube-scheduler bind the pods of one gang alone that are released."""
    for pod in world.pods(of):
        name = pinned_node(msgspec.convert(pod, Pod))
        if name:
            world.api.change(pod, partial(_set_node, name))


def _set_node(name: str, pod: Json) -> None:
    pod["spec"]["nodeName"] = name


def test_a_wave_of_one_member_comes_after_all_members_earlier_ones_are_bound() -> None:
    """The head of `a` would let its workers in nowhere, so that it comes after all others."""
    world = in_zones(cpu=4)
    world.scheduler = False
    world.create(held(apart(1, annotations=together())), beside_a())
    world.settle(seconds=20)
    assert (world.gated("a"), world.gated("b")) == (1, 0)
    bind(world, "a")
    world.settle(seconds=20)
    assert world.gated("a") == 1
    bind(world, "b")
    world.settle(seconds=20)
    assert world.gated("a") == 0
    world.scheduler = True
    world.settle(seconds=60)
    assert [sum(world.bound(each).values()) for each in "ab"] == [2, 2]
    assert [world.status(each)["phase"] for each in "ab"] == ["Running", "Running"]


@pytest.mark.parametrize(("picky", "anything"), ["ab", "ba"])
def test_devices_that_one_member_would_take_are_left_to_the_other(
    picky: str, anything: str
) -> None:
    """The GPU is the first of the devices that the one takes, and the only one for the other."""
    world = two_waves()
    world.scheduler = False
    for name, asked in ((picky, "one"), (anything, "any")):
        worker = group("workers", 1, **asking(asked))
        world.create(ray_cluster(name, worker, annotations=together()))
    world.settle(seconds=20)
    assert (world.gated(picky), world.gated(anything)) == (0, 1)
    world.scheduler = True
    world.settle(seconds=60)
    assert [world.bound(each) for each in "ab"] == [{"n1": 2}, {"n1": 2}]


def test_a_new_leader_goes_on_with_the_waves() -> None:
    world = World(zone("h1"), zone("w1", cpu=4), replicas=2)
    world.scheduler = False
    world.create(held(apart(1, annotations=together())), beside_a())
    world.settle(seconds=20)
    before = pods_by_name(world)
    world.leader.leading = False
    world.elect(1)
    world.settle(seconds=20)
    assert pods_by_name(world) == before
    world.scheduler = True
    world.settle(seconds=60)
    assert [sum(world.bound(each).values()) for each in "ab"] == [2, 2]


def test_waves_go_on_where_a_member_is_deleted_between_them() -> None:
    world = in_zones(cpu=4)
    world.scheduler = False
    world.create(held(apart(1, annotations=together())), member("b"))
    world.settle(seconds=20)
    world.delete("rayclusters", "b")
    world.scheduler = True
    world.settle(seconds=60)
    assert sum(world.bound("a").values()) == 2


# --- domains --------------------------------------------------------------------------------------


def two_zones() -> World:
    return World(*(node(each, cpu=2, labels={ZONE: each}) for each in ("x", "y")), node("h", cpu=2))


def test_a_trainer_and_its_inference_may_each_have_a_domain_of_its_own() -> None:
    world = two_zones()
    world.create(*(member(each, 2, {**EACH, **IN_ZONE}) for each in "ab"))
    world.settle(seconds=60)
    zones = [set(world.bound(each)) - {"h"} for each in "ab"]
    assert sorted(zones, key=str) == [{"x"}, {"y"}]


def test_members_that_share_one_domain_wait_where_none_holds_all() -> None:
    world = two_zones()
    world.create(*(member(each, 2, IN_ZONE) for each in "ab"))
    world.settle(seconds=60)
    assert reason(world, "a")[0] == "InsufficientResources"
    assert reason(world, "a")[1].startswith("no single zone holds the workers; ")


def test_members_that_differ_in_who_shares_a_domain_are_misconfigured() -> None:
    world = two_zones()
    world.create(member("a", 2, {**EACH, **IN_ZONE}))
    world.settle(seconds=60)
    world.create(member("b", 2, IN_ZONE))
    world.settle(seconds=60)
    found = reason(world, "b")
    assert found[0] == "Misconfigured"
    assert found[1].startswith('muster.dev/together-topology: "One" is not valid; allowed: Each')
