"""The gangs that wait, by queue and in order, with what they ask for as rows of amounts.

Kept from one cycle to the next, so that a cycle pays for the gangs that came and went, not for all.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field

import numpy as np

from scheduling.model.amounts import Amounts, Positions
from scheduling.model.gang import GangKey, Group, PendingGang
from scheduling.model.queue import Ordering, Queue
from scheduling.queueing.quota_tree import QuotaTree

Place = tuple[int, int, float, str, str]
"""Setbacks, priority (falling), arrival, namespace, name: what orders the gangs of a queue."""


def place_of(gang: PendingGang, ordering: Ordering) -> Place:
    """Return the place of a gang among those of its queue; the smallest comes first.

    A gang that had room of late and could make no use of it comes after all others.
    """
    priority = 0 if ordering is Ordering.FIFO else -gang.priority
    return gang.setbacks, priority, gang.created, gang.key.namespace, gang.key.name


def requests_of(groups: Iterable[Group]) -> Mapping[str, int]:
    """Return what all pods of the groups ask for together, by resource."""
    total: Counter[str] = Counter()
    for group in groups:
        for resource, amount in group.shape.requests:
            total[resource] += amount * group.count
    return total


@dataclass(slots=True)
class Line:
    """The waiting gangs of one queue; `rows` are those of their requests, in the same order.

    `changes` counts how often a gang came or went.
    """

    queue: Queue
    places: list[Place] = field(default_factory=list)
    gangs: list[PendingGang] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    changes: int = 0

    def put(self, gang: PendingGang, row: int) -> None:
        """Let a gang wait at its place."""
        place = place_of(gang, self.queue.ordering)
        at = bisect_left(self.places, place)
        self.changes += 1
        self.places.insert(at, place)
        self.gangs.insert(at, gang)
        self.rows.insert(at, row)

    def drop(self, gang: PendingGang) -> int:
        """Take a gang out; return its row."""
        at = self.position(gang)
        self.changes += 1
        del self.places[at], self.gangs[at]
        return self.rows.pop(at)

    def position(self, gang: PendingGang) -> int:
        """Return how many gangs of the queue are before this one."""
        return bisect_left(self.places, place_of(gang, self.queue.ordering))


class WaitingGangs:
    """All lines, and one row of requests for each gang that waits."""

    def __init__(self, tree: QuotaTree) -> None:
        self.tree = tree
        self._lines = {each.name: Line(each) for each in tree.queues}
        self._where: dict[GangKey, tuple[Line, PendingGang]] = {}
        self._free: list[int] = []
        self._constrained: set[GangKey] = set()
        self._mounting: set[GangKey] = set()
        self._requests: Amounts = np.zeros((0, len(tree.resources)), dtype=np.int64)

    def __len__(self) -> int:
        """Count the gangs."""
        return len(self._where)

    def __iter__(self) -> Iterator[PendingGang]:
        """Yield all gangs, queue by queue, each in its order."""
        for line in self._lines.values():
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
        line, row = self._lines[gang.queue], self._new_row()
        if self.tree.resources:
            self._requests[row] = self.tree.requests(requests_of(gang.minimum))
        line.put(gang, row)
        self._where[gang.key] = line, gang
        if gang.has_inter_pod_constraints:
            self._constrained.add(gang.key)
        if gang.mounts_volumes:
            self._mounting.add(gang.key)

    def drop(self, key: GangKey) -> None:
        """Forget a gang, if it waits."""
        if key in self._where:
            line, gang = self._where.pop(key)
            self._free.append(line.drop(gang))
            self._constrained.discard(key)
            self._mounting.discard(key)

    @property
    def any_constrained(self) -> bool:
        """Say whether any gang that waits has inter-pod constraints."""
        return bool(self._constrained)

    @property
    def any_mounts(self) -> bool:
        """Say whether any gang that waits mounts claims."""
        return bool(self._mounting)

    def positions(self) -> Mapping[GangKey, int]:
        """Return how many gangs of its queue are before each gang."""
        lines = self._lines.values()
        return {gang.key: at for line in lines for at, gang in enumerate(line.gangs)}

    def lines(self) -> Iterator[Line]:
        """Yield the queues in which gangs wait, in the order of the tree."""
        return (line for line in self._lines.values() if line.gangs)

    def requests(self, line: Line) -> Amounts:
        """Return what the gangs of a line ask for at once: gangs x resources, in order."""
        rows: Positions = np.array(line.rows, dtype=np.intp)
        return self._requests[rows]

    def _new_row(self) -> int:
        if not self._free:
            had = len(self._requests)
            more = np.zeros((max(64, had), self._requests.shape[1]), dtype=np.int64)
            self._requests = np.concatenate([self._requests, more])
            self._free = list(range(len(self._requests) - 1, had - 1, -1))
        return self._free.pop()
