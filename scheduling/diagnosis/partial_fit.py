"""Works out how much would fit of a gang that does not fit whole.

Pod sets are placed one after the other: single pods first, because a gang does not start without
its head, each where it costs the others least; then groups, each as often as it fits beside those
before it. So the pods that are said to fit would start if only they were asked for. Where all sets
fit alone several orders are tried, and the one that leaves out the least counts.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scheduling.diagnosis.shortage import Shortage, shortage
from scheduling.filters.feasibility import feasible, is_feasible_everywhere
from scheduling.filters.free_capacity import Distribution, FreeCapacity
from scheduling.model.amounts import Amounts, Mask, Positions, exact_sum
from scheduling.model.gang import SUBMITTER
from scheduling.model.pod import PodShape
from scheduling.model.shape.host_ports import is_port
from scheduling.placement.independent import displaced, filled, greedy_orders

FEW = 16
"""Up to so many nodes are looked at one by one, which costs less than remembering the result."""

HEEDED = 8
"""The most other kinds of pods that a single pod makes way for: each costs a pass over nodes."""

PAIRED = 8
"""Up to so many kinds of pods are looked at pair by pair; of more, all nodes that they take."""

Wanted = tuple[str, PodShape, int]
"""A pod set, one shape in it, and how many pods of that shape."""


@dataclass(frozen=True, eq=False, slots=True)
class Part:
    """Of the wanted pods of one pod set and shape those that found room, and where.

    `nodes` are those that may run the shape; None for all nodes.
    """

    pod_set: str
    shape: PodShape
    wanted: int
    fit: int
    spread: Distribution
    nodes: Mask | None

    @property
    def missing(self) -> int:
        """Return how many found none."""
        return self.wanted - self.fit

    def asks(self, resource: str) -> int:
        """Return what one pod takes of a resource."""
        return self.shape.amounts.get(resource, 0)

    def takes(self, resource: str, nodes: Mask | None) -> int:
        """Return what those that found room take of a resource, on some of the nodes."""
        amount = self.asks(resource)
        if not amount or not self.fit or nodes is None:
            return amount * self.fit
        return amount * int(self.spread.pods[nodes[self.spread.nodes]].sum())


@dataclass(frozen=True, eq=False, slots=True)
class Attempt:
    """What found room of each pod set, in the order of what was wanted, and the room left.

    What a part takes that is short is not taken off where no other is and it came last: that is
    all that fits.
    """

    parts: tuple[Part, ...]
    before: FreeCapacity
    left: FreeCapacity
    touched: Amounts | None
    """Per node of how many parts it took pods; None of few parts, each of which is looked at."""

    def needed(self, resource: str, of: Part) -> int:
        """Return what the gang needs of a resource on the nodes that may run pods of a part.

        That is all it needs, less what found room elsewhere.
        """
        if of.nodes is None:
            return sum(part.wanted * part.asks(resource) for part in self.parts)
        return sum(
            part.takes(resource, of.nodes) + part.missing * part.asks(resource)
            for part in self.parts
            if not part.missing or _may_share(part.shape, of.nodes, self.before)
        )

    def free(self, resource: str, of: Part) -> int:
        """Return what is free of a resource on the nodes that may run the part, before all."""
        key = "free", resource, of.shape.scheduling_key
        return self.before.remembered(key, lambda: self._free(resource, of.nodes))

    def _free(self, resource: str, nodes: Mask | None) -> int:
        row = self.before.columns.row.get(resource)
        if row is None:
            return 0
        free = self.before.free[row] if nodes is None else self.before.free[row][nodes]
        return exact_sum(np.maximum(free, 0))

    def shortage(self, part: Part) -> Shortage:
        """Return what stops the next pod of the part, beside all that found room."""
        others = [other for other in self.parts if other is not part and other.fit]
        if self._meets_one_of(others, part):
            return shortage(part.shape, self.left)
        return self._less(shortage(part.shape, self.before), part, others)

    def _meets_one_of(self, others: Sequence[Part], part: Part) -> bool:
        if self.touched is None:
            return any(_meets(part.shape, other, self.before) for other in others)
        by_others = self.touched.copy()
        by_others[part.spread.nodes] -= part.fit > 0
        return bool(self.before.counts(part.shape)[by_others > 0].any())

    def _less(self, short: Shortage, part: Part, others: Sequence[Part]) -> Shortage:
        """Take off what is short what others took where no pod of the part would fit anyway."""
        taken = sum(other.takes(short.resource, part.nodes) for other in others)
        if not taken:
            return short
        if is_port(short.resource):
            return shortage(part.shape, self.left)
        free = self.before.free[self.before.columns.row[short.resource]]
        if any(np.any(free[other.spread.nodes] >= short.largest) for other in others):
            return shortage(part.shape, self.left)
        return replace(short, free=short.free - taken)

    def beside(self, resource: str, part: Part) -> list[Part]:
        """Return the other parts that take of the resource where pods of this one may run."""
        others = (other for other in self.parts if other is not part)
        return [other for other in others if other.takes(resource, part.nodes)]


def attempted(wanted: Sequence[Wanted], room: FreeCapacity) -> Attempt:
    """Place as much of what is wanted as finds room."""
    first, *others = (_attempt(wanted, order, room) for order in _orders(wanted, room))
    return min((first, *others), key=_severity) if others else first


def is_short_alone(wanted: Sequence[Wanted], room: FreeCapacity) -> bool:
    """Say whether the pods of some shape do not even fit without the others."""
    return any(room.total(shape) < count for shape, count in per_shape(wanted).items())


def per_shape(wanted: Sequence[Wanted]) -> dict[PodShape, int]:
    """Return how many pods of each shape are wanted."""
    counts: dict[PodShape, int] = {}
    for _, shape, count in wanted:
        counts[shape] = counts.get(shape, 0) + count
    return counts


def _orders(wanted: Sequence[Wanted], room: FreeCapacity) -> Iterator[Sequence[int]]:
    """Yield the orders to try: one where a set is short anyway, such sets last."""
    short = {shape for shape, count in per_shape(wanted).items() if room.total(shape) < count}
    if not short:
        for order in greedy_orders(tuple((shape, count) for _, shape, count in wanted), room):
            yield sorted(order, key=lambda at: wanted[at][0] == SUBMITTER)  # it comes after them
        return

    def place(at: int) -> tuple[bool, bool, bool, int]:
        pod_set, shape, count = wanted[at]
        return pod_set == SUBMITTER, count > 1, shape in short, at

    yield sorted(range(len(wanted)), key=place)


def _attempt(wanted: Sequence[Wanted], order: Sequence[int], room: FreeCapacity) -> Attempt:
    parts: dict[int, Part] = {}
    left, is_short, many = room, False, len(wanted) > PAIRED
    touched = np.zeros(len(room.columns.names), dtype=np.int64) if many else None
    for place, at in enumerate(order):
        pod_set, shape, count = wanted[at]
        now = left if _meet(shape, parts.values(), touched, room) else room
        fit = min(now.total(shape), count)
        others = [wanted[each][1] for each in order[place + 1 :]]
        spread = _spread(shape, count, others, now)
        parts[at] = Part(pod_set, shape, count, fit, spread, _nodes_of(shape, room))
        if touched is not None:
            touched[spread.nodes] += fit > 0
        if fit and (others or is_short or fit == count):
            left = left.without(shape, spread)
        is_short = is_short or fit < count
    return Attempt(tuple(parts[at] for at in range(len(wanted))), room, left, touched)


def _meet(
    shape: PodShape, parts: Iterable[Part], touched: Amounts | None, room: FreeCapacity
) -> bool:
    """Say whether pods of the shape fit where pods of the parts have found room."""
    if touched is None:
        return any(part.fit and _meets(shape, part, room) for part in parts)
    return bool(room.counts(shape)[touched > 0].any())


def _meets(shape: PodShape, part: Part, room: FreeCapacity) -> bool:
    """Say so of one part: many take all the nodes that there are for them, again and again."""
    nodes, counts = part.spread.nodes, room.counts(shape)
    if len(nodes) <= FEW:
        return any(map(counts.item, nodes.tolist()))
    if nodes is not room.takers(part.shape):
        return bool(counts[nodes].any())
    key = "meet", shape.fitting, part.shape.fitting
    return room.remembered(key, lambda: bool(counts[nodes].any()))


def _spread(
    shape: PodShape, count: int, others: Sequence[PodShape], room: FreeCapacity
) -> Distribution:
    if room.total(shape) <= count:
        nodes = room.takers(shape)
        return Distribution(nodes, room.counts(shape)[nodes])
    if count > 1 or not 0 < len(others) <= HEEDED:
        return filled(shape, count, room)
    return Distribution(_cheapest(shape, others, room), np.ones(1, dtype=np.int64))


def _cheapest(shape: PodShape, others: Sequence[PodShape], room: FreeCapacity) -> Positions:
    """Return a node where one pod costs the others the fewest pods, the first such by name.

    Where none of them fits it costs none, which is known without a look at what each node has.
    """
    idle = ~_full(shape, room)
    for other in others:
        idle &= _full(other, room)
    first = int(idle.argmax())
    if idle[first]:
        return np.array([first], dtype=np.intp)
    nodes = room.takers(shape)
    lost = np.zeros(len(nodes), dtype=np.int64)
    for other in others:
        lost += _displaced(other, shape, nodes, room)
    at = int(lost.argmin())
    return nodes[at : at + 1]


def _full(shape: PodShape, room: FreeCapacity) -> Mask:
    """Return the nodes that take no pod of the shape; shared, never to be written."""
    return room.remembered(("full", shape.fitting), lambda: room.counts(shape) == 0)


def _displaced(shape: PodShape, head: PodShape, nodes: Positions, room: FreeCapacity) -> Amounts:
    """Return how many pods of the shape lose their place to the head on each of its nodes."""
    key = "displaced", shape.fitting, head.fitting
    return room.remembered(key, lambda: displaced(shape, head, nodes, room))


def _severity(attempt: Attempt) -> tuple[int, int, int]:
    """Return single pods missing, all pods missing, the worst share of a set: less is better."""
    missing = [(part.missing, part.wanted) for part in attempt.parts]
    single = sum(each for each, wanted in missing if wanted == 1)
    shares = (1000 * each // wanted for each, wanted in missing)
    return single, sum(each for each, _ in missing), max(shares, default=0)


def _nodes_of(shape: PodShape, room: FreeCapacity) -> Mask | None:
    """Return the nodes that may run pods of the shape; None for all nodes."""
    everywhere = is_feasible_everywhere(shape, room.columns)
    return None if everywhere else feasible(shape, room.columns)


def _may_share(shape: PodShape, nodes: Mask, room: FreeCapacity) -> bool:
    """Say whether pods of the shape may run on one of the nodes."""
    return bool((feasible(shape, room.columns) & nodes).any())
