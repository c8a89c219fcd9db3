"""Checks one more pod against the counts of a search that goes pod by pod.

`partial_placement` asks the constraints of all nodes at once, which is right for filling them and
dear for a search that places one pod and takes it back, time after time: most of what it works out
did not change. Here a pod changes a few counts, and the scalar front of each constraint looks them
up for one node. A gang is given up before it is placed to its end where the free capacity, or one
spread rule taken alone, cannot let in all the pods that are left.
"""

from collections.abc import Collection, Hashable, Sequence
from operator import ge, mul, sub

import numpy as np

from scheduling.filters.domain_counts import Check, GangCounts
from scheduling.filters.pod_topology_spread import SpreadBound, SpreadRule
from scheduling.model.amounts import LIMIT, Amounts, Mask, Positions
from scheduling.placement.interdependent.partial_placement import PartialPlacement

STEPS_PER_CELL = 15
"""What telling nodes apart by one thing costs, for each node, in steps of some 20 ns."""

MOST_DOMAINS = 64
"""The bound of a rule is not kept where it has more domains than that."""

Load = tuple[int, ...]
"""The pods of each group on one node."""

Caps = tuple[int, ...]
"""How many more pods of each group one node takes."""


class Checks:
    """What is counted of a gang that is placed pod by pod, and the checks made of it.

    Two nodes that are equal in all rows of `_rows`, and of the counts, are equivalent.
    """

    def __init__(self, partial: PartialPlacement) -> None:
        self._partial = partial
        self._groups = range(len(partial.counts))
        self._counts = GangCounts(partial.pods, partial.traits)
        self._rows: list[Amounts | Mask] = [partial.ranks(at) >= 0 for at in self._groups]
        self._asked = [dict(partial.requests_of(at)) for at in self._groups]
        names = {name for asked in self._asked for name in asked}
        self._free = {name: self._capped(name) for name in sorted(names)}
        rows = [np.minimum(partial.room_for(at), partial.left[at]) for at in self._groups]
        self._most: list[Caps] = list(zip(*(row.tolist() for row in rows), strict=True))
        self._caps = list(self._most)
        self._known: dict[tuple[int, Load], Caps] = {}
        self._room = [int(row.sum()) for row in rows]
        self._bounds: dict[Hashable, SpreadBound] = {}

    def _capped(self, resource: str) -> list[int]:
        """Return what is free on each node, as far as the gang could ask for it."""
        most = min(self._taken(resource, tuple(self._partial.left)), LIMIT)
        free = np.minimum(self._partial.free_of(resource), most)
        self._rows.append(free)
        found: list[int] = free.tolist()
        return found

    @property
    def bounds(self) -> Collection[SpreadBound]:
        """Return what spread rules let in at most."""
        return self._bounds.values()

    def lets_in(self, left: Sequence[int]) -> bool:
        """Say whether what is left of each group could have room, and pass each rule alone."""
        return all(map(ge, self._room, left)) and all(
            each.most() >= sum(left[at] for at in each.owners) for each in self.bounds
        )

    def put(self, at: int, node: int, count: int, load: Load) -> None:
        """Count pods of a group that are placed on a node, or taken back, which then has a load."""
        self._counts.put(at, node, count)
        before, now = self._caps[node], self._caps_under(load, node)
        self._caps[node] = now
        for group, more in enumerate(map(sub, now, before)):
            if more:
                self._room[group] += more
                for each in self.bounds:
                    each.add_room(group, node, more)

    def _caps_under(self, load: Load, node: int) -> Caps:
        """Return how many more pods of each group a node takes under a load, worked out once."""
        known = node, load
        if known not in self._known:
            self._known[known] = tuple(self._cap(at, load, node) for at in self._groups)
        return self._known[known]

    def _cap(self, at: int, load: Load, node: int) -> int:
        fitting = [
            (self._free[name][node] - self._taken(name, load)) // amount
            for name, amount in self._partial.requests_of(at)
        ]
        return max(0, min((self._most[node][at], *fitting)))

    def _taken(self, resource: str, load: Load) -> int:
        amounts = (asked.get(resource, 0) for asked in self._asked)
        return sum(map(mul, amounts, load))

    def node_classes(self) -> Positions:
        """Return the class of each node, as a number: equivalent nodes have the same."""
        classes = np.zeros(self._partial.pods.shape[1], dtype=np.int64)
        for row in (*self._rows, *self._counts.rows):
            self._partial.spent += STEPS_PER_CELL * len(classes)
            values = np.unique(row, return_inverse=True)[1]
            both = classes * (int(values.max(initial=0)) + 1) + values
            classes = np.unique(both, return_inverse=True)[1]
        return classes

    def of(self, at: int) -> list[Check]:
        """Return what must let a pod of a group go to a node that it has a rank for."""
        constraints, counts = self._partial.internal_constraints, self._counts
        apart = sorted(each for each in constraints.anti_affinity if each.group == at)
        near = (each for each in constraints.affinity if each.group == at)
        rules = [rule for rule in constraints.spread if rule.applies_to(at)]
        for rule in (each for each in rules if each.owner == at and each.counts_itself):
            self._bound(rule)
        return [
            self._has_room(at),
            *(pair.check(counts) for pair in apart),
            *(each.check(counts, self._partial.traits) for each in near),
            *(rule.check(at, counts) for rule in rules),
        ]

    def _has_room(self, at: int) -> Check:
        caps = self._caps
        return lambda node: caps[node][at] > 0

    def _bound(self, rule: SpreadRule) -> None:
        """Keep how many pods of its owner a rule lets in at most, with all that are like it."""
        counted, max_skew = rule.counts(self._counts), rule.constraint.max_skew
        if counted.outside > MOST_DOMAINS:
            return
        floor = None if rule.floor is None else tuple(rule.floor.tolist())
        alike = counted, max_skew, floor
        if alike not in self._bounds:
            self._bounds[alike] = SpreadBound(counted, floor, max_skew, self._caps)
        self._bounds[alike].add_owner(rule.owner, [caps[rule.owner] for caps in self._caps])
