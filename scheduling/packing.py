"""Of the nodes that could take a pod, which one should, so that the fewest devices are stranded?

The rule: a device is stranded when the processor and memory left on its node are too little for
what the cluster's device pods typically take beside one device, for then no such pod will come
for it; a pod goes where it adds the fewest stranded devices, in steps of a tenth of a device,
then where the smallest share of the devices is idle: a share, so that small nodes, which are often
the rare ones, are not used up before large ones. So a pod that is hungry for CPU goes where CPU
abounds, a frugal one where CPU is short, one without devices to nodes whose devices are taken, and
whole machines stay free.

What is typical is read off the nodes: per resource the median, over the nodes with devices in
use, of what is in use per device there; a median, so that the few nodes full of CPU pods do not
count. Where no device is in use nothing is typical, and nothing is stranded. No number is fitted
to a workload; `docs/benchmarks-packing.md` has what comes of it.

In numbers, with i idle devices and f_r of resource r left, t_r the typical use per device:
stranded = max(0, i - min over r of f_r / t_r). Where pods of one shape fill a node, the mean
per pod counts. Ties: what the rest of the gang loses, then, for pods without devices, the tightest
node, then the name.

Devices are counted in thousandths (`PARTS`), so that a caller that knows of shares can say so.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from scheduling.columns import Amounts, Columns, Positions
from scheduling.counting import MOST
from scheduling.model import CPU, MEMORY, PodShape
from scheduling.room import Room

PARTS = 1000
"""What a device counts for."""

STEP = PARTS // 10
"""Stranding that differs by less than a tenth of a device is equal."""

MOST_HELD = 2**52
"""Amounts are cut off here (4 Pi), so that they can be multiplied by PARTS in 64 bits."""

POINTS = 10
"""The best score of a scheduler extender (MaxExtenderPriority of kube-scheduler)."""

Requests = tuple[tuple[str, int], ...]


# --- the measure, on plain arrays -----------------------------------------------------------


def typical_use(devices: Amounts, taken: Amounts) -> Amounts:
    """Return per resource (row of `taken`) the median use beside one device, over the nodes.

    `devices` are the parts of devices in use per node; of an even number the lower median counts.
    """
    nodes = np.flatnonzero(devices > 0)
    if not len(nodes):
        return np.zeros(len(taken), dtype=np.int64)
    beside = np.clip(taken[:, nodes], 0, MOST_HELD) * PARTS // devices[nodes]
    middle = (len(nodes) - 1) // 2
    median: Amounts = np.partition(beside, middle, axis=1)[:, middle]
    return median


def stranded(idle: Amounts, free: Amounts, typical: Amounts) -> Amounts:
    """Return per node the parts of idle devices that what is left beside them cannot serve.

    `free` has a row per resource; `typical` says what one device needs of it, zero nothing.
    """
    short = np.zeros(idle.shape, dtype=np.int64)
    for left, each in zip(free, typical, strict=True):
        if each > 0:
            np.maximum(short, idle - np.clip(left, 0, MOST_HELD) * PARTS // each, out=short)
    return short


def strands(
    idle: Amounts, takes: int | Amounts, free: Amounts, requests: Amounts, typical: Amounts
) -> Amounts:
    """Return what taking devices and resources adds to the stranded devices, in steps.

    `requests` is a column, or one column per node as `free`.
    """
    before = stranded(idle, free, typical)
    after = stranded(idle - takes, free - requests, typical)
    steps: Amounts = (after - before + STEP // 2) // STEP
    return steps


def in_lexical_order(keys: Sequence[Amounts]) -> Positions:
    """Sort positions by the first key, then by the next; equals stay in order of position.

    The keys are folded into one number where that fits into 64 bits: one sort instead of many.
    """
    folded = np.arange(len(keys[0]), dtype=np.int64)
    span = max(len(folded), 1)
    for key in reversed(keys):
        lowest = int(key.min(initial=MOST_HELD))
        width = int(key.max(initial=lowest)) - lowest + 1
        if span * width >= 2**62:
            return np.lexsort(tuple(reversed(keys)))
        folded += (key - lowest) * span
        span *= width
    return np.argsort(folded)


# --- the measure, for a shape in a room -----------------------------------------------------


def order_nodes(
    shape: PodShape, room: Room, nodes: Positions, cost: Amounts, count: int = 1
) -> Positions:
    """Return the nodes in the order in which `count` pods of the shape should fill them.

    `nodes` are positions in order of name that take at least one pod; `cost` says for each what
    the rest of the gang loses by a pod of the shape there.
    """
    fitting = room.counts(shape)[nodes]
    pods = np.minimum(fitting, count)
    keys = [*_device_keys(shape, room, nodes, pods), cost]
    if not any(is_device(resource) for resource, _ in shape.requests):
        keys.append(fitting)
    telling = [key for key in keys if np.any(key != key[:1])]
    return nodes[in_lexical_order(telling)] if telling else nodes


def points(shape: PodShape, room: Room, nodes: Positions) -> Amounts:
    """Return 0 to POINTS per node for one pod: the best alone has all, the worst has nothing.

    The others share the range by rank, so that the whole of it is used whatever the numbers are.
    """
    order = order_nodes(shape, room, nodes, np.zeros(len(nodes), dtype=np.int64))
    rank = np.empty(len(nodes), dtype=np.int64)
    rank[np.searchsorted(nodes, order)] = np.arange(len(nodes))
    shared = (POINTS - 1) * (len(nodes) - 1 - rank) // max(len(nodes) - 2, 1)
    return np.where(rank == 0, POINTS, shared)


def _device_keys(
    shape: PodShape, room: Room, nodes: Positions, pods: Amounts
) -> tuple[Amounts, ...]:
    """Return, summed over the kinds of device, what each pod strands and which share is idle."""
    added, idle = np.zeros((2, len(nodes)), dtype=np.int64)
    for device, typical in _typical(room).items():
        left = room.free[device, nodes].clip(0, MOST)
        takes = _asked(shape, room.columns, [device])[0] * pods
        beside = list(typical)
        added += strands(
            left * PARTS,
            takes * PARTS,
            room.free[beside][:, nodes],
            _asked(shape, room.columns, beside)[:, None] * pods,
            np.array(list(typical.values()), dtype=np.int64),
        )
        idle += left * PARTS // room.columns.allocatable[device, nodes].clip(1)
    return added // np.maximum(pods, 1), idle


def _asked(shape: PodShape, columns: Columns, rows: Sequence[int]) -> Amounts:
    """Return what one pod asks of these rows."""
    asked = dict(shape.requests)
    amounts = [min(asked.get(columns.resources[row], 0), MOST_HELD) for row in rows]
    return np.array(amounts, dtype=np.int64)


Typical = Mapping[int, Mapping[int, int]]
"""Row of a device -> row of a resource -> what one device typically has of it beside itself."""


def _typical(room: Room) -> Typical:
    """Return what is typical in the room, placements of this cycle included."""
    return room.remembered("typical use", lambda: _typical_of(room))


def _typical_of(room: Room) -> Typical:
    rows = room.columns.row
    beside = [rows[name] for name in (CPU, MEMORY) if name in rows]
    taken = room.columns.allocatable[beside] - room.free[beside]
    typical = {}
    for kind in (row for name, row in rows.items() if is_device(name)):
        devices = (room.columns.allocatable[kind] - room.free[kind]).clip(0, MOST)
        each = typical_use(devices * PARTS, taken).tolist()
        typical[kind] = dict(zip(beside, each, strict=True))
    return typical


def is_device(resource: str) -> bool:
    """Say whether the resource is an extended one, as device plugins offer them."""
    domain, slash, _ = resource.partition("/")
    return bool(slash) and not domain.endswith("kubernetes.io")
