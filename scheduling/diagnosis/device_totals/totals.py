"""Counts, by class and pool, shared devices and devices that several nodes reach.

A shared device is neither free nor taken, so the report states how much of its capacity is. A
device that several nodes reach counts once, whatever the number of nodes. A device that is tainted,
or not fully judged, counts only while a claim has it, as on one node.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduling.devices.class_resources import MOST_CLASSES, class_resource
from scheduling.devices.counting import FarDevices
from scheduling.devices.node_devices import REACHED_BY_OTHERS
from scheduling.devices.node_index import NodeDevicesIndex, Pending
from scheduling.devices.pools import PoolDevice
from scheduling.devices.selection import Rules, tolerated
from scheduling.diagnosis.device_totals.sights import Sight, drawn_from_afar, sights
from scheduling.diagnosis.holes import MOST_POOLS, OTHER
from scheduling.model.devices.in_use import InUse
from scheduling.model.devices.resource_claim import DeviceRequest
from scheduling.model.devices.resource_slice import DeviceID
from scheduling.model.node import Node


class CapacityUse(NamedTuple):
    """One capacity of shared devices, in thousandths: used by claims, promised to pods, and all."""

    name: str
    used: int
    reserved: int
    whole: int

    @property
    def free(self) -> int:
        """What is neither used nor promised."""
        return self.whole - self.used - self.reserved


@dataclass(frozen=True, slots=True)
class SharedPool:
    """Shared devices of a class in one pool; of those `with_room` no capacity is used up."""

    name: str
    resource: str
    nodes: int
    devices: int
    with_room: int
    capacity: tuple[CapacityUse, ...]


@dataclass(frozen=True, slots=True)
class FarPool:
    """Devices of a class in one pool of a driver that so many nodes reach, each counted once."""

    name: str
    resource: str
    nodes: int
    devices: int
    used: int
    reserved: int
    free: int


@dataclass(frozen=True, slots=True)
class DeviceTotals:
    """What of devices is not in the numbers of nodes, the largest pools of each class first."""

    shared: tuple[SharedPool, ...] = ()
    far: tuple[FarPool, ...] = ()


def device_totals(
    nodes: Iterable[Node],
    devices: NodeDevicesIndex,
    pending: Mapping[str, Pending],
    pool_of: Callable[[Node], str],
) -> DeviceTotals:
    """Count them; `pending` are the pods that are to come to nodes, `pool_of` names pools."""
    there = tuple(nodes)
    seen = list(sights(there, devices, pending, pool_of))
    if not seen:
        return DeviceTotals()
    rules = devices.rules
    by_class = {each: _of_class(each, seen, rules) for each in rules.classes}
    drawn = drawn_from_afar(there, devices, pending)
    largest = sorted(by_class, key=lambda name: (-_number(by_class[name].values()), name))
    shared, far = list[SharedPool](), list[FarPool]()
    for name in sorted(largest[:MOST_CLASSES]):
        shared += _shared_pools(name, by_class[name])
        far += _far_pools(name, by_class[name], drawn)
    return DeviceTotals(tuple(shared), tuple(far))


# ---- what there is of a class in a pool


class _Shared(NamedTuple):
    """A shared device: its capacity, and whether something is left of all of it."""

    capacity: tuple[CapacityUse, ...]
    has_room: bool


@dataclass(slots=True)
class _Found:
    """The devices of a class in a pool: of far ones whether they are free."""

    shared: dict[DeviceID, _Shared] = field(default_factory=dict)
    far: dict[DeviceID, bool] = field(default_factory=dict)
    nodes_of_shared: int = 0
    nodes_of_far: int = 0

    def add(self, other: "_Found") -> None:
        """Take in what was found of other nodes; a device counts once."""
        self.shared |= other.shared
        self.far |= other.far
        self.nodes_of_shared += other.nodes_of_shared
        self.nodes_of_far += other.nodes_of_far


def _number(found: Iterable[_Found]) -> int:
    return sum(len(each.shared) + len(each.far) for each in found)


def _of_class(name: str, seen: Iterable[Sight], rules: Rules) -> Mapping[str, _Found]:
    by_pool: defaultdict[str, _Found] = defaultdict(_Found)
    for sight in seen:
        by_pool[sight.pool].add(_in_sight(name, sight, rules))
    return by_pool


def _in_sight(name: str, sight: Sight, rules: Rules) -> _Found:
    found, asked = _Found(), DeviceRequest(name, name)
    answers, in_use = sight.found.selections(asked, rules), sight.found.in_use
    for at in sight.at:
        each = sight.found.usable[at]
        if answers[at] is not True:
            continue
        is_open = _is_judged(each) and tolerated(asked, each, rules.features)
        if each.shared and (is_open or _is_used(each.id, in_use)):
            found.shared[each.id] = _share(each, in_use, sight.after, is_open=is_open)
        elif not each.shared and (is_open or each.id in in_use):
            found.far[each.id] = each.id not in in_use
    found.nodes_of_shared = sight.nodes if found.shared else 0
    found.nodes_of_far = sight.nodes if found.far else 0
    return found


def _is_judged(each: PoolDevice) -> bool:
    return each.unsupported in ("", REACHED_BY_OTHERS) and not each.device.consumes_counters


def _is_used(device: DeviceID, in_use: InUse) -> bool:
    return device in in_use or in_use.consumed(device) is not None


def _share(each: PoolDevice, now: InUse, after: InUse, *, is_open: bool) -> _Shared:
    used, then = dict(now.consumed(each.id) or ()), dict(after.consumed(each.id) or ())
    taken = each.id in now
    capacity = tuple(
        CapacityUse(
            of.name,
            of.amount if taken else used.get(of.name, 0),
            0 if taken else then.get(of.name, 0) - used.get(of.name, 0),
            of.amount,
        )
        for of in each.device.capacities or ()
    )
    left = all(of.free > 0 for of in capacity)
    return _Shared(capacity, is_open and not taken and left)


# ---- what is told of it


def _shared_pools(name: str, by_pool: Mapping[str, _Found]) -> Iterator[SharedPool]:
    for pool, found in _capped({p: each for p, each in by_pool.items() if each.shared}).items():
        every = found.shared.values()
        yield SharedPool(
            pool,
            class_resource(name),
            found.nodes_of_shared,
            len(every),
            sum(each.has_room for each in every),
            _summed(use for each in every for use in each.capacity),
        )


def _summed(uses: Iterable[CapacityUse]) -> tuple[CapacityUse, ...]:
    sums: dict[str, tuple[int, int, int]] = {}
    for each in uses:
        before = sums.get(each.name, (0, 0, 0))
        sums[each.name] = (
            before[0] + each.used,
            before[1] + each.reserved,
            before[2] + each.whole,
        )
    return tuple(CapacityUse(name, *sums[name]) for name in sorted(sums))


def _far_pools(
    name: str, by_pool: Mapping[str, _Found], drawn: Mapping[FarDevices, int]
) -> Iterator[FarPool]:
    found = {pool: each for pool, each in by_pool.items() if each.far}
    promised = _promised(found, drawn)
    reserved = Counter(promised)
    for pool in found.keys() - _largest(found):
        reserved[OTHER] += reserved.pop(pool, 0)
    for pool, each in _capped(found).items():
        free = sum(each.far.values())
        coming = min(reserved[pool], free)
        yield FarPool(
            *(pool, class_resource(name), each.nodes_of_far, len(each.far)),
            *(len(each.far) - free, coming, free - coming),
        )


def _promised(found: Mapping[str, _Found], drawn: Mapping[FarDevices, int]) -> Mapping[str, int]:
    """Return by pool how many devices are promised: pools are tried in the order of their names."""
    left = {pool: sum(each.far.values()) for pool, each in found.items()}
    promised: Counter[str] = Counter()
    every = {device for each in found.values() for device in each.far}
    for devices, number in drawn.items():
        rest = number if devices <= every else 0
        for pool in sorted({each.pool for each in devices} & left.keys()):
            more = min(rest, left[pool] - promised[pool])
            promised[pool] += more
            rest -= more
    return promised


def _capped(by_pool: Mapping[str, _Found]) -> Mapping[str, _Found]:
    """Return the largest pools, and all others as one."""
    largest = _largest(by_pool)
    found = {pool: by_pool[pool] for pool in largest}
    for pool in by_pool.keys() - set(largest):
        found.setdefault(OTHER, _Found()).add(by_pool[pool])
    return found


def _largest(by_pool: Mapping[str, _Found]) -> list[str]:
    return sorted(by_pool, key=lambda pool: (-_number([by_pool[pool]]), pool))[:MOST_POOLS]
