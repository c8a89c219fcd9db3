"""Works out which parts of the running gangs the quota of each queue covers.

At each queue the gangs below it are gone through: the highest priority first, minimums before
surplus, those admitted earlier first. A part is covered there if the quota of the queue's subtree
still has room for it beside the parts that are covered before it; a part that does not fit uses
nothing up. A surplus is covered only where its gang's minimum is. What a queue lends to no other
counts in that queue alone, as in `QuotaTree`.

So to add a part, or to take away one that is covered nowhere, leaves all before it as covered as
they were: that preemption comes to an end rests on this (docs/decisions/0034).
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from scheduling.model.amounts import Amounts
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.preemption import GangPart
from scheduling.queueing.quota_tree import MOST, QuotaTree

Order = tuple[int, bool, float, str, str, int, str]
"""Priority (falling), surplus, admission, namespace, name, replica."""

Asked = tuple[tuple[int, int], ...]
"""What a part uses of the quota: column of the tree and amount, no zeros."""


@dataclass(frozen=True, eq=False, slots=True)
class Use:
    """What one part of a gang uses of the quota of the queue in row `row`."""

    gang: GangKey
    row: int
    asked: Asked
    order: Order

    @property
    def is_surplus(self) -> bool:
        """Say whether the gang would go on without this part."""
        return self.order[1]


class Guarantees:
    """The quota of each queue as a guarantee to the gangs below it.

    The gangs of a queue that has others below it have a guarantee of their own: the quota that the
    queue itself names. It has a number of its own, beyond those of the rows of the tree.
    """

    def __init__(self, tree: QuotaTree) -> None:
        self.tree = tree
        self._quota: list[list[int]] = tree.subtree.tolist()
        self._kept: list[list[int]] = tree.kept.tolist()
        self._paths: dict[int, tuple[int, ...]] = {}

    def path(self, row: int) -> tuple[int, ...]:
        """Return the guarantees of the gangs of a queue, the narrowest first."""
        if row not in self._paths:
            own = (len(self.tree.names) + row,) if self.tree.has_below(row) else ()
            self._paths[row] = own + self.tree.path(row)
        return self._paths[row]

    def apart(self, row: int, other: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the guarantees of the gangs of either queue that the other does not share."""
        ours, theirs = self.path(row), self.path(other)
        both = {*ours} & {*theirs}
        return tuple(n for n in ours if n not in both), tuple(n for n in theirs if n not in both)

    def height(self, at: int) -> int:
        """Return how many queues are one below another under a guarantee."""
        return int(self.tree.height[at]) if at < len(self.tree.names) else 0

    def quota(self, at: int, column: int) -> int:
        """Return what a guarantee covers of a resource."""
        if at < len(self._quota):
            return self._quota[at][column]
        own = self.tree.queues[at - len(self._quota)].quota
        return min(own.get(self.tree.resources[column], 0), MOST)

    def kept(self, at: int, column: int) -> int:
        """Return what of that does not count in the guarantee above."""
        return self._kept[at][column] if at < len(self._kept) else 0

    def asked(self, row: int, amounts: Amounts) -> Asked:
        """Return what counts of amounts: of the resources that the queue's quota limits."""
        limited = self.tree.limited[row]
        return tuple(
            (at, int(amounts[at])) for at in np.flatnonzero((amounts > 0) & limited).tolist()
        )

    def use(self, part: GangPart) -> Use:
        """Return what a part of a running gang uses; its queue must be one of the tree."""
        row = self.tree.index[part.queue]
        place = *_place(part.gang), len(part.replica), part.replica
        order = -part.priority, not part.is_minimum, part.admitted, *place
        return Use(part.gang, row, self.asked(row, held_by(part, self.tree)), order)

    def newest(self, gang: PendingGang, amounts: Amounts, admitted: float = inf) -> Use:
        """Return what the minimum of a gang would use, as the last that is admitted."""
        row = self.tree.index[gang.queue]
        order = -gang.priority, False, admitted, *_place(gang.key), 0, ""
        return Use(gang.key, row, self.asked(row, amounts), order)


def held_by(part: GangPart, tree: QuotaTree) -> Amounts:
    """Return what a part holds on all nodes, by column of the tree."""
    total: dict[str, int] = {}
    for _, requests in part.room:
        for resource, amount in requests:
            total[resource] = total.get(resource, 0) + amount
    return tree.requests(total)


def _place(gang: GangKey) -> tuple[str, str]:
    return gang.namespace, gang.name


@dataclass(slots=True)
class _Level:
    """How far the use of a guarantee has come after so many parts: what of it was used then."""

    after: list[int] = field(default_factory=list)
    used: list[list[int]] = field(default_factory=list)

    def before(self, position: int) -> Sequence[int]:
        """Return what the parts before a position use."""
        at = bisect_left(self.after, position)
        return self.used[at - 1] if at else ()


@dataclass(slots=True)
class _Walk:
    """The parts below one guarantee, those that it covers, and how its use grew."""

    uses: list[Use]
    covered: set[Use]
    levels: dict[int, _Level]


class Coverage:
    """What is covered of the uses there are, worked out for each guarantee when it is asked for."""

    def __init__(self, guarantees: Guarantees, uses: Iterable[Use]) -> None:
        self._guarantees = guarantees
        every = list(uses)
        minimums = {each.gang for each in every if not each.is_surplus}
        self._uses = [each for each in every if each.asked and each.gang in minimums]
        self._uses.sort(key=lambda each: each.order)
        self._walks: dict[int, _Walk] = {}
        self._below: dict[int, list[Use]] = {}
        for each in self._uses:
            for node in guarantees.path(each.row):
                self._below.setdefault(node, []).append(each)

    def covered(self, use: Use) -> frozenset[int]:
        """Return the guarantees that cover a part."""
        path = self._guarantees.path(use.row) if use.asked else ()
        return frozenset(node for node in path if use in self._walk(node).covered)

    def depth(self, use: Use) -> int:
        """Return how deep below the root the deepest guarantee is that covers a part; 0: none."""
        path, covered = self._guarantees.path(use.row), self.covered(use)
        return next((len(path) - at for at, node in enumerate(path) if node in covered), 0)

    def deepest(self, use: Use) -> int | None:
        """Return the deepest guarantee that would cover one more part; None where none does."""
        path = self._guarantees.path(use.row) if use.asked else ()
        return next((node for node in path if self._has_room(node, use)), None)

    def would_cover(self, use: Use) -> frozenset[int]:
        """Return the guarantees that would cover one more part, at its place in the order."""
        path = self._guarantees.path(use.row) if use.asked else ()
        return frozenset(node for node in path if self._has_room(node, use))

    def _has_room(self, node: int, use: Use) -> bool:
        walk = self._walk(node)
        position = bisect_left(walk.uses, use.order, key=lambda each: each.order)
        levels = walk.levels

        def used(at: int) -> Sequence[int]:
            return levels[at].before(position) if at in levels else ()

        return self._risen(node, use, used) is not None

    def _walk(self, node: int) -> _Walk:
        if node not in self._walks:
            self._walks[node] = self._walked(node)
        return self._walks[node]

    def _walked(self, node: int) -> _Walk:
        walk, used = _Walk(self._below.get(node, []), set(), {}), dict[int, list[int]]()
        minimums: set[GangKey] = set()
        for position, use in enumerate(walk.uses):
            if use.is_surplus and use.gang not in minimums:
                continue
            risen = self._risen(node, use, lambda at: used.get(at, ()))
            if risen is None:
                continue
            walk.covered.add(use)
            if not use.is_surplus:
                minimums.add(use.gang)
            used.update(risen)
            for at, amounts in risen.items():
                level = walk.levels.setdefault(at, _Level())
                level.after.append(position)
                level.used.append(amounts)
        return walk

    def _risen(
        self, node: int, use: Use, used: Callable[[int], Sequence[int]]
    ) -> dict[int, list[int]] | None:
        """Return what is used from the part's queue up to a guarantee; None where it is beyond."""
        risen: dict[int, list[int]] = {}
        asked, of = use.asked, self._guarantees
        for at in self._guarantees.path(use.row):
            now = list(used(at)) or [0] * len(of.tree.resources)
            above = []
            for column, amount in asked:
                before, kept = now[column], of.kept(at, column)
                now[column] = before + amount
                if at == node and now[column] > of.quota(at, column):
                    return None
                above.append((column, max(0, now[column] - kept) - max(0, before - kept)))
            risen[at], asked = now, tuple(above)
            if at == node:
                break
        return risen
