"""Decides exactly whether several shapes fit at once, where filling greedily has failed.

One shape, that of the largest count, is the value; the counts of the others are coordinates.
A node's table says for every mix of the others how many pods of the value still fit beside it;
nodes are joined one after the other by max-plus convolution: `most[s]` is the largest number of
value pods on the nodes so far that hold at least the mix `s` of the others as well. This is exact
and costs steps of (mixes demanded) x (mixes a node holds) per node (performance: pseudo-
polynomial, as the staircases for two groups; general vector packing is worse than that).

Nodes with equal tables are equal; adding one more of a kind stops once it changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import mul

import numpy as np

from scheduling.filters.free_capacity import Distribution, FreeCapacity
from scheduling.model.amounts import LIMIT, Amounts, Positions
from scheduling.model.pod import PodShape

Demand = tuple[tuple[PodShape, int], ...]

NEVER = -(2**40)
"""A value no sum of pods can lift above zero."""

STEPS_PER_JOIN = 1000
"""What joining one node costs beside its mixes, in steps of some 20 ns each."""


@dataclass(frozen=True, slots=True)
class Found:
    """A distribution per shape of the demand, in its order."""

    distributions: tuple[Distribution, ...]
    steps: int


@dataclass(frozen=True, slots=True)
class Nothing:
    """There is no placement; this is certain."""

    steps: int


@dataclass(frozen=True, slots=True)
class OutOfSteps:
    """The steps were used up before the answer was known."""

    steps: int


@dataclass(frozen=True, eq=False, slots=True)
class NodeClass:
    """Nodes with one table: `beside[u]` value pods fit next to the mix `mixes[u]` of the others."""

    mixes: Amounts
    beside: Amounts
    nodes: Positions


def search(demand: Demand, room: FreeCapacity, steps: int) -> Found | Nothing | OutOfSteps:
    """Find a placement of the demand, or prove that there is none, within `steps`."""
    value = max(range(len(demand)), key=lambda at: (demand[at][1], -at))
    others = tuple(each for at, each in enumerate(demand) if at != value)
    if _size([count for _, count in others]) > steps:
        return OutOfSteps(0)
    kinds, spent = _kinds(demand[value], others, room, steps)
    if kinds is None:
        return OutOfSteps(spent)
    if _usable_is_short(demand[value], others, kinds):
        return Nothing(spent)
    return _Join(demand[value], others, kinds).run(value, spent, steps)


def _kinds(
    value: tuple[PodShape, int], others: Demand, room: FreeCapacity, steps: int
) -> tuple[list[NodeClass] | None, int]:
    """Return the nodes by their tables, the tightest kind first, and the steps this took."""
    pods = [np.minimum(room.counts(shape), count) for shape, count in (*others, value)]
    nodes = np.flatnonzero(np.any(pods, axis=0))
    caps, which = np.unique(np.stack(pods[:-1], axis=1)[nodes], axis=0, return_inverse=True)
    kinds: list[NodeClass] = []
    spent = 0
    for at, cap in enumerate(caps.tolist()):
        alike = nodes[which.reshape(-1) == at]
        spent += _size(cap) * len(alike) + STEPS_PER_JOIN
        if spent > steps:
            return None, spent
        kinds += _kinds_of(_mixes(cap), alike, value, others, room)
    return sorted(kinds, key=lambda kind: (int(kind.beside.max()), int(kind.nodes[0]))), spent


def _kinds_of(
    mixes: Amounts,
    nodes: Positions,
    value: tuple[PodShape, int],
    others: Demand,
    room: FreeCapacity,
) -> list[NodeClass]:
    """Tabulate the nodes over the mixes, and put equal tables together."""
    tables = _beside(mixes, nodes, value, others, room)
    distinct, which = np.unique(tables, axis=0, return_inverse=True)
    by_kind = np.split(nodes[np.argsort(which.reshape(-1), kind="stable")], _ends(which))
    return [
        NodeClass(mixes, beside, alike) for beside, alike in zip(distinct, by_kind, strict=True)
    ]


def _ends(which: Positions) -> Positions:
    """Return where each kind's nodes end, once the nodes are sorted by kind."""
    return np.cumsum(np.bincount(which.reshape(-1)))[:-1]


def _beside(
    mixes: Amounts,
    nodes: Positions,
    value: tuple[PodShape, int],
    others: Demand,
    room: FreeCapacity,
) -> Amounts:
    """Return how many value pods fit beside each mix (columns) on each node (rows).

    NEVER where the mix itself does not fit.
    """
    shape, count = value
    possible = np.minimum(room.counts(shape)[nodes], count)
    beside = np.broadcast_to(possible[:, None], (len(nodes), len(mixes))).copy()
    wanted = dict(shape.requests)
    asked = {name for each in (shape, *(other for other, _ in others)) for name, _ in each.requests}
    for resource in sorted(asked):
        free = room.left(resource)
        if free is None:
            continue  # no node has any, so that the counts are none already
        taken = mixes @ np.array([_asked(other, resource) for other, _ in others], dtype=np.int64)
        left = free[nodes][:, None] - taken[None, :]
        if resource in wanted:
            np.minimum(beside, np.maximum(left // wanted[resource], 0), out=beside)
        beside[(left < 0) & (taken > 0)[None, :]] = NEVER
    return beside


def _asked(shape: PodShape, resource: str) -> int:
    """Return what the shape asks of a resource; more than a column holds fits nowhere anyway."""
    return min(dict(shape.requests).get(resource, 0), LIMIT)


def _usable_is_short(value: tuple[PodShape, int], others: Demand, kinds: list[NodeClass]) -> bool:
    """Say whether some resource is short even if every node is packed for it alone.

    A necessary condition that knows of fragmentation and costs little beside the join.
    """
    resources = sorted({name for shape, _ in (*others, value) for name, _ in shape.requests})
    return any(_is_short(resource, value, others, kinds) for resource in resources)


def _is_short(
    resource: str, value: tuple[PodShape, int], others: Demand, kinds: list[NodeClass]
) -> bool:
    prices = np.array([_asked(shape, resource) for shape, _ in others], dtype=np.int64)
    price = _asked(value[0], resource)
    needed = sum(_asked(shape, resource) * count for shape, count in (*others, value))
    usable = 0
    for kind in kinds:
        used = kind.mixes @ prices + kind.beside * price
        usable += int(used[kind.beside >= 0].max()) * len(kind.nodes)
    return usable < needed


class _Join:
    """One run of the convolution, with what is needed to read the placement back."""

    def __init__(self, value: tuple[PodShape, int], others: Demand, kinds: list[NodeClass]) -> None:
        self.wanted = value[1]
        self.counts = [count for _, count in others]
        self.kinds = kinds
        self.states = _mixes(self.counts)
        self.joined: list[tuple[int, NodeClass, Amounts]] = []

    def run(self, value: int, spent: int, steps: int) -> Found | Nothing | OutOfSteps:
        """Join nodes until the demand is met, all are joined, or the steps are used up."""
        most = np.full(len(self.states), NEVER, dtype=np.int64)
        most[0] = 0
        for kind in self.kinds:
            cost = len(self.states) * len(kind.mixes) + STEPS_PER_JOIN
            before = self._before(kind) if spent + cost <= steps else None
            for node in kind.nodes.tolist():
                spent += cost
                if before is None or spent > steps:
                    return OutOfSteps(spent)
                grown = (np.take(most, before) + kind.beside[:, None]).max(axis=0)
                grown.clip(NEVER, self.wanted, out=grown)
                if np.array_equal(grown, most):
                    break
                self.joined.append((node, kind, most))
                most = grown
                if most[-1] >= self.wanted:
                    return Found(self._spreads(value), spent)
        return Nothing(spent)

    def _before(self, kind: NodeClass) -> Positions:
        """Return for each mix of the node and each state the state that the others must hold."""
        before = np.zeros((len(kind.mixes), len(self.states)), dtype=np.int64)
        for at, stride in enumerate(_strides(self.counts)):
            before += stride * np.maximum(self.states[None, :, at] - kind.mixes[:, None, at], 0)
        return before

    def _spreads(self, value: int) -> tuple[Distribution, ...]:
        """Walk back from the last node; whatever is placed beyond the demand is left out."""
        lacking = np.array([*self.counts, self.wanted], dtype=np.int64)
        placed: list[list[tuple[int, int]]] = [[] for _ in lacking]
        for node, kind, most in reversed(self.joined):
            before = np.maximum(lacking[:-1] - kind.mixes, 0) @ _strides(self.counts)
            mix = int((most[before] + kind.beside).argmax())
            pods = np.minimum([*kind.mixes[mix], kind.beside[mix]], lacking)
            lacking -= pods
            for at in np.flatnonzero(pods).tolist():
                placed[at].append((node, int(pods[at])))
        distributions = [_spread(each) for each in placed]
        return (*distributions[:value], distributions[-1], *distributions[value:-1])


def _spread(placed: list[tuple[int, int]]) -> Distribution:
    ordered = np.array(sorted(placed), dtype=np.int64).reshape(-1, 2)
    return Distribution(ordered[:, 0].astype(np.intp), ordered[:, 1])


def _mixes(caps: Sequence[int]) -> Amounts:
    """Return every mix of 0 to cap pods per shape, one a row, the last shape running fastest."""
    return np.indices([cap + 1 for cap in caps], dtype=np.int64).reshape(len(caps), -1).T.copy()


def _strides(counts: Sequence[int]) -> Amounts:
    """Return what one pod of each shape adds to the position of a state."""
    return np.array([_size(counts[at + 1 :]) for at in range(len(counts))], dtype=np.int64)


def _size(caps: Sequence[int]) -> int:
    return reduce(mul, (cap + 1 for cap in caps), 1)
