"""Gangs with devices by claim that end for others: their devices are free once their claims are."""

from tests.coordinator.api import key_of
from tests.coordinator.builders import Json, gang_of, group, node, ray_cluster, template
from tests.coordinator.device_world import (
    asking,
    claim_template,
    device_class,
    device_slice,
)
from tests.coordinator.journeys.preemption.worlds import IN_TEAM, LOWER, evicted, urgent
from tests.coordinator.journeys.queues.worlds import phases, queue
from tests.coordinator.world import World

PROTECTED = "resource.kubernetes.io/delete-protection"


def offering(cpu: int, devices: int, *others: Json) -> World:
    of_devices = device_slice("n1", devices), device_class(), claim_template("one")
    return World(node("n1", cpu=cpu), *of_devices, queue("team", preemption=LOWER), *others)


def claiming(name: str, workers: int, priority: int = 0) -> Json:
    of_gang = group("w", workers, priority=priority, **asking("one"))
    return ray_cluster(name, of_gang, head=template(priority=priority), labels=IN_TEAM)


def protect_claims(world: World) -> None:
    """Have the claims outlast their pods, as while kubelets still unprepare the devices."""
    for claim in list(world.api.all("resourceclaims")):
        world.api.change(claim, lambda obj: obj["metadata"].update(finalizers=[PROTECTED]))


def end_protection(world: World) -> None:
    for claim in list(world.api.all("resourceclaims")):
        if "deletionTimestamp" in claim["metadata"]:
            world.api.remove(key_of(claim))


def test_a_gang_with_claims_ends_for_another_and_its_devices_are_free_with_its_claims() -> None:
    world = offering(6, 3)
    world.create(claiming("v", 3))
    world.settle(seconds=10)
    assert world.bound("v") == {"n1": 4}
    protect_claims(world)
    world.create(urgent("p", 3, labels=IN_TEAM))
    world.settle(seconds=10)
    assert (world.bound("p"), len(evicted(world))) == ({"n1": 4}, 4)
    world.create(claiming("q", 1, priority=5))
    world.settle(seconds=10)
    assert phases(world, "q", "v") == ["Queued", "Queued"]
    assert "gpu.example.com" in world.status("q")["message"]
    end_protection(world)
    world.settle(seconds=10)
    assert world.bound("q") == {"n1": 2}


def test_no_gang_ends_for_one_with_claims_and_its_message_says_so() -> None:
    """Whether the devices of others are enough for it is known once their claims are gone."""
    world = offering(4, 3)
    world.create(gang_of("v", 3, labels=IN_TEAM))
    world.settle(seconds=10)
    world.create(claiming("p", 2, priority=10))
    world.settle(seconds=10)
    assert phases(world, "v", "p") == ["Running", "Queued"]
    assert evicted(world) == []
    said = world.status("p")["message"]
    assert "no running gang is stopped for it: its pods claim devices" in said
    world.delete("rayclusters", "v")
    world.settle(seconds=10)
    assert world.bound("p") == {"n1": 3}
