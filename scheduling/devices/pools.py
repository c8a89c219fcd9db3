"""Gathers the pools of devices that a node reaches, in the order in which they are tried.

Answers to GatherPools of kube-scheduler's allocator (k8s.io/dynamic-resource-allocation,
structured/internal/incubating) in Kubernetes 1.36 and 1.37. Counters that devices of several nodes
share are not modelled: what they could change is named as unsupported.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from scheduling.model.amounts import MOST, Amounts
from scheduling.model.devices.features import Features
from scheduling.model.devices.in_use import TakenDevice
from scheduling.model.devices.resource_slice import (
    CounterSet,
    Device,
    DeviceID,
    NodeAccess,
    ResourceSlice,
)
from scheduling.model.node import Node
from scheduling.model.node_terms import matches

COUNTERS = "counters that devices of several nodes share"
DEVICES_BESIDE_COUNTERS = "devices in a slice that holds counters"
COUNTERS_OF_ONE_NAME = "counters in pools of two drivers that have one name"
BINDING_CONDITIONS = "binding conditions of devices"
SLICE_COUNTS = "slices of a pool that differ in their number of slices"


class PoolKey(NamedTuple):
    """What names a pool: drivers may use the same names."""

    driver: str
    pool: str


Taken = Mapping[PoolKey, frozenset[TakenDevice]]
"""What claims have of devices, by pool: the same set as before where nothing of a pool changed."""


def by_pool(taken: Iterable[TakenDevice]) -> Taken:
    """Return devices by their pools."""
    found: defaultdict[PoolKey, set[TakenDevice]] = defaultdict(set)
    for device in taken:
        found[PoolKey(device.driver, device.pool)].add(device)
    return {key: frozenset(devices) for key, devices in found.items()}


class PoolDevice(NamedTuple):
    """A device of a pool, as one node sees it.

    `reached` says that the node reaches it, `local` that no other does, `shared` that several
    claims may have it. `unsupported` says why it cannot be judged, "" where it can.
    """

    id: DeviceID
    device: Device
    reached: bool
    local: bool
    unsupported: str
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool as one node sees it: the devices of the slices that are for the node, in order.

    An incomplete or invalid pool gives no devices. Pools with binding conditions are tried after
    all others. Devices may consume the `counters`. `unsupported` names what of the pool as a whole
    is not modelled; then it may be incomplete or invalid to kube-scheduler, or not.
    """

    key: PoolKey
    devices: tuple[PoolDevice, ...] = ()
    incomplete: bool = False
    invalid: bool = False
    binding_conditions: bool = False
    counters: tuple[CounterSet, ...] = ()
    unsupported: str = ""


class SliceIndex:
    """ResourceSlices by what they are looked up by: the node that they name, and the pool.

    `broken_counters` is a pool that is incomplete or invalid, with counters in a slice that names
    its node. To Kubernetes 1.36 it is there on all nodes; 1.37 keeps it to its own.
    """

    def __init__(self, slices: Iterable[ResourceSlice]) -> None:
        self._by_node: defaultdict[str, list[ResourceSlice]] = defaultdict(list)
        self._by_pool: defaultdict[PoolKey, list[ResourceSlice]] = defaultdict(list)
        local: set[PoolKey] = set()
        for each in slices:
            self._by_node[each.access.node_name if each.access else ""].append(each)
            self._by_pool[_key(each)].append(each)
            if each.shared_counters and each.access is not None and each.access.node_name:
                local.add(_key(each))
        self._numbers: tuple[tuple[Node, ...], Amounts] = (), np.zeros(0, dtype=np.int64)
        broken = (key for key in local if not _is_whole(self._by_pool[key]))
        self.broken_counters = min(broken, default=None)

    def may_reach(self, node: str) -> Iterable[ResourceSlice]:
        """Return the slices that name the node, and those that name none."""
        return (*self._by_node.get(node, ()), *self._by_node.get("", ()))

    def of_node_alone(self, node: str) -> Sequence[ResourceSlice]:
        """Return the slices that name a node, if no others matter to it; () where some may."""
        own = self._by_node.get(node, ())
        pools = {_key(each) for each in own}
        if "" in self._by_node or self.broken_counters is not None:
            return ()
        return own if sum(len(self._by_pool[key]) for key in pools) == len(own) else ()

    def number_of_devices(self, node: str) -> int:
        """Return how many devices the slices have that may reach a node."""
        return sum(len(each.devices) for each in self.may_reach(node))

    def numbers_on(self, nodes: tuple[Node, ...]) -> Amounts:
        """Return numbers of devices that are not exceeded by those that each node reaches.

        The array is shared, never to be written.
        """
        if self._numbers[0] is not nodes:
            here = {node: sum(map(_number, of)) for node, of in self._by_node.items()}
            everywhere = here.get("", 0)
            found = [here.get(node.name, 0) + everywhere for node in nodes]
            self._numbers = nodes, np.array(found, dtype=np.int64)
        return self._numbers[1]

    def of_pool(self, key: PoolKey) -> Sequence[ResourceSlice]:
        """Return all slices of a pool, whoever reaches them."""
        return self._by_pool.get(key, ())


def gather_pools(node: Node, slices: SliceIndex, features: Features) -> tuple[Pool, ...]:
    """Return the pools that the node reaches, in the order in which they are tried."""
    newest: dict[PoolKey, list[ResourceSlice]] = {}
    for each in slices.may_reach(node.name):
        if _known(each, features) and _is_for(each, node):
            _add(newest, each)
    found = (_pool(key, of_node, slices, node, features) for key, of_node in newest.items())
    pools = [pool for pool in found if pool is not None]
    foreign = slices.broken_counters
    if features.partitionable_devices and foreign and foreign not in newest:
        pools.append(Pool(foreign, unsupported=COUNTERS))
    return tuple(sorted(_apart(pools), key=lambda pool: (pool.binding_conditions, pool.key)))


def _apart(pools: Sequence[Pool]) -> Iterator[Pool]:
    """Yield the pools, those with counters as unsupported where another driver's has their name.

    Kubernetes 1.36 keeps counters by the name alone.
    """
    names = Counter(pool.key.pool for pool in pools if pool.counters)
    for pool in pools:
        mixed = pool.counters and names[pool.key.pool] > 1
        yield _without_answer(pool, COUNTERS_OF_ONE_NAME) if mixed else pool


def _without_answer(pool: Pool, why: str) -> Pool:
    devices = (found._replace(unsupported=found.unsupported or why) for found in pool.devices)
    return replace(pool, devices=tuple(devices), unsupported=why)


def are_open(pools: Iterable[Pool], features: Features) -> bool:
    """Say whether kube-scheduler may allocate from pools of which not all is known, or fail there.

    1.34 allocates from incomplete pools, and gives a node up where it meets an invalid one.
    """
    return not features.passes_over_pools and any(p.incomplete or p.invalid for p in pools)


def _key(each: ResourceSlice) -> PoolKey:
    return PoolKey(each.driver, each.pool)


def _known(each: ResourceSlice, features: Features) -> bool:
    """Say whether kube-scheduler looks at the slice: without the gate it leaves such aside."""
    return features.partitionable_devices or not (each.access is None or each.shared_counters)


def _is_for(each: ResourceSlice, node: Node) -> bool:
    """Say whether the slice matters to the node: counters do wherever they are."""
    if each.shared_counters:
        return True
    if each.access is None:
        return any(_reaches(node, device.access) for device in each.devices)
    return _reaches(node, each.access)


def _reaches(node: Node, access: NodeAccess) -> bool:
    if access.node_name:
        return access.node_name == node.name
    if access.all_nodes or access.node_selector is None:
        return access.all_nodes
    return any(matches(term, node) for term in access.node_selector)


def _add(newest: dict[PoolKey, list[ResourceSlice]], each: ResourceSlice) -> None:
    """Add a slice to its pool, of which the newest generation alone is kept."""
    found = newest.setdefault(_key(each), [])
    if found and each.generation < found[0].generation:
        return
    if found and each.generation > found[0].generation:
        found.clear()
    found.append(each)


def _pool(
    key: PoolKey, of_node: list[ResourceSlice], slices: SliceIndex, node: Node, features: Features
) -> Pool | None:
    """Return the pool; None where a newer generation, of which the node sees nothing, replaces it.

    A pool may have slices that are not for the node: they count where it is asked for completeness.
    """
    whole: Sequence[ResourceSlice] = of_node
    if len({each.slice_count for each in of_node}) > 1:
        return Pool(key, unsupported=SLICE_COUNTS)
    wanted = of_node[0].slice_count
    if len(of_node) != wanted:
        every, generation = slices.of_pool(key), of_node[0].generation
        if any(each.generation > generation for each in every):
            return None if features.passes_over_pools else Pool(key, incomplete=True)
        whole = [each for each in every if each.generation == generation]
    if len(whole) != wanted:
        elsewhere = not any(each.access is None or _reaches(node, each.access) for each in of_node)
        return Pool(key, incomplete=not elsewhere, unsupported=COUNTERS if elsewhere else "")
    return _built(key, of_node, whole, node, features)


def _built(
    key: PoolKey,
    of_node: list[ResourceSlice],
    whole: Sequence[ResourceSlice],
    node: Node,
    features: Features,
) -> Pool:
    """Return a pool that is complete; one that names a device twice is invalid."""
    ordered = sorted(of_node, key=lambda each: each.name)
    devices = [(each, device) for each in ordered for device in each.devices]
    if len({device.name for _, device in devices}) < len(devices):
        return Pool(key, invalid=True)
    counters = _counters(whole) if features.partitionable_devices else ()
    unsupported = _unsupported(node, whole, counters)
    if counters is None and not unsupported:
        return Pool(key, invalid=True)
    return Pool(
        key,
        tuple(
            [
                PoolDevice(
                    DeviceID(key.driver, key.pool, device.name),
                    device,
                    each.access is not None or _reaches(node, device.access),
                    bool((each.access or device.access).node_name),
                    unsupported or _beyond(device),
                    features.consumable_capacity and device.content.allow_multiple_allocations,
                )
                for each, device in devices
                if features.device_binding_conditions or not device.binding_conditions
            ]
        ),
        binding_conditions=any(device.binding_conditions for _, device in devices),
        counters=counters or (),
        unsupported=unsupported,
    )


_is_shared = attrgetter("content.allow_multiple_allocations")


def _number(each: ResourceSlice) -> int:
    """Return how many pods the devices of a slice are enough for at most, one device each."""
    return MOST if any(map(_is_shared, each.devices)) else len(each.devices)


def _unsupported(
    node: Node,
    whole: Sequence[ResourceSlice],
    counters: tuple[CounterSet, ...] | None,
) -> str:
    """Name what of a pool is not modelled."""
    if counters and not _is_of(node, whole):
        return COUNTERS
    if counters and any(of.shared_counters and of.devices for of in whole):
        return DEVICES_BESIDE_COUNTERS
    return ", ".join(dict.fromkeys(said for each in whole for said in each.unsupported))


def _is_of(node: Node, slices: Iterable[ResourceSlice]) -> bool:
    """Say whether all devices of some slices are this node's."""
    return all(
        (each.access or device.access).node_name == node.name
        for each in slices
        for device in each.devices
    )


def _is_whole(slices: Sequence[ResourceSlice]) -> bool:
    """Say whether the newest generation of a pool is complete and valid."""
    generation = max(each.generation for each in slices)
    newest = [each for each in slices if each.generation == generation]
    if any(each.slice_count != len(newest) for each in newest):
        return False
    names = {device.name for each in newest for device in each.devices}
    distinct = len(names) == sum(len(each.devices) for each in newest)
    return distinct and _counters(newest) is not None


def _counters(slices: Sequence[ResourceSlice]) -> tuple[CounterSet, ...] | None:
    """Return the counters of a pool; None where devices consume others, or a set is there twice."""
    found = tuple([each for of in slices for each in of.shared_counters])
    known = {each.name: dict(each.counters) for each in found}
    valid = len(known) == len(found) and all(_consume_of(known, of.devices) for of in slices)
    return found if valid else None


def _consume_of(known: Mapping[str, Mapping[str, int]], devices: Iterable[Device]) -> bool:
    """Say whether devices consume these counters alone."""
    for device in devices:
        for each in device.consumes_counters:
            there = known.get(each.name)
            if there is None:
                return False
            for name, _ in each.counters:
                if name not in there:
                    return False
    return True


def _beyond(device: Device) -> str:
    """Name what of the device is not modelled."""
    if device.binding_conditions:
        return BINDING_CONDITIONS
    return ", ".join(device.unsupported) if device.unsupported else ""
