"""Places a whole gang whose pods do not constrain each other, or says that it does not fit.

Exact in both directions for one shape (any greedy order is), and for one pod beside one shape,
the head and its workers: they fit if and only if, for some node that takes the head, the total of
the workers less what they lose on that node is enough. So it is beside several shapes that share
no node, workers in domains of their own. Anything else is first filled greedily in a few orders,
and where that fails it is searched exactly (`exact_search`), within a bound of steps.

All or nothing: an outcome other than `Placed` has placed nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import assert_never

import numpy as np

from scheduling.filters.free_capacity import Distribution, FreeCapacity
from scheduling.model.amounts import Amounts, Positions, Requests, exact_sum
from scheduling.model.gang import Group
from scheduling.model.pod import PodShape
from scheduling.placement.exact_search import Demand, Found, Nothing, OutOfSteps, search
from scheduling.scoring.node_scores import best_nodes, no_cost
from scheduling.state.node_snapshot import NodeSnapshot


@dataclass(frozen=True, eq=False, slots=True)
class Placed:
    """One distribution per shape of the demand, in its order, and the room that is left."""

    distributions: tuple[Distribution, ...]
    room: FreeCapacity
    steps: int = 0


@dataclass(frozen=True, slots=True)
class NoFit:
    """There is no placement; this is certain."""

    steps: int = 0


@dataclass(frozen=True, slots=True)
class Undecided:
    """No placement was found and none was excluded before the steps were used up."""

    steps: int = 0


Outcome = Placed | NoFit | Undecided


def count_fit(shape: PodShape, columns: NodeSnapshot) -> Amounts:
    """Return how many pods of the shape fit on each node."""
    return FreeCapacity.of(columns).counts(shape)


def demand_of(groups: Iterable[Group]) -> Demand:
    """Return what groups ask for together, as pods per shape, in one order for equal groups."""
    wanted: dict[PodShape, int] = {}
    for group in in_order(groups):
        wanted[group.shape] = wanted.get(group.shape, 0) + group.count
    return tuple((shape, count) for shape, count in wanted.items() if count)


def in_order(groups: Iterable[Group]) -> list[Group]:
    """Return groups in the order in which they are served: by name."""
    return sorted(groups, key=lambda group: (group.pod_set, group.replica, group.shape.key))


def place(demand: Demand, room: FreeCapacity, steps: int) -> Outcome:
    """Place all of the demand or nothing of it; `steps` bounds the search where one is needed."""
    if is_short_alone(demand, room):
        return NoFit()
    if len(demand) < 2 or (len(demand) > 2 and _share_no_node(demand, room)):
        return _placed_separately(demand, room, room)
    head = _head_of(demand, room)
    if head is not None:
        return _placed_head_first(demand, head, room)
    if _is_short_in_sum(demand, room):
        return NoFit()
    return _placed_greedily(demand, room) or _placed_by_search(demand, room, steps)


def _head_of(demand: Demand, room: FreeCapacity) -> int | None:
    """Return which of the demand is one pod beside others that share no node; None if none is."""
    single = [at for at, (_, count) in enumerate(demand) if count == 1]
    if len(demand) == 2:
        return next(iter(single), None)
    return next((at for at in single if _share_no_node(_others(demand, at), room)), None)


def _others(demand: Demand, at: int) -> Demand:
    return demand[:at] + demand[at + 1 :]


def _share_no_node(demand: Demand, room: FreeCapacity) -> bool:
    takers = np.zeros(len(room.columns.names), dtype=np.int64)
    for shape, _ in demand:
        takers += room.counts(shape) > 0
    return bool(takers.max(initial=0) < 2)


def _placed_head_first(demand: Demand, at: int, room: FreeCapacity) -> Placed | NoFit:
    """Place the one pod where it costs the others least, then the others: exact.

    Sum slots - min over nodes for the head of (slots(n) - slots(n less the head)) >= count.
    """
    head, others = demand[at][0], _others(demand, at)
    nodes = room.takers(head)
    for shape, count in others:
        nodes = _bearable(nodes, head, shape, room.total(shape) - count, room)
    if not len(nodes):
        return NoFit()
    best = best_nodes(head, room, nodes, partial(_lost_by_all, others, head, room))[:1]
    distribution = Distribution(best, np.ones(1, dtype=np.int64))
    left = room.without(head, distribution)
    displaces = any(room.counts(shape)[best[0]] for shape, _ in others)
    rest = _placed_separately(others, left if displaces else room, left)
    return Placed((*rest.distributions[:at], distribution, *rest.distributions[at:]), rest.room)


def _bearable(
    nodes: Positions, head: PodShape, shape: PodShape, spare: int, room: FreeCapacity
) -> Positions:
    """Return the nodes where the head displaces no more pods of the shape than can be spared."""
    if spare >= room.counts(shape).max(initial=0):
        return nodes
    return nodes[displaced(shape, head, nodes, room) <= spare]


def _lost_by_all(others: Demand, head: PodShape, room: FreeCapacity, nodes: Positions) -> Amounts:
    """Return how many pods of all the others the head displaces on each of the nodes."""
    lost = np.zeros(len(nodes), dtype=np.int64)
    for shape, _ in others:
        lost += displaced(shape, head, nodes, room)
    return lost


def displaced(shape: PodShape, head: PodShape, nodes: Positions, room: FreeCapacity) -> Amounts:
    """Return how many pods of the shape lose their place to the head on each of the nodes."""
    loss = room.counts(shape)[nodes]
    if loss.any():
        some = np.flatnonzero(loss)
        loss[some] -= room.counted(shape, nodes[some], beside=head)
    return loss


def _placed_greedily(demand: Demand, room: FreeCapacity) -> Placed | None:
    """Fill one shape after the other, in several orders; finding nothing proves nothing."""
    for order in greedy_orders(demand, room):
        placed = _placed_one_by_one([demand[at] for at in order], room)
        if placed is not None:
            back = np.argsort(order)
            return Placed(tuple(placed.distributions[at] for at in back), placed.room)
    return None


def greedy_orders(demand: Demand, room: FreeCapacity) -> Iterator[tuple[int, ...]]:
    """Yield orders worth trying, the scarcest shape first; for up to three shapes, all orders."""
    scarce = sorted(range(len(demand)), key=lambda at: _scarcity(demand[at], room))
    if len(demand) <= 3:
        yield from permutations(scarce)
        return
    yield tuple(scarce)
    yield tuple(sorted(scarce, key=lambda at: room.total(demand[at][0])))
    yield tuple(reversed(scarce))


def _scarcity(wanted: tuple[PodShape, int], room: FreeCapacity) -> int:
    """Return how often what is wanted would fit, in thousandths; the smaller the scarcer."""
    shape, count = wanted
    return 1000 * room.total(shape) // count


def _placed_separately(demand: Demand, room: FreeCapacity, taken_from: FreeCapacity) -> Placed:
    """Fill shapes that fit alone and share no node: each as if it were alone.

    They take from a room that may lack, on nodes where none of them fits, what `room` has.
    """
    distributions = tuple(filled(shape, count, room) for shape, count in demand)
    alike: dict[Requests, list[tuple[PodShape, Distribution]]] = {}
    for (shape, _), distribution in zip(demand, distributions, strict=True):
        alike.setdefault(shape.requests, []).append((shape, distribution))
    left = taken_from
    for each in alike.values():
        nodes = np.concatenate([distribution.nodes for _, distribution in each])
        pods = np.concatenate([distribution.pods for _, distribution in each])
        left = left.without(each[0][0], Distribution(nodes, pods))
    return Placed(distributions, left)


def _placed_one_by_one(demand: Sequence[tuple[PodShape, int]], room: FreeCapacity) -> Placed | None:
    """Fill the shapes one after the other; None as soon as one of them does not fit."""
    distributions = []
    for shape, count in demand:
        if room.total(shape) < count:
            return None
        distributions.append(filled(shape, count, room))
        room = room.without(shape, distributions[-1])
    return Placed(tuple(distributions), room)


def filled(shape: PodShape, count: int, room: FreeCapacity) -> Distribution:
    """Spread as many of `count` pods as fit over the nodes, in the order of the packing rule."""
    counts = room.counts(shape)
    nodes = best_nodes(shape, room, room.takers(shape), no_cost, count)
    fitting = counts[nodes]
    before = np.cumsum(fitting) - fitting
    enough = int(np.searchsorted(before, count))
    return Distribution(nodes[:enough], np.minimum(fitting[:enough], count - before[:enough]))


def _placed_by_search(demand: Demand, room: FreeCapacity, steps: int) -> Outcome:
    match search(demand, room, steps):
        case Found(distributions, spent):
            for (shape, _), distribution in zip(demand, distributions, strict=True):
                room = room.without(shape, distribution)
            return Placed(distributions, room, spent)
        case Nothing(spent):
            return NoFit(spent)
        case OutOfSteps(spent):
            return Undecided(spent)
        case other:
            assert_never(other)


def cannot_fit(demand: Demand, room: FreeCapacity) -> bool:
    """Say whether there is certainly no placement, as far as sums over the nodes show it."""
    return is_short_alone(demand, room) or _is_short_in_sum(demand, room)


def is_short_alone(demand: Demand, room: FreeCapacity) -> bool:
    """Say whether the pods of one shape have no room even where those of no other take any."""
    return any(room.total(shape) < count for shape, count in demand)


def _is_short_in_sum(demand: Demand, room: FreeCapacity) -> bool:
    return len(demand) > 1 and any(
        _most_used(resource, demand, room) < amount for resource, amount in needed(demand).items()
    )


def needed(demand: Demand) -> dict[str, int]:
    """Return what all pods take together, by resource."""
    amounts: dict[str, int] = {}
    for shape, count in demand:
        for resource, amount in shape.requests:
            amounts[resource] = amounts.get(resource, 0) + count * amount
    return amounts


def _most_used(resource: str, demand: Demand, room: FreeCapacity) -> int:
    """Return how much of a resource the pods could take if each shape came alone to each node.

    On no node more than is free there, so that what is too little for any one pod does not count.
    """
    used = np.zeros(len(room.columns.names), dtype=np.int64)
    for shape, count in demand:
        asked = dict(shape.requests).get(resource, 0)
        if asked:
            used += np.minimum(room.counts(shape), count) * asked
    free = room.left(resource)
    if free is None:
        return 0
    return exact_sum(np.minimum(used, np.maximum(free, 0)))  # below where overcommitted
