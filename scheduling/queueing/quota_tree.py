"""Quota over a tree of queues: how much of each resource each queue may still take.

The arithmetic is that of Kueue's cohorts (`pkg/cache/scheduler/resource_node.go`), for all queues
at once. A queue stands for itself and for those below it:

- its subtree's quota is its own and what those below lend it;
- what it does not lend (`kept`) is taken from first, and no other queue ever takes it;
- what it uses beyond that counts in its parent as well, and so on upwards.

Arrays have a row for each queue, parents before children, and a column for each resource that a
queue names. Amounts are cut off at `MOST`, so that no sum of two leaves 64 bits.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from scheduling.model.amounts import Amounts, Mask, Positions
from scheduling.model.queue import Queue, WhenBlocked

MOST = 2**60
"""More than any cluster has of a resource; what is unlimited is this much."""


EVERY = slice(None)
Rows = Positions | list[int] | slice
Shares = NDArray[np.float64]


def millionths(part: Amounts, whole: Amounts) -> Shares:
    """Return parts in whole millionths, the same on every machine; floats do not overflow."""
    found: Shares = np.floor(part.astype(np.float64) * 1e6 / whole)
    return found


class QuotaTree:
    """The quota of all active queues; what they hold is an argument of every question.

    `index` finds the row of a queue, `column` that of a resource. `limited` says (queues x
    resources) whether the queue, one above it or one below it names the resource: of others it may
    take without limit, and none of it counts in its parent. `most` is what each queue can hold
    while no other holds anything. `preempting` names the queues whose gangs may stop others.
    `height` says how many queues are one below another under each; `nowhere` is above all heights.
    """

    def __init__(self, queues: Iterable[Queue]) -> None:
        self.queues = tuple(_parents_first({each.name: each for each in queues}))
        self.names = tuple(each.name for each in self.queues)
        self.index = {name: at for at, name in enumerate(self.names)}
        self.preempting = dict.fromkeys(each.name for each in self.queues if each.preempts)
        named = {resource for each in self.queues for resource in each.named_resources()}
        self.resources = tuple(sorted(named))
        self.column = {resource: at for at, resource in enumerate(self.resources)}
        self._parent = np.array([self.index.get(q.parent, -1) for q in self.queues], dtype=np.intp)
        self._levels = tuple(self._find_levels())
        self.height = self._find_heights()
        self.nowhere = len(self._levels)
        self.limited = self._find_limited()
        self._own = self._rows([each.quota for each in self.queues], 0)
        self._borrowing = self._rows([each.borrowing_limit for each in self.queues], MOST)
        self.subtree, self.kept = self._sum_up()
        self._most_shared = self.subtree - self.kept + self._borrowing
        self.has_limits: Mask = np.asarray(self.limited.any(axis=1))
        strict = [each.when_blocked is WhenBlocked.STRICT for each in self.queues]
        self.is_strict: Mask = np.array(strict, dtype=np.bool_)
        self.gets_nodes: Mask = np.array([each.gets_nodes for each in self.queues], dtype=np.bool_)
        self.most = self.available(np.zeros_like(self.subtree))

    def path(self, at: int) -> tuple[int, ...]:
        """Return the row of a queue and those of the queues above it, upwards."""
        rows = [at]
        while (above := int(self._parent[rows[-1]])) >= 0:
            rows.append(above)
        return tuple(rows)

    def has_below(self, at: int) -> bool:
        """Say whether there are queues below one."""
        return bool((self._parent == at).any())

    def is_limited(self, name: str) -> bool:
        """Say whether anything is limited in a queue; of one that is not in the tree everything."""
        at = self.index.get(name)
        return at is None or bool(self.limited[at].any())

    def unlimited_beside_others(self, at: int) -> tuple[str, ...]:
        """Return what a queue may take without limit, though others below its root may not."""
        others = self.limited[self.same_root(at)].any(axis=0)
        return tuple(self.resources[each] for each in np.flatnonzero(others & ~self.limited[at]))

    def requests(self, amounts: Mapping[str, int]) -> Amounts:
        """Return amounts by resource as a row, without the resources that no queue names."""
        return np.array([min(amounts.get(each, 0), MOST) for each in self.resources], np.int64)

    def used(self, held: Amounts) -> Amounts:
        """Return what each queue uses: what its gangs hold and what those below use of its quota.

        `held`: queues x resources, what the gangs of each queue hold.
        """
        used = np.where(self.limited, np.minimum(held, MOST), 0)
        for level in reversed(self._levels[1:]):
            beyond = np.where(self.limited[level], np.maximum(0, used[level] - self.kept[level]), 0)
            _add_up(used, self._parent[level], beyond)
        return used

    def available(self, used: Amounts) -> Amounts:
        """Return how much each queue may still take; negative where it holds more than it may.

        `used` as `used` gives it. What a queue keeps for itself is available to it even where
        those above are overdrawn.
        """
        available = self.subtree - used
        left = self.kept - used
        own, most = np.maximum(0, left), self._most_shared + np.minimum(0, left)
        for level in self._levels[1:]:
            shared = np.minimum(available[self._parent[level]], most[level])
            kept = own[level]
            available[level] = np.where(kept > 0, kept + np.maximum(0, shared), shared)
        return np.where(self.limited, np.clip(available, -MOST, MOST), MOST)

    def quota_left(self, held: Amounts) -> Amounts:
        """Return what is left of the quota that each queue itself names, beside what it holds."""
        return np.where(self.limited, self._own - held, MOST)

    def borrowing_levels(
        self, at: Positions, demands: Amounts, held: Amounts, used: Amounts
    ) -> Positions:
        """Return how far up queues must go for quota: the height of the lowest that covers it.

        0 where the quota that the queue itself names does, `nowhere` where none does, and where
        nothing is asked for that is limited.
        """
        levels = np.full(len(at), self.nowhere, dtype=np.intp)
        demands = np.where(self.limited[at], demands, 0)
        left = np.flatnonzero((demands > 0).any(axis=1))
        row, more = at[left], demands[left]
        asked = more > 0
        levels[left[_fits(held[row] + more, self._own[row], asked)]] = 0
        while len(left):
            covered = _fits(used[row] + more, self.subtree[row], asked)
            levels[left[covered]] = np.minimum(levels[left[covered]], self.height[row[covered]])
            goes_on = ~covered & (self._parent[row] >= 0)
            left, asked, row, more = left[goes_on], asked[goes_on], row[goes_on], more[goes_on]
            before = np.maximum(0, used[row] - self.kept[row])
            more = np.maximum(0, used[row] + more - self.kept[row]) - before
            row = self._parent[row]
        return levels

    def borrowing_level(self, at: int, demand: Amounts, held: Amounts, used: Amounts) -> int:
        """Return the level of one queue, without the arrays: thousands of its gangs may ask."""
        asked = {
            column: int(demand[column])
            for column in np.flatnonzero(self.limited[at] & (demand > 0)).tolist()
        }
        if not asked:
            return self.nowhere
        if all(held[at, column] + more <= self._own[at, column] for column, more in asked.items()):
            return 0
        for row in self.path(at):
            now = {column: (int(used[row, column]), more) for column, more in asked.items()}
            if all(was + more <= self.subtree[row, each] for each, (was, more) in now.items()):
                return int(self.height[row])
            for each, (was, more) in now.items():
                kept = int(self.kept[row, each])
                asked[each] = max(0, was + more - kept) - max(0, was - kept)
        return self.nowhere

    def take(self, at: int, demand: Amounts, used: Amounts) -> Iterator[int]:
        """Count in `used` what one queue takes, and those above it; yield the rows that change."""
        more = np.where(self.limited[at], demand, 0)
        while at >= 0 and more.any():
            before = np.maximum(0, used[at] - self.kept[at])
            used[at] = np.minimum(used[at] + more, MOST)
            beyond = np.maximum(0, used[at] - self.kept[at])
            yield at
            more, at = np.where(self.limited[at], beyond - before, 0), int(self._parent[at])

    def sharing(self, at: int, demand: Amounts, used: Amounts, available: Amounts) -> Mask:
        """Return the queues whose use keeps a demand of one waiting: all below the same one above.

        That is the topmost queue above it that has not enough for what the queues below it ask of
        it; the queue itself where none has too little.
        """
        top, asked, row = at, demand, at
        while self._parent[row] >= 0:
            asked = np.maximum(0, asked - np.maximum(0, self.kept[row] - used[row]))
            row = int(self._parent[row])
            if (asked > np.maximum(available[row], 0)).any():
                top = row
        return self._below(top)

    def same_root(self, at: int) -> Mask:
        """Return the queues that may use quota which one queue might use: all below its root."""
        return self._below(self.path(at)[-1])

    def _below(self, top: int) -> Mask:
        below = np.zeros(len(self.names), dtype=np.bool_)
        below[top] = True
        for level in self._levels[1:]:
            below[level] |= below[self._parent[level]]
        return below

    def kept_below(self) -> Amounts:
        """Return how much the queues right below each one keep, so that its quota lacks it."""
        sums = np.zeros_like(self.kept)
        for level in self._levels[1:]:
            _add_up(sums, self._parent[level], self.kept[level])
        return sums

    def borrowed(self, used: Amounts) -> Amounts:
        """Return how much each queue uses beyond the quota of its subtree."""
        return np.where(self.limited, np.maximum(0, used - self.subtree), 0)

    def shares(self, used: Amounts, at: Rows = EVERY) -> Shares:
        """Return the dominant share of queues: the largest part of its quota that each uses.

        In whole millionths; infinite where it uses what it has no quota of.
        """
        quota, uses = self.subtree[at], used[at]
        part = millionths(uses, np.maximum(quota, 1))
        part = np.where(quota > 0, part, np.where(uses > 0, np.inf, 0))
        shares: Shares = np.where(self.limited[at], part, 0).max(axis=1, initial=0)
        return shares

    def _find_levels(self) -> Iterator[Positions]:
        """Yield the rows of each depth, roots first."""
        depth = np.zeros(len(self.queues), dtype=np.intp)
        for at, parent in enumerate(self._parent):
            depth[at] = 0 if parent < 0 else depth[parent] + 1
        for each in range(int(depth.max(initial=0)) + 1):
            yield np.flatnonzero(depth == each)

    def _find_heights(self) -> Positions:
        heights = np.zeros(len(self.queues), dtype=np.intp)
        for level in reversed(self._levels[1:]):
            np.maximum.at(heights, self._parent[level], heights[level] + 1)
        return heights

    def _find_limited(self) -> Mask:
        named = np.zeros((len(self.queues), len(self.resources)), dtype=np.bool_)
        for at, queue in enumerate(self.queues):
            named[at, [self.column[each] for each in queue.named_resources()]] = True
        above, below = named.copy(), named.copy()
        for level in self._levels[1:]:
            above[level] |= above[self._parent[level]]
        for level in reversed(self._levels[1:]):
            np.logical_or.at(below, self._parent[level], below[level])
        return above | below

    def _rows(self, amounts: Sequence[Mapping[str, int]], otherwise: int) -> Amounts:
        rows = [[min(each.get(r, otherwise), MOST) for r in self.resources] for each in amounts]
        return np.array(rows, dtype=np.int64).reshape(len(self.queues), len(self.resources))

    def _sum_up(self) -> tuple[Amounts, Amounts]:
        """Return the quota of each subtree, and how much of that the queue does not lend."""
        subtree = self._rows([each.quota for each in self.queues], 0)
        lending = self._rows([each.lending_limit for each in self.queues], MOST)
        kept = np.zeros_like(subtree)
        for level in reversed(self._levels[1:]):
            kept[level] = np.maximum(0, subtree[level] - lending[level])
            _add_up(subtree, self._parent[level], subtree[level] - kept[level])
        return subtree, kept


def _parents_first(queues: Mapping[str, Queue]) -> list[Queue]:
    """Order queues by name, each after those above it; raises KeyError for a missing parent."""
    ordered: dict[str, Queue] = {}
    for name in sorted(queues):
        way, at = [], name
        while at and at not in ordered:
            way.append(queues[at])
            at = queues[at].parent
        ordered.update((each.name, each) for each in reversed(way))
    return list(ordered.values())


def _fits(total: Amounts, quota: Amounts, asked: Mask) -> Mask:
    """Say of which rows the total is within the quota, of the resources that are asked for."""
    found: Mask = np.asarray(((total <= quota) | ~asked).all(axis=1))
    return found


def _add_up(rows: Amounts, to: Positions, more: Amounts) -> None:
    """Add each row of `more` to the row of `rows` that `to` names, cut off at MOST.

    The sum of floats tells where the exact one would have left 64 bits.
    """
    rough = rows.astype(np.float64)
    np.add.at(rough, to, more)
    np.add.at(rows, to, more)
    rows[rough > MOST] = MOST
