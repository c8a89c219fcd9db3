"""The gangs that wait in one queue, in their order."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

import numpy as np

from scheduling.model.amounts import Positions
from scheduling.model.gang import SUBMITTER, GangKey, Group, PendingGang
from scheduling.model.queue import Ordering, Queue

Place = tuple[int, int, bool, float, float, str, str]
"""What orders the gangs of a queue: setbacks, priority (falling), no repair, share, arrival, names.

The share is 0 for all where the usage of namespaces does not count.
"""


def place_of(gang: PendingGang, ordering: Ordering, share: float = 0.0) -> Place:
    """Return the place of a gang among those of its queue; the smallest comes first.

    A gang that had room of late and could make no use of it comes after all others. A repair comes
    before what has not begun: until it has the room, all that its gang holds may be of no use.
    """
    priority = 0 if ordering is Ordering.FIFO else -gang.priority
    names = gang.key.namespace, gang.key.name
    return gang.setbacks, priority, not gang.only_repairs, share, gang.created, *names


def requests_of(groups: Iterable[Group]) -> Mapping[str, int]:
    """Return what all pods of the gang in the groups ask for together, by resource."""
    total: Counter[str] = Counter()
    for group in (each for each in groups if each.pod_set != SUBMITTER):
        for resource, amount in group.shape.requests:
            total[resource] += amount * group.count
    return total


class Line:
    """The waiting gangs of one queue, in their order; `rows` are those of their requests."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.places: list[Place] = []
        self.gangs: list[PendingGang] = []
        self._rows: list[int] = []
        self._as_array: Positions | None = None

    def place(self, gang: PendingGang) -> Place:
        """Return what orders a gang among those of the line."""
        return place_of(gang, self.queue.ordering)

    @property
    def rows(self) -> Positions:
        """The rows of the gangs, worked out when the line has changed."""
        if self._as_array is None:
            self._as_array = np.array(self._rows, dtype=np.intp)
        return self._as_array

    def put(self, gang: PendingGang, row: int) -> None:
        """Let a gang wait at its place."""
        place = self.place(gang)
        at = bisect_left(self.places, place)
        self._as_array = None
        self.places.insert(at, place)
        self.gangs.insert(at, gang)
        self._rows.insert(at, row)

    def drop(self, gang: PendingGang) -> int:
        """Take a gang out; return its row."""
        at = self.position(gang)
        self._as_array = None
        del self.places[at], self.gangs[at]
        return self._rows.pop(at)

    def sort_again(self, namespace: str) -> None:
        """Take in that the place of gangs of a namespace may be another; here none ever is."""

    def reorder(self, order: Sequence[int]) -> None:
        """Put the gangs into another order, as their places are already."""
        self.gangs = [self.gangs[at] for at in order]
        self._rows = [self._rows[at] for at in order]
        self._as_array = None

    def position(self, gang: PendingGang) -> int:
        """Return how many gangs of the queue are before this one."""
        return bisect_left(self.places, self.place(gang))

    def minimums_ahead(self) -> Iterable[tuple[GangKey, int]]:
        """Yield each gang with how many before it wait for their minimum.

        One that has its minimum waits for surplus alone and is before no other gang.
        """
        ahead = accumulate((bool(gang.minimum) for gang in self.gangs), initial=0)
        return zip((gang.key for gang in self.gangs), ahead, strict=False)
