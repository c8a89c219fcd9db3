"""The gangs that wait, by queue and in order, with what they ask for as rows of amounts.

Kept from one cycle to the next, so that a cycle pays for the gangs that came and went, not for all.
"""

from collections.abc import Iterator, Set
from typing import NamedTuple

import numpy as np

from scheduling.model.amounts import Amounts, Mask, Positions
from scheduling.model.gang import GangKey, PendingGang
from scheduling.queueing.average_usage import MovedUsages
from scheduling.queueing.fair_line import FairLine, line_of
from scheduling.queueing.fair_shares import FairShares
from scheduling.queueing.line import Line, requests_of
from scheduling.queueing.quota_tree import QuotaTree

EVERY = slice(None)


class Columns(NamedTuple):
    """All gangs that wait, line by line in the order of the tree, as columns.

    `rows` tell gangs apart while they wait, `serials` for ever. `queue` is the row of its queue in
    the tree, `position` its place in the line, `demands` (resources x gangs) what its
    minimum asks for; no gang waits for one that `yields`. `starts` says by queue where its line
    begins.
    """

    rows: Positions
    serials: Positions
    queue: Positions
    position: Positions
    demands: Amounts
    is_repair: Mask
    yields: Mask
    starts: Positions

    def covered(self, allowance: Amounts, among: Positions | slice = EVERY) -> Mask:
        """Say which gangs ask for no more than their queue may take (queues x resources)."""
        queue = self.queue[among]
        found = np.ones(len(queue), dtype=np.bool_)
        for asked, may in zip(self.demands, np.maximum(allowance, 0).T, strict=True):
            found &= asked[among] <= np.take(may, queue)
        return found


class WaitingGangs:
    """All lines, and one row of requests for each gang that waits.

    `changes` counts by queue how often a gang came or went.
    """

    def __init__(self, tree: QuotaTree) -> None:
        self.tree = tree
        self.changes: Positions = np.zeros(len(tree.names), dtype=np.intp)
        self._lines = tuple(line_of(each) for each in tree.queues)
        self._fair = {each.queue.name: each for each in self._lines if isinstance(each, FairLine)}
        self._to_arrange: set[str] = set()
        self._shares: FairShares | None = None
        self._moved = MovedUsages({})
        self._overdue: Set[GangKey] = frozenset()
        self._where: dict[GangKey, tuple[Line, PendingGang]] = {}
        self._free: list[int] = []
        self._constrained: set[GangKey] = set()
        self._mounting: set[GangKey] = set()
        self._repairs: set[GangKey] = set()
        self._yielding: set[GangKey] = set()
        self._requests: Amounts = np.zeros((0, len(tree.resources)), dtype=np.int64)
        self._serials: Positions = np.zeros(0, dtype=np.intp)
        self._columns: Columns | None = None
        self._count = 0

    def __len__(self) -> int:
        """Count the gangs."""
        return len(self._where)

    def __iter__(self) -> Iterator[PendingGang]:
        """Yield all gangs, queue by queue, each in its order."""
        for line in self._lines:
            yield from line.gangs

    def keys(self) -> Set[GangKey]:
        """Return the gangs that wait."""
        return self._where.keys()

    def gang(self, key: GangKey) -> PendingGang | None:
        """Return the gang as it waits; None where it does not."""
        found = self._where.get(key)
        return None if found is None else found[1]

    def put(self, gang: PendingGang) -> None:
        """Let a gang wait, or wait with other demands; its queue must be one of the tree."""
        if gang.key in self._where:
            if self._where[gang.key][1] is gang:
                return
            self.drop(gang.key)
        line, row = self.line(gang.queue), self._new_row()
        if self.tree.resources:
            self._requests[row] = self.tree.requests(requests_of(gang.minimum))
        self._count += 1
        self._serials[row] = self._count
        line.put(gang, row)
        self._where[gang.key] = line, gang
        self._note_change(line)
        if gang.has_inter_pod_constraints:
            self._constrained.add(gang.key)
        if gang.mounts_volumes:
            self._mounting.add(gang.key)
        if gang.is_repair:
            self._repairs.add(gang.key)
        if gang.yields:
            self._yielding.add(gang.key)

    def drop(self, key: GangKey) -> None:
        """Forget a gang, if it waits."""
        if key in self._where:
            line, gang = self._where.pop(key)
            self._free.append(line.drop(gang))
            self._note_change(line)
            self._constrained.discard(key)
            self._mounting.discard(key)
            self._repairs.discard(key)
            self._yielding.discard(key)

    def arrange(self, shares: FairShares | None, overdue: Set[GangKey]) -> None:
        """Order the gangs of queues with fair sharing as their namespaces have used them.

        Until it is called, gangs that came stand at the end of their priority.
        """
        if shares is None or not self._fair:
            return
        if shares is not self._shares:
            self._shares, self._moved = shares, MovedUsages(shares.usages)
        for key in (overdue ^ self._overdue) & self._where.keys():
            line, _ = self._where[key]
            line.sort_again(key.namespace)
            self._to_arrange.add(line.queue.name)
        self._overdue = frozenset(overdue)
        named = self._to_arrange.union(self._moved.since_last())
        for line in (self._fair[each] for each in self._fair.keys() & named):
            if line.arrange(shares, overdue):
                self._note_change(line)
        self._to_arrange.clear()

    def _note_change(self, line: Line) -> None:
        self.changes[self.tree.index[line.queue.name]] += 1
        self._to_arrange.add(line.queue.name)
        self._columns = None

    @property
    def any_constrained(self) -> bool:
        """Say whether any gang that waits has inter-pod constraints."""
        return bool(self._constrained)

    @property
    def any_mounts(self) -> bool:
        """Say whether any gang that waits mounts claims."""
        return bool(self._mounting)

    def at(self, place: int) -> PendingGang:
        """Return a gang by its place in the columns."""
        columns = self.columns
        line = self._lines[int(columns.queue[place])]
        return line.gangs[int(columns.position[place])]

    def line(self, queue: str) -> Line:
        """Return the line of a queue, which may be empty."""
        return self._lines[self.tree.index[queue]]

    def requests(self, line: Line) -> Amounts:
        """Return what the gangs of a line ask for at once: gangs x resources, in order."""
        return self._requests[line.rows]

    @property
    def columns(self) -> Columns:
        """All gangs as columns, worked out when a gang came or went."""
        if self._columns is None:
            self._columns = self._in_columns()
        return self._columns

    def _in_columns(self) -> Columns:
        lengths = np.array([len(line.gangs) for line in self._lines], dtype=np.intp)
        starts = np.cumsum(lengths) - lengths
        queue = np.repeat(np.arange(len(lengths)), lengths)
        rows = np.concatenate([line.rows for line in self._lines])
        demands = np.ascontiguousarray(self._requests[rows].T)
        position = np.arange(len(queue)) - np.repeat(starts, lengths)
        is_repair = self._marked(self._repairs, starts)
        yields = self._marked(self._yielding, starts)
        serials = self._serials[rows]
        return Columns(rows, serials, queue, position, demands, is_repair, yields, starts)

    def _marked(self, keys: Set[GangKey], starts: Positions) -> Mask:
        """Say by their places which gangs are among these."""
        marks = np.zeros(len(self._where), dtype=np.bool_)
        for line, gang in (self._where[key] for key in keys):
            marks[starts[self.tree.index[line.queue.name]] + line.position(gang)] = True
        return marks

    def _new_row(self) -> int:
        if not self._free:
            had = len(self._requests)
            more = np.zeros((max(64, had), self._requests.shape[1]), dtype=np.int64)
            self._requests = np.concatenate([self._requests, more])
            self._serials = np.concatenate([self._serials, np.zeros(len(more), dtype=np.intp)])
            self._free = list(range(len(self._requests) - 1, had - 1, -1))
        return self._free.pop()
