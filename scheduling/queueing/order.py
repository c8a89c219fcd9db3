"""Selects the next gang to decide: across queues by share of quota, in a queue by its own order.

One loop over all queues, with the same answer every time. A gang that its own queue's quota covers
comes first; of those that borrow, one that quota covers lower in the tree comes before one that it
covers higher up, so that none is begun which another could stop at once (`preemption`). What no
quota covers comes last: the queue `default` has none. Within their own quota the queue comes first
that uses the smallest share of it (of the resource it uses most of, as in Dominant Resource
Fairness); of equal borrowers the one that holds the smallest share of the cluster. Then priority,
arrival and name decide. A gang that runs and lost a part of its minimum is decided before those of
other queues, and after it one that has waited too long; but never before one that borrows less far.

A gang whose queue may not take what it asks for is never decided; in a queue that is Strict nothing
behind a blocked gang is, but the repairs of gangs that run.
"""

import heapq
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from itertools import repeat

import numpy as np

from scheduling.model.amounts import Amounts, Mask, Positions
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.queue import WhenBlocked
from scheduling.queueing.fair_shares import FairShares
from scheduling.queueing.line import Line, requests_of
from scheduling.queueing.line_progress import NO_END, LineProgress
from scheduling.queueing.queue_shares import QueueShares
from scheduling.queueing.quota_tree import EVERY, QuotaTree
from scheduling.queueing.refusal_refresh import BEHIND, DECIDED, QUOTA, UndecidedGangs
from scheduling.queueing.surplus_quota import units_covered
from scheduling.queueing.waiting import WaitingGangs

Rank = tuple[int, int, int, float, int, float, str, str]
"""Setbacks, borrowing level, turn, share, priority (falling), arrival, namespace, name."""

REPAIR, OVERDUE, USUAL = range(3)

PROTECTED = 100
"""So many gangs of a queue that wait for quota are looked at; those behind them come later."""

Level = Callable[[PendingGang, int], int]
"""How far up the quota is that covers a gang, given that which covers it beside all in use."""


def _counted(_: PendingGang, counted: int) -> int:
    return counted


class QueueOrder:
    """One cycle's walk over the queues; what it hands out must be taken, blocked or passed over.

    `held` is what the gangs of each queue hold (queues x resources), `cluster` what all nodes have
    of each resource; `overdue` are the gangs that have waited too long. `level` judges the quota of
    gangs that may reclaim it.

    Of most queues nothing is decided in a cycle: all of them together are looked at as columns.
    Only a queue whose turn comes is walked gang by gang (`LineProgress`).
    """

    def __init__(
        self,
        waiting: WaitingGangs,
        held: Amounts,
        cluster: Mapping[str, int],
        overdue: Container[GangKey] = frozenset(),
        level: Level = _counted,
        fair: FairShares | None = None,
    ) -> None:
        self._tree: QuotaTree = waiting.tree
        self._waiting, self._columns, self._overdue = waiting, waiting.columns, overdue
        self._level = level
        self._most = self._tree.most
        if cluster:
            self._most = np.minimum(self._most, self._tree.requests(cluster))
        self._held = held.copy()
        self._used = self._tree.used(self._held)
        self._available = self._tree.available(self._used)
        self._shares = QueueShares(self._tree, cluster, self._used, fair)
        self._progress: dict[str, LineProgress] = {}
        self._entries: list[tuple[Rank, int, str, int]] = []
        self._moves = 0  # how often shares changed: a rank from before that may be another by now
        self._settled: list[int] = []
        self._next_demands = np.zeros_like(held)
        self._begins_with: Mask | None = None
        self._blocked: Mask | None = None
        self._blocked_early: list[PendingGang] = []
        self._is_begun = False
        self._heads = np.full(len(held), -1, dtype=np.intp)
        self._ends = np.full(len(held), NO_END, dtype=np.intp)

    def __iter__(self) -> Iterator[PendingGang]:
        """Yield the gangs that may be decided, each when those before it are."""
        self.begin()
        while self._entries:
            rank, at, name, moves = heapq.heappop(self._entries)
            row = self._tree.index[name]
            if name not in self._progress and self._heads[row] == at:
                self._walk(row, name)
            progress = self._progress.get(name)
            if progress is not None and progress.is_at(at):
                now = rank if moves == self._moves else self._rank(progress)
                if now > rank:  # the share has grown since: perhaps another queue is before it
                    heapq.heappush(self._entries, (now, at, name, self._moves))
                    continue
                yield progress.step()
                self._enter(name)

    def take(self, gang: PendingGang, amounts: Mapping[str, int]) -> None:
        """Count what an admitted gang holds from now on, by resource."""
        self._shares.charge(gang.queue, amounts)
        self._take(gang, self._tree.requests(amounts))

    def take_row(self, gang: PendingGang, demand: Amounts) -> None:
        """Count what was promised to a gang; a row over the tree's columns."""
        self._shares.charge(gang.queue, requests_of(gang.minimum))
        self._take(gang, demand)

    def _take(self, gang: PendingGang, demand: Amounts) -> None:
        row = self._tree.index[gang.queue]
        self._held[row] += demand
        self._note_move()
        changed = list(self._tree.take(row, demand, self._used))
        if changed:
            self._shares.note_use(changed, self._used)
            self._available = self._tree.available(self._used)
            self._drop_uncovered()

    def _drop_uncovered(self) -> None:
        """Have queues go on to their next gang whose first one the quota no longer covers."""
        beyond = self._next_demands > np.maximum(self._available, 0)
        over: Mask = np.asarray(beyond.any(axis=1))
        if not over.any():
            return
        for name in self._progress:
            if over[self._tree.index[name]]:
                over[self._tree.index[name]] = False
                self._enter(name)
        self._stop_strict(np.flatnonzero(over), self._heads)
        self._next_demands[over], self._heads[over] = 0, -1
        among = np.flatnonzero(over[self._columns.queue] & self._covered)
        self._enter_first(among[self._columns.covered(self._available, among)])

    def give_back(self, queue: str, amounts: Amounts) -> None:
        """Count no more what was promised to a gang of a queue; a row over the tree's columns."""
        self._held[self._tree.index[queue]] -= amounts
        self._note_move()
        self._begins_with = self._blocked = None
        self._used = self._tree.used(self._held)
        self._available = self._tree.available(self._used)
        self._shares.note_use(EVERY, self._used)

    def _note_move(self) -> None:
        self._moves += 1
        self._shares.note_held()

    def settle(self, gang: PendingGang) -> None:
        """Note that a gang was decided that was not handed out."""
        self._settled.append(self.place(gang))

    def block(self, gang: PendingGang) -> None:
        """Note that a gang found no room.

        In a Strict queue those behind it wait; in one that backfills the short ones go first.
        """
        if self._waiting.line(gang.queue).queue.when_blocked is WhenBlocked.BEST_EFFORT:
            return
        if not self._is_begun:
            self._blocked_early.append(gang)
            return
        if gang.queue not in self._progress:
            self._walk(self._tree.index[gang.queue], gang.queue)
        progress = self._progress[gang.queue]
        match progress.line.queue.when_blocked:
            case WhenBlocked.STRICT:
                progress.stop_behind(gang)
            case WhenBlocked.BACKFILL:
                progress.put_short_first()
        self._enter(gang.queue)  # its first gang may be another one now

    # ---- all queues together

    def begin(self) -> None:
        """Let the first gang of each queue that its quota covers take part, once.

        What was promised to gangs must be given back by then: from now on quota only shrinks.
        """
        if self._is_begun:
            return
        if self._tree.is_strict.any():
            blocked = np.flatnonzero(self._blocked_first)
            queues, at = np.unique(self._columns.queue[blocked], return_index=True)
            firsts = np.full_like(self._heads, NO_END)
            firsts[queues] = self._columns.position[blocked[at]]
            self._stop_strict(queues, firsts)
        self._enter_first(np.flatnonzero(self._covered))
        self._is_begun = True
        for gang in self._blocked_early:
            self.block(gang)

    @property
    def _covered(self) -> Mask:
        """The gangs that quota covers when the cycle begins."""
        if self._begins_with is None:
            self._begins_with = self._columns.covered(self._available)
        return self._begins_with

    @property
    def _blocked_first(self) -> Mask:
        """The gangs that waited for quota as the cycle began, but what none will ever cover."""
        if self._blocked is None:
            waits = ~(self._covered | self._columns.yields)
            self._blocked = waits & self._columns.covered(self._most)
        return self._blocked

    def _stop_strict(self, queues: Positions, at: Positions) -> None:
        """Let nothing behind these positions be decided in queues that are Strict."""
        strict = queues[self._tree.is_strict[queues]]
        self._ends[strict] = np.minimum(self._ends[strict], at[strict])

    def _enter_first(self, among: Positions) -> None:
        """Let of each queue the first of some gangs, in order, take part that nothing stops."""
        columns = self._columns
        queue = columns.queue[among]
        goes_on = columns.position[among] <= self._ends[queue]
        among = among[goes_on | columns.is_repair[among]]
        queues, first = np.unique(columns.queue[among], return_index=True)
        heads = among[first]
        demands, positions = columns.demands[:, heads].T, columns.position[heads]
        self._heads[queues], self._next_demands[queues] = positions, demands
        ranks = self._ranks(queues, positions, demands)
        names = [self._tree.names[row] for row in queues.tolist()]
        moves = repeat(self._moves, len(names))
        self._entries += zip(ranks, positions.tolist(), names, moves, strict=True)
        heapq.heapify(self._entries)

    def _ranks(self, queues: Positions, positions: Positions, demands: Amounts) -> Iterator[Rank]:
        """Yield what orders gangs, one of each queue, among each other."""
        counted = self._tree.borrowing_levels(queues, demands, self._held, self._used).tolist()
        lines = [self._waiting.line(self._tree.names[row]) for row in queues.tolist()]
        heads = list(zip(lines, positions.tolist(), strict=True))
        levels = np.array(
            [
                self._level(line.gangs[at], level)
                for (line, at), level in zip(heads, counted, strict=True)
            ],
            dtype=np.intp,
        )
        shares = self._shares.of_all(queues, levels, self._held, self._used)
        told = (heads, levels.tolist(), shares.tolist())
        for (line, at), level, share in zip(*told, strict=True):
            yield self._rank_of(line, at, level, share)

    def _walk(self, row: int, name: str) -> None:
        """Go on gang by gang in a queue whose turn has come."""
        line, begins = self._waiting.line(name), int(self._columns.starts[row])
        covered = self._covered[begins : begins + len(line.gangs)]
        progress = LineProgress(line, self._waiting.requests(line), covered, int(self._ends[row]))
        progress.find(self._allowance(name))
        self._progress[name] = progress

    # ---- one queue

    def _enter(self, name: str) -> None:
        """Let the next gang of a queue that its quota covers take part; none if there is none."""
        progress, row = self._progress[name], self._tree.index[name]
        if progress.find(self._allowance(name)):
            self._next_demands[row] = progress.demand
            entry = self._rank(progress), progress.at, name, self._moves
            heapq.heappush(self._entries, entry)
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
        if not self._tree.resources or not gang.surplus:
            return range(len(gang.surplus))
        return units_covered(gang, self._tree, self._allowance(gang.queue))

    @property
    def used_by_queue(self) -> Amounts:
        """Return what each queue uses."""
        return self._used

    @property
    def available_by_queue(self) -> Amounts:
        """Return what each queue may still take."""
        return self._available

    @property
    def held(self) -> Amounts:
        """Return what the gangs of each queue hold, with those admitted so far."""
        return self._held

    def first_over_quota(self, queue: str) -> PendingGang | None:
        """Return the first gang of a queue that waited for quota when the cycle began."""
        return next(iter(self.over_quota(queue, most=1)), None)

    def queues_over_quota(self) -> Iterator[str]:
        """Yield the queues of which gangs waited for quota when the cycle began."""
        for row in np.unique(self._columns.queue[self._blocked_first]).tolist():
            yield self._tree.names[row]

    def lenders(self) -> Iterator[PendingGang]:
        """Yield of each queue the first gang that waited for quota which its own queue has lent."""
        columns, owns = self._columns, self._tree.quota_left(self._held)
        waits = np.flatnonzero(self._blocked_first & columns.covered(owns))
        _, first = np.unique(columns.queue[waits], return_index=True)
        yield from map(self._waiting.at, waits[first].tolist())

    def waiting_for_quota(self, queues: Collection[str]) -> Iterator[PendingGang]:
        """Yield the first gangs of some queues that wait for quota by now; of a Strict one one."""
        for name in queues:
            line, row = self._waiting.line(name), self._tree.index[name]
            begins, progress = int(self._columns.starts[row]), self._progress.get(name)
            among = np.arange(begins, begins + len(line.gangs))
            waits = ~self._columns.covered(self._available, among)
            end = int(self._ends[row])
            if progress is not None:
                waits, end = waits & ~progress.given, progress.end
            positions = np.flatnonzero(waits)[:PROTECTED].tolist()
            yield from (line.gangs[at] for at in positions if at <= end)

    def over_quota(self, queue: str, most: int = PROTECTED) -> Sequence[PendingGang]:
        """Return the first gangs of a queue that waited for quota when the cycle began."""
        gangs = self._waiting.line(queue).gangs
        begins = int(self._columns.starts[self._tree.index[queue]])
        blocked = np.flatnonzero(self._blocked_first[begins : begins + len(gangs)])
        return [gangs[at] for at in blocked[:most].tolist()]

    def _allowance(self, name: str) -> Amounts:
        row: Amounts = self._available[self._tree.index[name]]
        return row

    def _rank(self, progress: LineProgress) -> Rank:
        """Return what orders the next gang of a queue among those of the others."""
        return self._rank_with(progress.line, progress.at, progress.demand)

    def rank(self, gang: PendingGang) -> Rank:
        """Return what orders a gang among those of all queues as things stand."""
        line = self._waiting.line(gang.queue)
        return self._rank_with(line, line.position(gang), self._demand(gang))

    def _rank_with(self, line: Line, at: int, demand: Amounts) -> Rank:
        row = self._tree.index[line.queue.name]
        counted = self._tree.borrowing_level(row, demand, self._held, self._used)
        level = self._level(line.gangs[at], counted)
        share = self._shares.of(row, level, self._held, self._used)
        return self._rank_of(line, at, level, share)

    def _rank_of(self, line: Line, at: int, level: int, share: float) -> Rank:
        setbacks, *_, created, namespace, name = line.places[at]
        gang = line.gangs[at]
        if gang.key in self._overdue and not gang.only_repairs:
            return setbacks, level, OVERDUE, 0.0, 0, created, namespace, name
        turn = REPAIR if gang.only_repairs else USUAL
        return setbacks, level, turn, share, -gang.priority, created, namespace, name

    def _demand(self, gang: PendingGang) -> Amounts:
        return self._tree.requests(requests_of(gang.minimum))

    def borrows(self, gang: PendingGang) -> bool:
        """Say whether the minimum of a gang would take its queue beyond its own quota."""
        row, demand = self._tree.index[gang.queue], self._demand(gang)
        return self._tree.borrowing_level(row, demand, self._held, self._used) > 0

    def covers(self, gang: PendingGang) -> bool:
        """Say whether the quota covers the minimum of a gang as things stand."""
        return bool((self._demand(gang) <= np.maximum(self._allowance(gang.queue), 0)).all())

    def place(self, gang: PendingGang) -> int:
        """Return where a gang is among the columns of all that wait."""
        begins = int(self._columns.starts[self._tree.index[gang.queue]])
        return begins + self._waiting.line(gang.queue).position(gang)

    # ---- what was not decided

    def undecided(self) -> UndecidedGangs:
        """Return which gangs were not decided and why, once all others are."""
        columns, ends = self._columns, self._ends.copy()
        for name, progress in self._progress.items():
            ends[self._tree.index[name]] = min(progress.end, NO_END)
        is_behind = (columns.position > ends[columns.queue]) & ~columns.is_repair
        why = np.where(is_behind, BEHIND, QUOTA).astype(np.int8)
        for name, progress in self._progress.items():
            begins = int(columns.starts[self._tree.index[name]])
            why[begins : begins + len(progress.given)][progress.given] = DECIDED
        why[self._settled] = DECIDED
        return UndecidedGangs(why, ends, self._used, self._available)
