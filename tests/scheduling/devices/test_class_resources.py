"""Devices by claim are counted by class and node: there, taken, promised."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from scheduling.devices import allocator
from scheduling.devices.class_resources import (
    MOST_CLASSES,
    STEPS_OF_ALL,
    ClassResources,
    class_resource,
    is_class,
    with_classes,
)
from scheduling.devices.node_index import DeviceFacts, NodeDevicesIndex, Pending
from scheduling.devices.outcome import Outcome
from scheduling.devices.pools import by_pool
from scheduling.devices.selection import Rules
from scheduling.diagnosis.holes import GpuPools, Pool, pools
from scheduling.model.devices.features import DEFAULT_FEATURES
from scheduling.model.devices.resource_claim import ClaimSpec, DeviceClass, DeviceRequest, Request
from scheduling.model.devices.resource_slice import DeviceID, ResourceSlice
from scheduling.model.node import Node
from scheduling.state.node_table import node_snapshot_of
from tests.scheduling.devices.builders import (
    DRIVER,
    TextSelectors,
    counters,
    device,
    partition,
    slice_of,
)

GPU, BIG = class_resource("gpu"), class_resource("big")
CLASSES = {"gpu": DeviceClass("gpu"), "big": DeviceClass("big", ("size=big",))}


def claims(of_class: str, count: int = 1) -> tuple[ClaimSpec, ...]:
    asked = DeviceRequest("r", of_class, count=count)
    return (ClaimSpec((Request("r", asked),)),)


def counted(
    *slices: ResourceSlice,
    taken: Iterable[tuple[str, str]] = (),
    pending: Mapping[str, Pending] | None = None,
    classes: Mapping[str, DeviceClass] = CLASSES,
) -> ClassResources:
    """What is counted on the nodes a and b; `taken` are devices by node."""
    rules = Rules(classes, TextSelectors(), DEFAULT_FEATURES)
    used = [DeviceID(DRIVER, *each) for each in taken]
    offered = {"cpu": 64_000, "memory": 2**40, "pods": 110}
    nodes = node_snapshot_of([Node(name, {}, (), False, offered) for name in "ab"])
    index = NodeDevicesIndex(DeviceFacts(slices, by_pool(used), rules, 1))
    return with_classes(nodes, index, pending or {})


def amounts(found: ClassResources, resource: str) -> tuple[list[int], list[int]]:
    row = found.nodes.row[resource]
    return found.nodes.allocatable[row].tolist(), found.nodes.used[row].tolist()


def pool_of(found: ClassResources, resource: str) -> Pool:
    [pool] = pools(found.nodes, found.reserved, GpuPools((resource,)))
    return pool


def test_of_partitions_those_count_that_claims_find_one_after_the_other() -> None:
    whole = partition("whole", memory=40, size="big")
    parts = [partition(f"part-{at}", memory=10, size="small") for at in range(5)]
    slices = [slice_of([whole, *parts], "a", of=2), counters("a", gpu_0=40, of=2)]
    assert amounts(counted(*slices), GPU) == ([1, 0], [0, 0]), "the whole comes first"
    assert amounts(counted(*slices, taken=[("a", "part-0")]), GPU) == ([4, 0], [1, 0])
    assert amounts(counted(*slices, taken=[("a", "whole")]), BIG) == ([1, 0], [1, 0])
    some = counted(*slices, taken=[("a", "part-1")])
    assert BIG not in some.names, "no whole GPU is left"


def test_a_device_counts_in_each_class_that_selects_it() -> None:
    devices = [device("d0", size="big"), device("d1", size="small")]
    found = counted(slice_of(devices, "a"), slice_of(devices[1:], "b"), taken=[("a", "d0")])
    assert found.names == (BIG, GPU)
    assert amounts(found, GPU) == ([2, 1], [1, 0])
    assert amounts(found, BIG) == ([1, 0], [1, 0])


def test_what_pods_on_their_way_will_get_is_promised() -> None:
    """The allocator gives the pods of class gpu the first devices, the big one among them."""
    devices = [device("d0", size="big"), *(device(f"d{n}") for n in (1, 2, 3))]
    pending = {"a": ((claims("gpu"), 2),), "b": ((claims("gpu"), 1),)}
    found = counted(slice_of(devices, "a"), taken=[("a", "d3")], pending=pending)
    assert amounts(found, GPU) == ([4, 0], [3, 0])
    assert found.reserved == {("a", GPU): 2, ("a", BIG): 1}
    pool = pool_of(found, GPU)
    assert (pool.allocatable, pool.reserved, pool.free) == (4, 2, 1)
    assert pool.holes == (1, 0, 0, 0)


def test_promises_that_cannot_be_foreseen_count_as_nothing() -> None:
    """More is claimed than there is: that pod gets nothing here, and the next one its own."""
    pending = {"a": ((claims("gpu", 5), 1), (claims("gpu"), 1))}
    found = counted(slice_of([device("d0"), device("d1")], "a"), pending=pending)
    assert found.reserved == {("a", GPU): 1}


def test_tainted_devices_count_while_they_are_in_use() -> None:
    devices = [device("d0", tainted=True), device("d1", tainted=True), device("d2")]
    found = counted(slice_of(devices, "a"), taken=[("a", "d0")])
    assert amounts(found, GPU) == ([2, 0], [1, 0])


def test_devices_that_several_nodes_reach_and_incomplete_pools_are_left_out() -> None:
    far, half = slice_of([device("d0")]), slice_of([device("d0")], "a", of=2)
    found = counted(far, half, taken=[("shared", "d0")])
    assert (found.names, found.reserved) == ((), {})
    assert not any(map(is_class, found.nodes.resources))


def test_of_many_classes_those_with_the_most_devices_are_counted() -> None:
    many = {f"c{n:02}": DeviceClass(f"c{n:02}") for n in range(MOST_CLASSES + 5)}
    rare = {"a-rare": DeviceClass("a-rare", ("size=big",))}
    devices = [device("d0", size="big"), device("d1")]
    found = counted(slice_of(devices, "a"), classes={**rare, **many})
    assert len(found.names) == MOST_CLASSES
    assert class_resource("a-rare") not in found.names
    assert class_resource("c00") in found.names


def hard(number: int) -> tuple[ClaimSpec, ...]:
    """Return what no search decides soon: any devices, and one more that does not exist."""
    most = DeviceRequest(f"most-{number}", "gpu", count=10)
    return (ClaimSpec((Request("most", most), Request("none", DeviceRequest("r", "big")))),)


def test_pods_whose_devices_take_long_to_foresee_share_the_steps_of_one_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tenant may make any number of them, and the metrics wait for the count."""
    spent: list[int] = []
    search = allocator.allocate

    def noted(*asked: Any) -> Outcome:
        before, found = asked[-1].left, search(*asked)
        spent.append(before - asked[-1].left)
        return found

    monkeypatch.setattr("scheduling.devices.class_resources.allocate", noted)
    slices = [slice_of([device(f"d{n:02}") for n in range(24)], each) for each in "ab"]
    pending = {
        "a": ((claims("gpu"), 1), *((hard(number), 99) for number in range(60))),
        "b": ((hard(0), 1), (claims("gpu"), 1)),
    }
    found = counted(*slices, pending=pending)
    assert sum(spent) <= STEPS_OF_ALL
    assert found.reserved[("a", GPU)] == 1
    few = {"a": ((hard(0), 99),), "b": ((hard(0), 1), (claims("gpu"), 1))}
    spent.clear()
    assert counted(*slices, pending=few).reserved == {("b", GPU): 1}
    assert len(spent) == 2, "equal ones are tried once"
