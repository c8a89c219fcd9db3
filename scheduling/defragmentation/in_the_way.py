"""Selects the running gangs on the nodes where room for a waiting gang costs the least.

The price of a node for a pod is the work that is lost with the gangs that have to leave it, taken
one after the other, the cheapest for each GPU first. Gangs on the cheapest nodes come first.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from scheduling.defragmentation.movable import Movable
from scheduling.filters.feasibility import feasible_nodes
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.amounts import Amounts, is_device
from scheduling.model.gang import Group, PendingGang

SIZES = (6, 12, 24, 48, 192)
"""So many gangs are looked at, one selection after the other."""

Lacks = dict[str, int]


def in_the_way(
    gang: PendingGang, movables: Sequence[Movable], room: FreeCapacity
) -> Iterator[Sequence[Movable]]:
    """Yield selections of gangs, each with those before it in it."""
    ranked = _ranked(gang, movables, room)
    before = 0
    for size in SIZES:
        if before < len(ranked):
            yield ranked[:size]
        before = size


def _ranked(
    gang: PendingGang, movables: Sequence[Movable], room: FreeCapacity
) -> Sequence[Movable]:
    """Return those that are in the way of the pods that ask for the most, the likeliest first."""
    group = max(gang.minimum, key=_devices)
    on = _by_node(movables, room)
    nodes = (int(at) for at in feasible_nodes(group.shape, room.columns))
    ways = (_way(group, room.free[:, at], on.get(at, ()), room) for at in nodes)
    found = sorted((each for each in ways if each), key=_price)
    return list({movable.key: movable for way in found for movable in way}.values())


def _price(way: Sequence[Movable]) -> tuple[int, int]:
    return sum(each.lost for each in way), len(way)


def _devices(group: Group) -> int:
    return sum(amount for resource, amount in group.shape.requests if is_device(resource))


Held = Sequence[tuple[Movable, Lacks]]
"""What gangs hold on one node."""


def _by_node(movables: Sequence[Movable], room: FreeCapacity) -> dict[int, Held]:
    """Return by node what each gang holds there."""
    held: defaultdict[int, dict[int, Lacks]] = defaultdict(dict)
    for number, each in enumerate(movables):
        for part in each.parts:
            for node, requests in part.room:
                if node in room.columns.index:
                    sums = held[room.columns.index[node]].setdefault(number, {})
                    for resource, amount in requests:
                        sums[resource] = sums.get(resource, 0) + amount
    return {at: [(movables[n], sums) for n, sums in of.items()] for at, of in held.items()}


def _way(group: Group, free: Amounts, there: Held, room: FreeCapacity) -> Sequence[Movable]:
    """Return what leaves a node so that it has a pod's room; nothing where that does not help."""
    row = room.columns.row
    lacks = {r: a - int(free[row[r]]) for r, a in group.shape.requests if r in row}
    lacks = {resource: amount for resource, amount in lacks.items() if amount > 0}
    left, way = dict(lacks), []
    for each, holds in sorted(there, key=lambda one: _for_each(one, lacks)):
        if not left:
            break
        if any(holds.get(resource, 0) for resource in left):
            way.append(each)
            left = {r: a - holds.get(r, 0) for r, a in left.items() if a > holds.get(r, 0)}
    return () if left else way


def _for_each(one: tuple[Movable, Lacks], lacks: Lacks) -> tuple[float, str]:
    """Sort by what is lost for each share of what is lacking that comes free."""
    movable, holds = one
    gives = sum(min(1.0, holds.get(r, 0) / amount) for r, amount in lacks.items())
    return (movable.lost / gives if gives else np.inf), str(movable.key)
