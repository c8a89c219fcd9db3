"""Devices of no node alone are told: how much of shared ones is left, and far ones each once."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from scheduling.devices.class_resources import class_resource
from scheduling.devices.node_index import DeviceFacts, NodeDevicesIndex, Pending
from scheduling.devices.pools import by_pool
from scheduling.devices.selection import Rules
from scheduling.diagnosis.device_totals.totals import (
    CapacityUse,
    DeviceTotals,
    FarPool,
    SharedPool,
    device_totals,
)
from scheduling.diagnosis.holes import MOST_POOLS, OTHER
from scheduling.model.constraints import NodeTerm, Requirement
from scheduling.model.devices.features import DEFAULT_FEATURES
from scheduling.model.devices.in_use import TakenDevice
from scheduling.model.devices.resource_claim import ClaimSpec, DeviceClass, DeviceRequest, Request
from scheduling.model.devices.resource_slice import Device, DeviceID, NodeAccess, ResourceSlice
from scheduling.model.node import Node
from tests.scheduling.devices.builders import (
    DRIVER,
    TextSelectors,
    claim,
    device,
    share,
    shared,
    slice_of,
    some,
)

CLASSES = {"gpu": DeviceClass("gpu"), "big": DeviceClass("big", ("size=big",))}
GPU, BIG = class_resource("gpu"), class_resource("big")


def totals(
    *slices: ResourceSlice,
    taken: Iterable[TakenDevice] = (),
    pending: Mapping[str, Pending] | None = None,
    nodes: str = "abc",
) -> DeviceTotals:
    rules = Rules(CLASSES, TextSelectors(), DEFAULT_FEATURES)
    there = [Node(name, {"pool": f"p-{name}"}, (), False, {}) for name in nodes]
    index = NodeDevicesIndex(DeviceFacts(slices, by_pool(taken), rules, 1))
    return device_totals(there, index, pending or {}, lambda node: node.labels["pool"])


def far(*devices: Device, name: str = "fabric", but: str = "") -> ResourceSlice:
    """Return devices that all nodes reach, or all but one."""
    term = NodeTerm((Requirement("pool", "NotIn", (f"p-{but}",)),), ())
    access = NodeAccess(node_selector=(term,)) if but else NodeAccess(all_nodes=True)
    return replace(slice_of(devices, name=name), pool=name, access=access)


def claims(count: int, of_class: str = "gpu") -> tuple[ClaimSpec, ...]:
    asked = DeviceRequest("r", of_class, count=count)
    return (ClaimSpec((Request("r", asked),)),)


def test_of_shared_devices_it_is_told_how_much_of_their_capacity_is_left() -> None:
    two = slice_of([shared("d0", memory=40), shared("d1", memory=40)], "a")
    one = slice_of([shared("d0", memory=80)], "b")
    taken = [share("d0", 1, memory=30), share("d0", 2, memory=10), share("d1", 3, memory=5)]
    pending = {"b": (((claim(some(memory=20)),), 2),)}
    found = totals(two, one, taken=taken, pending=pending)
    assert found.far == ()
    assert found.shared == (
        SharedPool("p-a", GPU, 1, 2, 1, (CapacityUse("memory", 45, 0, 80),)),
        SharedPool("p-b", GPU, 1, 1, 1, (CapacityUse("memory", 0, 40, 80),)),
    )


def test_a_shared_device_of_no_capacity_has_room_until_it_is_taken_as_a_whole() -> None:
    devices = slice_of([shared("d0"), shared("d1", memory=8)], "a")
    [pool] = totals(devices).shared
    assert (pool.devices, pool.with_room) == (2, 2)
    [pool] = totals(devices, taken=[DeviceID(DRIVER, "a", "d1")]).shared
    assert (pool.with_room, pool.capacity) == (1, (CapacityUse("memory", 8, 0, 8),))


def test_devices_that_several_nodes_reach_count_once() -> None:
    fabric = far(*(device(f"d{n}", size="big" if n < 2 else "small") for n in range(5)), but="c")
    taken = [DeviceID(DRIVER, "fabric", "d0")]
    found = totals(fabric, taken=taken, pending={"b": ((claims(1), 2),)})
    assert found.shared == ()
    assert set(found.far) == {
        FarPool("fabric", BIG, 2, 2, 1, 0, 1),
        FarPool("fabric", GPU, 2, 5, 1, 2, 2),
    }


def test_what_is_promised_of_several_pools_is_taken_in_their_order() -> None:
    pools = [far(device("d0"), name="x"), far(device("d0"), device("d1"), name="y")]
    found = totals(*pools, pending={"a": ((claims(2), 1),)}).far
    assert {each.name: (each.reserved, each.free) for each in found} == {"x": (1, 0), "y": (1, 1)}


def test_a_device_of_its_own_nodes_by_selector_of_each_counts_once_as_well() -> None:
    """A pool that nodes reach in parts: the numbers are those of all of them."""
    every, some_nodes = NodeAccess(all_nodes=True), far(but="c").access
    assert some_nodes is not None
    devices = [
        replace(device("d0"), access=every),
        replace(device("d1"), access=some_nodes),
        replace(device("d2"), access=NodeAccess(node_name="a")),
    ]
    fabric = replace(slice_of(devices), access=None, pool="fabric")
    assert totals(fabric).far == (FarPool("fabric", GPU, 3, 2, 0, 0, 2),)


def test_tainted_devices_count_while_they_are_in_use() -> None:
    devices = [device("d0", tainted=True), device("d1", tainted=True), device("d2")]
    taken = [DeviceID(DRIVER, "fabric", "d0")]
    assert totals(far(*devices), taken=taken).far == (FarPool("fabric", GPU, 3, 2, 1, 0, 1),)


def test_devices_of_one_node_are_none_of_these() -> None:
    assert totals(slice_of([device("d0")], "a")) == DeviceTotals()


def test_pools_beyond_the_largest_count_as_one() -> None:
    many = [far(device("d0"), name=f"x{n:02}") for n in range(MOST_POOLS + 3)]
    found = {each.name: each for each in totals(*many).far}
    assert len(found) == MOST_POOLS + 1
    assert (found[OTHER].devices, found[OTHER].free) == (3, 3)
