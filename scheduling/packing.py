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

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from scheduling.columns import Amounts, Positions
from scheduling.counting import MOST
from scheduling.model import CPU, MEMORY, PodShape
from scheduling.room import At, Room

PARTS = 1000
"""What a device counts for."""

STEP = PARTS // 10
"""Stranding that differs by less than a tenth of a device is equal."""

MOST_HELD = 2**52
"""Amounts are cut off here (4 Pi), so that they can be multiplied by PARTS in 64 bits."""

MOST_FOLDED = 2**62
"""What several keys are folded into stays below this."""

NO_DEVICE = 2**62
"""More than any use beside a device: such nodes come after all others."""

POINTS = 10
"""The best score of a scheduler extender (MaxExtenderPriority of kube-scheduler)."""

Requests = tuple[tuple[str, int], ...]


# --- the measure, on plain arrays -----------------------------------------------------------


def typical_use(devices: Amounts, taken: Amounts) -> Amounts:
    """Return per resource (row of `taken`) the median use beside one device, over the nodes.

    `devices` are the parts of devices in use per node; of an even number the lower median counts.
    """
    return np.array([median_use(use) for use in use_beside(devices, taken, PARTS)], dtype=np.int64)


def use_beside(devices: Amounts, taken: Iterable[Amounts], parts: int = 1) -> Amounts:
    """Return per resource and node the use beside one device; NO_DEVICE where none is in use.

    `devices` in use are counted in `parts` of one.
    """
    none, each = devices <= 0, np.maximum(devices, 1)
    use = []
    for amounts in taken:
        held = np.minimum(amounts, MOST_HELD)
        np.maximum(held, 0, out=held)
        use.append(_floor_of_quotient(held * parts, each))
        use[-1][none] = NO_DEVICE
    return np.array(use, dtype=np.int64).reshape(len(use), len(devices))


def _floor_of_quotient(dividend: Amounts, divisor: Amounts) -> Amounts:
    """Divide whole numbers that are not negative, exactly.

    Where dividend + divisor is below 2^53 the rounded quotient has the same floor: only a whole
    quotient is nearer to it than 1 / divisor, and floats divide twice as fast.
    """
    if int(dividend.max(initial=0)) + int(divisor.max(initial=1)) < 2**53:
        return (dividend / divisor).astype(np.int64)
    return dividend // divisor


def median_use(use: Amounts) -> int:
    """Return the lower median over the nodes with devices in use; nothing where there are none."""
    nodes = int(np.count_nonzero(use != NO_DEVICE))
    middle = (nodes - 1) // 2
    return int(np.partition(use, middle)[middle]) if nodes else 0


def stranded(idle: Amounts, free: Iterable[Amounts], typical: Iterable[int]) -> Amounts:
    """Return per node the parts of idle devices that what is left beside them cannot serve.

    `free` has a row per resource; `typical` says what one device needs of it, zero nothing.
    """
    served = idle.copy()
    for left, each in zip(free, typical, strict=True):
        if each > 0:
            enough = np.maximum(left, 0)
            np.minimum(enough, MOST_HELD, out=enough)
            enough *= PARTS
            enough //= each
            np.minimum(served, enough, out=served)
    return idle - served


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
    before = stranded(idle, free, typical)
    return steps_between(before, idle - takes, free, requests, typical)


def steps_between(
    before: Amounts,
    idle: Amounts,
    free: Iterable[Amounts],
    requests: Iterable[int | Amounts],
    typical: Iterable[int],
) -> Amounts:
    """Return the steps from what is stranded to what will be, with so many devices left idle."""
    left = [each - asked for each, asked in zip(free, requests, strict=True)]
    added = stranded(idle, left, typical)
    added -= before
    added += STEP // 2
    added //= STEP
    return added


def in_lexical_order(keys: Sequence[Amounts], most: int | None = None) -> Positions:
    """Sort positions by the first key, then by the next; equals stay in order of position.

    Only the first `most` are returned, and then only what can be among them is sorted: the keys
    are folded into one number, the position lowest, where that fits into 64 bits.
    """
    first = _candidates(keys[0], most)
    if first is not None:
        return first[in_lexical_order([key[first] for key in keys], most)]
    length = max(len(keys[0]), 1)
    folded, span = np.arange(len(keys[0]), dtype=np.int64), length
    for key in reversed(keys):
        lowest, highest = int(key.min(initial=MOST_FOLDED)), int(key.max(initial=-MOST_FOLDED))
        if span * (highest - lowest + 1) >= MOST_FOLDED:
            return np.lexsort(tuple(reversed(keys)))[:most]
        if lowest < highest:
            folded += (key - lowest) * span
            span *= highest - lowest + 1
    if most is not None and most < len(folded):
        folded = np.partition(folded, most)[:most]
    return np.sort(folded) % length


def _candidates(key: Amounts, most: int | None) -> Positions | None:
    """Return the positions that the first key alone leaves; None where it leaves nearly all."""
    if most is None or 4 * most > len(key):
        return None
    last = key.min() if most == 1 else np.partition(key, most)[most]
    left = np.flatnonzero(key <= last)
    return left if 2 * len(left) < len(key) else None


# --- the measure, for a shape in a room -----------------------------------------------------


Cost = Callable[[Positions], Amounts]
"""What the rest of the gang loses by a pod on each of these nodes."""


def no_cost(nodes: Positions) -> Amounts:
    """Say that nobody else loses anything."""
    return np.zeros(len(nodes), dtype=np.int64)


def best_nodes(
    shape: PodShape, room: Room, nodes: Positions, cost: Cost, count: int = 1
) -> Positions:
    """Return the nodes that `count` pods of the shape should fill, in this order.

    `nodes` are positions in order of name that take at least one pod, so that no more than
    `count` are needed.
    """
    bare = _without_idle_devices(shape, room, nodes)
    if bare is None or len(bare) < count:
        return nodes[in_lexical_order(_keys(shape, room, nodes, cost, count), count)]
    return bare[in_lexical_order((cost(bare), room.counts(shape)[bare]), count)]


def _without_idle_devices(shape: PodShape, room: Room, nodes: Positions) -> Positions | None:
    """Return the nodes that come first for a pod that asks for no device; None for another pod.

    Where no device is idle none is stranded by it, and no share of them stays idle; elsewhere one
    does, unless it is too small to count.
    """
    if _asks_for_devices(shape):
        return None
    bare = nodes[_idle_share(room)[nodes] == 0]
    return None if any(_idle(device, room)[bare].any() for device in _devices(room)) else bare


def _asks_for_devices(shape: PodShape) -> bool:
    return any(is_device(resource) for resource, _ in shape.requests)


def order_nodes(
    shape: PodShape, room: Room, nodes: Positions, cost: Cost, count: int = 1
) -> Positions:
    """Return all the nodes in the order of which `best_nodes` returns the beginning."""
    return nodes[in_lexical_order(_keys(shape, room, nodes, cost, count))]


def _keys(
    shape: PodShape, room: Room, nodes: Positions, cost: Cost, count: int
) -> tuple[Amounts, ...]:
    """Return what decides, in order; how often the shape fits only where it asks for no device."""
    fitting = room.counts(shape)[nodes]
    pods = np.minimum(fitting, count)
    keys = _added(shape, room, nodes, pods), _idle_share(room)[nodes], cost(nodes)
    return keys if _asks_for_devices(shape) else (*keys, fitting)


def points(shape: PodShape, room: Room, nodes: Positions) -> Amounts:
    """Return 0 to POINTS per node for one pod: the best alone has all, the worst has nothing.

    The others share the range by rank, so that the whole of it is used whatever the numbers are.
    """
    order = order_nodes(shape, room, nodes, no_cost)
    rank = np.empty(len(nodes), dtype=np.int64)
    rank[np.searchsorted(nodes, order)] = np.arange(len(nodes))
    shared = (POINTS - 1) * (len(nodes) - 1 - rank) // max(len(nodes) - 2, 1)
    return np.where(rank == 0, POINTS, shared)


def _added(shape: PodShape, room: Room, nodes: Positions, pods: Amounts) -> Amounts:
    """Return, summed over the kinds of device, what each pod adds to what is stranded."""
    added = np.zeros(len(nodes), dtype=np.int64)
    for device, typical in _typical(room).items():
        left = _idle(device, room)[nodes] - _most_asked(shape, device, room) * pods
        added += steps_between(
            _stranded(device, room)[nodes],
            left * PARTS,
            [room.free[row][nodes] for row in typical],
            [_most_asked(shape, row, room) * pods for row in typical],
            tuple(typical.values()),
        )
    return added if pods.max(initial=1) <= 1 else added // np.maximum(pods, 1)


def _devices(room: Room) -> Iterable[int]:
    """Return the rows of the kinds of device."""
    return [row for name, row in room.columns.row.items() if is_device(name)]


def _idle_share(room: Room) -> Amounts:
    """Return which share of its devices is idle on each node, summed over their kinds."""

    def derive(at: At) -> Amounts:
        share = np.zeros(room.columns.allocatable[:0, at].shape[1], dtype=np.int64)
        for device in _devices(room):
            idle, offered = _idle(device, room)[at], room.columns.allocatable[device, at]
            share += idle * PARTS // np.maximum(offered, 1)
        return share

    return room.per_node("idle share", derive)


def _most_asked(shape: PodShape, row: int, room: Room) -> int:
    """Return what one pod asks of a row."""
    return min(dict(shape.requests).get(room.columns.resources[row], 0), MOST_HELD)


def _idle(device: int, room: Room) -> Amounts:
    """Return the idle devices of a kind on each node."""
    return room.per_node(("idle", device), lambda at: room.free[device, at].clip(0, MOST))


def _stranded(device: int, room: Room) -> Amounts:
    """Return what is stranded on each node as it is."""
    typical = _typical(room)[device]

    def derive(at: At) -> Amounts:
        free = [room.free[row, at] for row in typical]
        return stranded(_idle(device, room)[at] * PARTS, free, tuple(typical.values()))

    return room.per_node(("stranded", device, *typical.items()), derive)


Typical = Mapping[int, Mapping[int, int]]
"""Row of a device -> row of a resource -> what one device typically has of it beside itself."""


def _typical(room: Room) -> Typical:
    """Return what is typical in the room, placements of this cycle included."""
    return room.remembered("typical use", lambda: _typical_of(room))


def _typical_of(room: Room) -> Typical:
    rows = room.columns.row
    beside = [rows[name] for name in (CPU, MEMORY) if name in rows]
    typical = {}
    for kind in _devices(room):
        each = [median_use(use) for use in _use_beside(kind, beside, room)]
        typical[kind] = dict(zip(beside, each, strict=True))
    return typical


def _use_beside(kind: int, beside: Sequence[int], room: Room) -> Amounts:
    """Return per resource (rows) and node what is in use per device in use, see `use_beside`."""
    offered = room.columns.allocatable

    def derive(at: At) -> Amounts:
        devices = (offered[kind, at] - room.free[kind, at]).clip(0, MOST)
        return use_beside(devices, [offered[row, at] - room.free[row, at] for row in beside])

    return room.per_node(("use beside", kind, *beside), derive)


def is_device(resource: str) -> bool:
    """Say whether the resource is an extended one, as device plugins offer them."""
    domain, slash, _ = resource.partition("/")
    made_up = ":" in domain
    return bool(slash) and not made_up and not domain.endswith("kubernetes.io")
