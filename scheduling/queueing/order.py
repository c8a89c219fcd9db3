"""Says which gang is decided next: across queues by share of quota, in a queue by its own order.

One loop over all queues, with the same answer every time. A gang that its own queue's quota covers
comes before one that borrows, and the latter before none: the queue `default` has no quota, so all
its gangs borrow. Among the first the queue comes first that uses the smallest share of its quota
(of the resource it uses most of, as in Dominant Resource Fairness); among the others the one that
holds the smallest share of the cluster. Then priority, arrival and name decide. A gang that has
waited too long is decided before those of other queues, but a borrower never before a gang that
its own quota covers.

A gang whose queue may not take what it asks for is never decided; in a queue that is Strict nothing
behind a blocked gang is, but the repairs of gangs that run.
"""

import heapq
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scheduling.model.amounts import Amounts, Positions
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.queue import WhenBlocked
from scheduling.queueing.quota_tree import QuotaTree, millionths
from scheduling.queueing.waiting import Line, WaitingGangs, requests_of

Rank = tuple[int, bool, bool, float, int, float, str, str]
"""Setbacks, borrows, not overdue, share, priority (falling), arrival, namespace, name."""


PROTECTED = 100
"""So many gangs of a queue that wait for quota are looked at; those behind them come later."""


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Gangs of one queue, by position, that this cycle did not decide.

    `demands` are their rows of requests. `behind` is the blocked gang that they may not pass; None
    where they wait for quota.
    """

    line: Line
    positions: tuple[int, ...]
    demands: Amounts
    behind: GangKey | None = None


class QueueOrder:
    """One cycle's walk over the queues; what it hands out must be taken, blocked or passed over.

    `held` is what the gangs of each queue hold (queues x resources), `cluster` what all nodes have
    of each resource; `overdue` are the gangs that have waited too long.
    """

    def __init__(
        self,
        waiting: WaitingGangs,
        held: Amounts,
        cluster: Mapping[str, int],
        overdue: Container[GangKey] = frozenset(),
    ) -> None:
        self._tree: QuotaTree = waiting.tree
        self._held, self._overdue = held.copy(), overdue
        self._cluster = np.maximum(1, self._tree.requests(cluster))
        most = self._tree.most
        if cluster:
            most = np.minimum(most, self._tree.requests(cluster))
        self._progress = {line.queue.name: _Progress(line, waiting) for line in waiting.lines()}
        self._entries: list[tuple[Rank, int, str]] = []
        self._next_demands = np.zeros_like(held)
        self._count()
        for name, progress in self._progress.items():
            progress.begin(self._allowance(name), most[self._tree.index[name]])
            self._enter(name)

    def __iter__(self) -> Iterator[PendingGang]:
        """Yield the gangs that may be decided, each when those before it are."""
        while self._entries:
            rank, at, name = heapq.heappop(self._entries)
            progress = self._progress[name]
            if progress.is_at(at):
                now = self._rank(progress)
                if now > rank:  # the share has grown since: perhaps another queue is before it
                    heapq.heappush(self._entries, (now, at, name))
                    continue
                yield progress.step()
                self._enter(name)

    def take(self, gang: PendingGang, amounts: Mapping[str, int]) -> None:
        """Count what an admitted gang holds from now on, by resource."""
        self._held[self._tree.index[gang.queue]] += self._tree.requests(amounts)
        self._count()
        over = (self._next_demands > np.maximum(self._available, 0)).any(axis=1)
        for at in np.flatnonzero(over).tolist():
            self._enter(self._tree.names[at])

    def give_back(self, queue: str, amounts: Amounts) -> None:
        """Count no more what was promised to a gang of a queue; a row over the tree's columns."""
        self._held[self._tree.index[queue]] -= amounts
        self._count()

    def block(self, gang: PendingGang) -> None:
        """Note that a gang found no room.

        In a Strict queue those behind it wait; in one that backfills the short ones go first.
        """
        progress = self._progress[gang.queue]
        match progress.line.queue.when_blocked:
            case WhenBlocked.STRICT:
                progress.stop_behind(gang)
            case WhenBlocked.BACKFILL:
                progress.put_short_first()

    def _enter(self, name: str) -> None:
        """Let the next gang of a queue that its quota covers take part; none if there is none."""
        progress, row = self._progress[name], self._tree.index[name]
        if progress.find(self._allowance(name)):
            self._next_demands[row] = progress.demand
            heapq.heappush(self._entries, (self._rank(progress), progress.at, name))
        else:
            self._next_demands[row] = 0

    def available(self, queue: str) -> Amounts:
        """Return what a queue may still take, by column of the tree."""
        return self._allowance(queue)

    def used(self, queue: str) -> Amounts:
        """Return what a queue uses, by column of the tree."""
        row: Amounts = self._used[self._tree.index[queue]]
        return row

    def units_within_quota(self, gang: PendingGang) -> Sequence[int]:
        """Return the positions of the units of a surplus that the quota covers, in their order."""
        if not self._tree.resources:
            return range(len(gang.surplus))
        left = self._allowance(gang.queue) - self._tree.requests(requests_of(gang.minimum))
        covered = []
        for at, unit in enumerate(gang.surplus):
            demand = self._tree.requests(requests_of(unit))
            if (demand <= np.maximum(left, 0)).all():
                covered.append(at)
                left = left - demand
        return covered

    @property
    def held(self) -> Amounts:
        """Return what the gangs of each queue hold, with those admitted so far."""
        return self._held

    def over_quota(self) -> Iterator[Sequence[PendingGang]]:
        """Yield the first gangs of each queue that wait for quota when the cycle begins."""
        for progress in self._progress.values():
            if len(progress.blocked):
                yield [progress.line.gangs[at] for at in progress.blocked[:PROTECTED].tolist()]

    def waiting_for_quota(self, queues: Collection[str]) -> Iterator[PendingGang]:
        """Yield the first gangs of some queues that wait for quota by now; of a Strict one one."""
        for name in queues:
            progress = self._progress.get(name)
            if progress is not None:
                yield from progress.waiting_for_quota()

    def held_back(self) -> Iterator[HeldBack]:
        """Yield the gangs that were not decided, with the reason, once all others are."""
        for progress in self._progress.values():
            yield from progress.held_back()

    def _count(self) -> None:
        self._used = self._tree.used(self._held)
        self._available = self._tree.available(self._used)
        self._shares = self._tree.shares(self._used)

    def _allowance(self, name: str) -> Amounts:
        row: Amounts = self._available[self._tree.index[name]]
        return row

    def _rank(self, progress: "_Progress") -> Rank:
        """Return what orders the next gang of a queue among those of the others."""
        return self._rank_of(progress.line.gangs[progress.at], progress.demand)

    def rank(self, gang: PendingGang) -> Rank:
        """Return what orders a gang among those of all queues as things stand."""
        return self._rank_of(gang, self._demand(gang))

    def _rank_of(self, gang: PendingGang, demand: Amounts) -> Rank:
        at = self._tree.index[gang.queue]
        borrows = self._borrows(at, demand)
        share = self._share_of_cluster(at) if borrows else float(self._shares[at])
        is_young = gang.key not in self._overdue
        place = -gang.priority, gang.created, gang.key.namespace, gang.key.name
        return gang.setbacks, borrows, is_young, share, *place

    def _demand(self, gang: PendingGang) -> Amounts:
        return self._tree.requests(requests_of(gang.minimum))

    def borrows(self, gang: PendingGang) -> bool:
        """Say whether the minimum of a gang would take its queue beyond its own quota."""
        return self._borrows(self._tree.index[gang.queue], self._demand(gang))

    def covers(self, gang: PendingGang) -> bool:
        """Say whether the quota covers the minimum of a gang as things stand."""
        return bool((self._demand(gang) <= np.maximum(self._allowance(gang.queue), 0)).all())

    def _borrows(self, at: int, demand: Amounts) -> bool:
        """Say whether a queue would use more than its own quota, or has none."""
        limited = self._tree.limited[at]
        beyond = self._used[at] + demand > self._tree.subtree[at]
        return not limited.any() or bool((beyond & limited & (demand > 0)).any())

    def _share_of_cluster(self, at: int) -> float:
        holds = np.maximum(self._held[at], self._used[at])
        return float(millionths(holds, self._cluster).max(initial=0))


class _Progress:
    """How far one line has come: the gangs that its quota let through when the cycle began."""

    def __init__(self, line: Line, waiting: WaitingGangs) -> None:
        self.line = line
        self._demands = waiting.requests(line)
        self._open: Positions = np.zeros(0, dtype=np.intp)
        self._next = 0
        self._given = np.zeros(len(line.gangs), dtype=np.bool_)
        self._end = len(line.gangs)
        self.blocked: Positions = np.zeros(0, dtype=np.intp)
        self._is_short_first = False

    def begin(self, allowance: Amounts, most: Amounts) -> None:
        """Look which gangs the quota lets through; others have no chance in this cycle.

        What no quota, or not all nodes together, will ever cover blocks nothing.
        """
        fits = (self._demands <= np.maximum(allowance, 0)).all(axis=1)
        self._open = np.flatnonzero(fits)
        self.blocked = np.flatnonzero(~fits & (self._demands <= most).all(axis=1))
        if len(self.blocked) and self._is_strict:
            self._stop_at(int(self.blocked[0]))

    @property
    def _is_strict(self) -> bool:
        return self.line.queue.when_blocked is WhenBlocked.STRICT

    @property
    def at(self) -> int:
        """The position of the next gang."""
        return int(self._open[self._next])

    @property
    def demand(self) -> Amounts:
        """What the next gang asks for."""
        row: Amounts = self._demands[self.at]
        return row

    def is_at(self, position: int) -> bool:
        """Say whether the gang at this position is the next, and may be decided."""
        return self._next < len(self._open) and self.at == position

    def find(self, allowance: Amounts) -> bool:
        """Go on to the next gang that the quota covers; say whether there is one."""
        if self._next >= len(self._open):
            return False
        if bool((self.demand <= np.maximum(allowance, 0)).all()):
            return True
        if self._is_strict:
            self._stop_at(self.at)
        self._drop_uncovered(allowance)
        return self._next < len(self._open)

    def _drop_uncovered(self, allowance: Amounts) -> None:
        """Leave out the gangs that the quota no longer covers: within a cycle it only shrinks."""
        rest = self._open[self._next :]
        covered = (self._demands[rest] <= np.maximum(allowance, 0)).all(axis=1)
        self._open = np.concatenate([self._open[: self._next], rest[covered]])

    def step(self) -> PendingGang:
        """Hand out the next gang."""
        at = self.at
        self._given[at] = True
        self._next += 1
        return self.line.gangs[at]

    def put_short_first(self) -> None:
        """Order those that may pass a blocked gang: priority, then the shorter one, once.

        (Tsafrir et al., "Backfilling Using System-Generated Predictions Rather than User Runtime
        Estimates", 2007: the order in which gangs pass costs the blocked one nothing.)
        """
        if self._is_short_first:
            return
        self._is_short_first = True
        gangs = self.line.gangs
        rest = self._open[self._next :].tolist()
        rest.sort(key=lambda at: (-gangs[at].priority, gangs[at].duration, at))
        self._open = np.concatenate([self._open[: self._next], np.array(rest, dtype=np.intp)])

    def stop_behind(self, gang: PendingGang) -> None:
        """Let all that are behind a gang wait."""
        self._stop_at(self.line.position(gang))

    def _stop_at(self, position: int) -> None:
        """Let nothing behind a position be decided but repairs."""
        self._end = min(self._end, position)
        rest = self._open[self._next :]
        goes_on = [at <= self._end or self.line.gangs[at].is_repair for at in rest.tolist()]
        rest = rest[np.array(goes_on, dtype=np.bool_)]
        self._open = np.concatenate([self._open[: self._next], rest])

    def waiting_for_quota(self) -> Iterator[PendingGang]:
        """Yield the first gangs that will not be handed out, but those behind a blocked one."""
        waits = ~self._given
        waits[self._open[self._next :]] = False
        positions = np.flatnonzero(waits)[:PROTECTED].tolist()
        yield from (self.line.gangs[at] for at in positions if at <= self._end)

    def held_back(self) -> Iterator[HeldBack]:
        """Yield the gangs that were not handed out: for want of quota, or behind one that waits."""
        positions = np.flatnonzero(~self._given)
        waits = [at > self._end and not self.line.gangs[at].is_repair for at in positions.tolist()]
        is_behind = np.array(waits, dtype=np.bool_)
        quota, behind = positions[~is_behind], positions[is_behind]
        if len(quota):
            yield HeldBack(self.line, tuple(quota.tolist()), self._demands[quota])
        if len(behind):
            first = self.line.gangs[self._end].key
            yield HeldBack(self.line, tuple(behind.tolist()), self._demands[behind], first)
