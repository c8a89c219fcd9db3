"""Devices by claim are told of as GPUs are: by class and pool, in metrics and in queues."""

from scheduling.devices.class_resources import class_resource
from tests.coordinator.builders import Json, group, node, ray_cluster
from tests.coordinator.device_world import asking, claim_template, device_class, device_slice
from tests.coordinator.journeys.queues.worlds import queue, status_of
from tests.coordinator.scraping import scrape_world, value
from tests.coordinator.world import World
from tests.kube.devices.objects import GPU

CLASS = class_resource(GPU)
H100 = {"nvidia.com/gpu.product": "H100"}


def offering() -> list[Json]:
    nodes = [node("n1", cpu=64, labels=H100), node("n2", cpu=64)]
    slices = [device_slice("n1", 8), device_slice("n2", 2)]
    return [*nodes, *slices, device_class(), claim_template("one")]


def gang(workers: int) -> Json:
    return ray_cluster("a", group("w", workers, **asking("one")))


def devices(what: str, pool: str = "H100") -> float:
    return value(f"muster_gpus_{what}", pool=pool, resource=CLASS)


def holes(pool: str = "H100") -> list[float]:
    return [value("muster_holes", pool=pool, resource=CLASS, size=size) for size in "1248"]


async def test_devices_are_promised_until_they_are_allocated() -> None:
    world = World(*offering())
    world.scheduler = False
    world.create(gang(3))
    world.settle(seconds=5)
    await scrape_world(world)
    assert (devices("allocatable"), devices("allocatable", "none")) == (8, 2)
    there = [devices(what, pool) for what in ("reserved", "free") for pool in ("H100", "none")]
    assert (sum(there[:2]), sum(there[2:])) == (3, 7)
    world.scheduler = True
    world.settle(seconds=5)
    await scrape_world(world)
    assert sum(devices("reserved", pool) for pool in ("H100", "none")) == 0
    assert sum(devices("free", pool) for pool in ("H100", "none")) == 7
    assert holes("none")[2:] == [0, 0]


async def test_a_cluster_without_claims_tells_of_no_class() -> None:
    """There are slices and classes, and no pod of a gang claims a device."""
    world = World(*offering())
    world.create(ray_cluster("a", group("w", 1)))
    world.settle(seconds=5)
    page = await scrape_world(world)
    assert CLASS not in page


def test_a_queue_tells_how_many_pods_fit_by_devices_of_a_class() -> None:
    world = World(*offering(), queue("red", cpu=64))
    claiming = gang(3)
    claiming["metadata"].setdefault("labels", {})["muster.dev/queue"] = "red"
    world.create(claiming)
    world.settle(seconds=60)
    found = status_of(world, "red")["holes"]
    by_size = {each["size"]: each.get("pods", 0) for each in found if each["resource"] == CLASS}
    assert by_size[1] == 7


def with_capacity(found: Json, memory: str) -> Json:
    """Devices of which claims may have shares."""
    for each in found["spec"]["devices"]:
        each |= {"allowMultipleAllocations": True, "capacity": {"memory": {"value": memory}}}
    return found


def of_all_nodes(found: Json) -> Json:
    del found["spec"]["nodeName"]
    found["spec"]["allNodes"] = True
    return found


async def shown(name: str, found: Json, pods: int, **labels: str) -> float:
    """The value of a metric while a gang of so many pods has devices of a slice reserved."""
    world = World(
        node("n1", cpu=64), node("n2", cpu=64), found, device_class(), claim_template("one")
    )
    world.scheduler = False
    world.create(gang(pods))
    world.settle(seconds=5)
    await scrape_world(world)
    return value(name, resource=CLASS, **labels)


async def of_far(name: str) -> float:
    """Of four devices that all nodes reach three are reserved."""
    return await shown(name, of_all_nodes(device_slice("fabric", 4)), 3, pool="fabric")


async def of_shared(name: str, **labels: str) -> float:
    """Of two devices with a capacity of 8 each one is reserved."""
    found = with_capacity(device_slice("n1", 2), "8")
    return await shown(name, found, 1, pool="none", **labels)


async def test_muster_far_devices_moves() -> None:
    assert await of_far("muster_far_devices") == 4


async def test_muster_far_devices_reserved_moves() -> None:
    assert await of_far("muster_far_devices_reserved") == 3


async def test_muster_far_devices_free_moves() -> None:
    assert await of_far("muster_far_devices_free") == 1


async def test_muster_shared_devices_moves() -> None:
    assert await of_shared("muster_shared_devices") == 2


async def test_muster_shared_devices_with_room_moves() -> None:
    assert await of_shared("muster_shared_devices_with_room") == 1


async def test_muster_shared_capacity_moves() -> None:
    assert await of_shared("muster_shared_capacity", capacity="memory") == 16


async def test_muster_shared_capacity_free_moves() -> None:
    assert await of_shared("muster_shared_capacity_free", capacity="memory") == 8
