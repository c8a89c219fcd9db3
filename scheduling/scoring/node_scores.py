"""Scores nodes by the devices that a pod would strand there (fragmentation gradient).

A device is stranded when the processor and memory left on its node are too little for what the
cluster's device pods typically take beside one device, for then no such pod will use it. A pod
goes where it adds the fewest stranded devices, in steps of a tenth of a device,
then where the smallest share of the devices is idle: a share, so that small nodes, which are often
the rare ones, are not used up before large ones. So a pod that is hungry for CPU goes where CPU
abounds, a frugal one where CPU is short, one without devices to nodes whose devices are taken, and
whole machines stay free.

Typical use: per resource, the median used per device in use, over nodes with devices in use; a
median, so that the few nodes full of CPU pods do not count. Where no device is in use nothing is
typical, and nothing is stranded. No number is fitted to a workload; `docs/benchmarks-packing.md`
has the results.

Nodes that an autoscaler would like to take away come after all others.

In numbers, with i idle devices and f_r of resource r left, t_r the typical use per device:
stranded = max(0, i - min over r of f_r / t_r). Where pods of one shape fill a node, the mean
per pod counts. Ties: what the rest of the gang loses, then, for pods without devices, the tightest
node, then the name.

Devices are counted in thousandths (`PARTS`), so that a caller that knows of shares can say so.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from math import gcd

import numpy as np
from numpy.typing import NDArray

from scheduling.filters.free_capacity import At, FreeCapacity
from scheduling.filters.node_removal import safest
from scheduling.model.amounts import CPU, MEMORY, MOST, Amounts, Mask, Positions, is_device
from scheduling.model.pod import PodShape
from scheduling.scoring.lexical_order import Key, in_lexical_order

PARTS = 1000
"""What a device counts for."""

STEP = PARTS // 10
"""Stranding that differs by less than a tenth of a device is equal."""

SAMPLE = 1500
"""Typical use is taken from so many nodes at most: their median is near enough to that of all."""

GOLDEN = (5**0.5 - 1) / 2


POINTS = 10
"""The best score of a scheduler extender (MaxExtenderPriority of kube-scheduler)."""

Uses = NDArray[np.float64]


# --- the measure, on plain arrays -----------------------------------------------------------


def typical_use(devices: Amounts, taken: Iterable[Amounts], parts: int = PARTS) -> list[int]:
    """Return per resource (row of `taken`) the median use beside one device, over the nodes.

    `devices` in use per node are counted in `parts` of one; of an even number the lower median
    counts.
    """
    return median_use(use_beside(devices, [amounts * parts for amounts in taken]))


def use_beside(devices: Amounts, taken: Sequence[Amounts]) -> Uses:
    """Return per resource and node what is in use per device in use; NaN where none is.

    The quotients are rounded, but never past a whole number where what is in use and the devices
    add up to less than 2^53: only a whole quotient is nearer to it than 1 / devices.
    """
    each = devices.astype(np.float64)
    each[devices <= 0] = np.nan
    uses = np.empty((len(taken), len(devices)))
    for use, amounts in zip(uses, taken, strict=True):
        np.divide(amounts, each, out=use)
    return uses


def median_use(uses: Uses) -> list[int]:
    """Return per resource the lower median over the nodes with devices in use; 0 without any."""
    if not uses.size:
        return [0] * len(uses)
    nodes = uses.shape[1] - int(np.count_nonzero(np.isnan(uses[0])))
    if not nodes:
        return [0] * len(uses)
    middle = (nodes - 1) // 2  # those without devices come last
    return [max(int(use[middle]), 0) for use in np.partition(uses, middle)]


def served(idle: Amounts, free: Iterable[Amounts], typical: Iterable[int]) -> Amounts:
    """Return per node the parts of idle devices that what is left beside them can serve.

    `free` has a row per resource, within LIMIT; `typical` says what one device needs of it, zero
    nothing.
    """
    found = idle
    for left, each in zip(free, typical, strict=True):
        if each > 0:
            enough = left * PARTS
            enough //= each
            found = np.minimum(found, enough, out=enough)
    return np.maximum(found, 0)  # below where overcommitted


def strands(
    idle: Amounts,
    takes: int | Amounts,
    free: Iterable[Amounts],
    requests: Iterable[int | Amounts],
    typical: Iterable[int],
) -> Amounts:
    """Return what taking devices and resources adds to the stranded devices, in steps.

    `requests` has a row per resource as `free`: one amount for all nodes, or one per node.
    """
    free, typical = list(free), list(typical)
    left = [each - asked for each, asked in zip(free, requests, strict=True)]
    added = served(idle, free, typical)
    added -= served(idle - takes, left, typical)
    added -= takes
    added += STEP // 2
    added //= STEP
    return added


# --- the measure, for a shape in a room -----------------------------------------------------


Cost = Key
"""What the rest of the gang loses by a pod on each of these nodes."""


def no_cost(nodes: Positions) -> Amounts:
    """Say that the rest of the gang loses nothing."""
    return np.zeros(len(nodes), dtype=np.int64)


def best_nodes(
    shape: PodShape, room: FreeCapacity, nodes: Positions, cost: Cost, count: int = 1
) -> Positions:
    """Return the nodes that `count` pods of the shape should fill, in this order.

    `nodes` are positions in order of name that take at least one pod, so that no more than
    `count` are needed.
    """
    safe = safest(room.columns.traits)
    if safe is not None and int(np.count_nonzero(safe[nodes])) >= count:
        nodes, safe = nodes[safe[nodes]], None
    keys = _keys(shape, room, cost, count)
    if safe is None and not _asks_for_devices(shape):
        bare = nodes[_without_idle_devices(room)[nodes].nonzero()[0]]
        if len(bare) >= count:  # on them no device is stranded or stays idle, on others one does
            nodes, keys = bare, keys[2:]
    return in_lexical_order(_safest_first(safe, keys), nodes, count)


def _safest_first(safe: Mask | None, keys: Sequence[Key]) -> Sequence[Key]:
    """Put nodes last that an autoscaler would like to take away."""
    return keys if safe is None else (lambda nodes: (~safe[nodes]).astype(np.int64), *keys)


def _without_idle_devices(room: FreeCapacity) -> Mask:
    """Return the nodes none of whose devices is idle."""

    def derive(at: At) -> Mask:
        bare = np.ones(room.free[:0, at].shape[1], dtype=np.bool_)
        for device in _devices(room):
            bare &= room.free[device, at] <= 0
        return bare

    return room.per_node("without idle devices", derive)


def _asks_for_devices(shape: PodShape) -> bool:
    return any(is_device(resource) for resource, _ in shape.requests)


def order_nodes(
    shape: PodShape, room: FreeCapacity, nodes: Positions, cost: Cost, count: int = 1
) -> Positions:
    """Return all the nodes in the order of which `best_nodes` returns the beginning."""
    keys = _safest_first(safest(room.columns.traits), _keys(shape, room, cost, count))
    return in_lexical_order(keys, nodes)


def _keys(shape: PodShape, room: FreeCapacity, cost: Cost, count: int) -> Sequence[Key]:
    """Return what decides, in order; how often the shape fits only where it asks for no device."""
    keys: list[Key] = [partial(_added, shape, count, room), partial(_idle_share, room)]
    if cost is not no_cost:
        keys.append(cost)
    if not _asks_for_devices(shape):
        keys.append(lambda nodes: room.counts(shape)[nodes])
    return keys


def points(shape: PodShape, room: FreeCapacity, nodes: Positions) -> Amounts:
    """Return 0 to POINTS per node for one pod: the best alone has all, the worst has nothing.

    The others share the range by rank, so that the whole of it is used whatever the numbers are.
    """
    ranks = np.empty(len(room.columns.names), dtype=np.int64)
    ranks[order_nodes(shape, room, nodes, no_cost)] = np.arange(len(nodes))
    rank = ranks[nodes]
    shared = (POINTS - 1) * (len(nodes) - 1 - rank) // max(len(nodes) - 2, 1)
    return np.where(rank == 0, POINTS, shared)


def _added(shape: PodShape, count: int, room: FreeCapacity, nodes: Positions) -> Amounts:
    """Return, summed over the kinds of device, what each pod adds to what is stranded.

    On each node as many pods count as fit, up to `count`.
    """
    asked, names = dict(shape.requests), room.columns.resources
    pods = np.minimum(room.counts(shape)[nodes], count)
    added = np.zeros(len(nodes), dtype=np.int64)
    for device, typical in _typical(room).items():
        added += strands(
            _idle(device, room, nodes) * PARTS,
            pods * (asked.get(names[device], 0) * PARTS),
            [room.free[row][nodes] for row in typical],
            [pods * asked.get(names[row], 0) for row in typical],
            tuple(typical.values()),
        )
    if count == 1:
        return added
    return _floor_of_quotient(added, np.maximum(pods, 1))  # none where it fits not once


def _floor_of_quotient(dividend: Amounts, divisor: Amounts) -> Amounts:
    """Divide by numbers from one on, exactly where the dividend is below 2^52.

    Only a whole quotient is nearer to the rounded one than 1 / divisor, and floats divide faster.
    """
    quotient = dividend / divisor
    return np.floor(quotient, out=quotient).astype(np.int64)


def _devices(room: FreeCapacity) -> tuple[int, ...]:
    """Return the rows of the kinds of device."""
    return _device_rows(room.columns.resources)


@lru_cache(maxsize=1)
def _device_rows(resources: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(at for at, resource in enumerate(resources) if is_device(resource))


def _idle_share(room: FreeCapacity, nodes: Positions) -> Amounts:
    """Return which share of its devices is idle on each node, summed over their kinds.

    It is in thousandths, and at least one where any is idle.
    """
    share = np.zeros(len(nodes), dtype=np.int64)
    for device in _devices(room):
        idle, offered = _idle(device, room, nodes), room.columns.allocatable[device][nodes]
        share += np.maximum(idle * PARTS // np.maximum(offered, 1), idle > 0)
    return share


def _idle(device: int, room: FreeCapacity, nodes: Positions) -> Amounts:
    """Return the idle devices of a kind on each of the nodes."""
    idle: Amounts = room.free[device][nodes]
    np.maximum(idle, 0, out=idle)
    np.minimum(idle, MOST, out=idle)
    return idle


Typical = Mapping[int, Mapping[int, int]]
"""Row of a device -> row of a resource -> what one device typically has of it beside itself."""


def _typical(room: FreeCapacity) -> Typical:
    """Return typical use before the current gang took anything, earlier placements included."""
    outset = room.outset
    return outset.remembered("typical use", lambda: _typical_of(outset))


def _typical_of(room: FreeCapacity) -> Typical:
    rows = room.columns.row
    beside = [rows[name] for name in (CPU, MEMORY) if name in rows]
    typical = {}
    for kind in _devices(room):
        typical[kind] = dict(zip(beside, median_use(_use_beside(kind, beside, room)), strict=True))
    return typical


def _use_beside(kind: int, beside: Sequence[int], room: FreeCapacity) -> Uses:
    """Return per resource (rows) what is in use per device in use, on a sample of the nodes."""
    at = sample(len(room.columns.names))
    offered, free = room.columns.allocatable, room.free

    def used(row: int) -> Amounts:
        amounts: Amounts = offered[row][at] - free[row][at]
        return amounts

    return use_beside(used(kind), [used(row) for row in beside])


@lru_cache(maxsize=8)
def sample(nodes: int) -> Positions:
    """Return up to SAMPLE positions out of so many, spread evenly and in no rhythm.

    Multiples of the golden section of a circle are: names often follow a rhythm, racks alternating.
    """
    if nodes <= SAMPLE:
        return np.arange(nodes, dtype=np.intp)
    step = next(step for step in range(round(nodes * GOLDEN), nodes) if gcd(step, nodes) == 1)
    at: Positions = np.sort(np.arange(SAMPLE) * step % nodes)
    return at
