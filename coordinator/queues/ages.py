"""Tracks which waiting gangs have aged: they waited too long, or were passed too often.

The list is updated per gang, so that a cycle pays for the gangs that age and not for all that wait.
"""

from collections import Counter
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from math import inf

from scheduling.model.gang import GangKey


class Ages:
    """The ages of the gangs that wait for their minimum.

    `overdue` are those that waited too long, which a tenant cannot bring about by gangs of its own;
    `aged` are these and those that were passed too often. Times are seconds since 1970.
    """

    def __init__(self) -> None:
        self.overdue: set[GangKey] = set()
        self.aged: set[GangKey] = set()
        self._due: dict[GangKey, float] = {}
        self._most_passes: dict[GangKey, float] = {}
        self._passes: Counter[GangKey] = Counter()
        self._coming: list[tuple[float, str, GangKey]] = []

    def note(self, key: GangKey, due: float, most_passes: float) -> None:
        """Let a gang age at a time, infinite where that is not known, or after so many passes."""
        if self._due.get(key) != due:
            self._due[key] = due
            self.overdue.discard(key)
            self._plan(key, due)
        self._most_passes[key] = most_passes
        self._settle(key)

    def drop(self, key: GangKey) -> None:
        """Forget a gang that does not wait for its minimum any more."""
        if self._due.pop(key, None) is not None:
            del self._most_passes[key]
            self._passes.pop(key, None)
            self.overdue.discard(key)
            self.aged.discard(key)

    def pass_time(self, now: float) -> None:
        """Count those as overdue whose time has come."""
        while self._coming and self._coming[0][0] <= now:
            due, _, key = heappop(self._coming)
            if self._due.get(key) == due:
                self.overdue.add(key)
                self.aged.add(key)

    @property
    def next_due(self) -> float:
        """When the next gang is overdue, by time alone; infinite where none will be."""
        while self._coming and self._due.get(self._coming[0][2]) != self._coming[0][0]:
            heappop(self._coming)  # of what does not wait any more
        return self._coming[0][0] if self._coming else inf

    def passed(self, gangs: Iterable[GangKey]) -> None:
        """Count each of the gangs as passed once."""
        for key in gangs:
            if key in self._due:
                self._passes[key] += 1
                self._settle(key)

    def _settle(self, key: GangKey) -> None:
        if key in self.overdue or self._passes[key] >= self._most_passes[key]:
            self.aged.add(key)
        else:
            self.aged.discard(key)

    def _plan(self, key: GangKey, due: float) -> None:
        """Remember when a gang is overdue; what was planned before is left out now and then."""
        if due < inf:
            heappush(self._coming, (due, str(key), key))
        if len(self._coming) > 2 * len(self._due) + 100:
            self._coming = [each for each in self._coming if self._due.get(each[2]) == each[0]]
            heapify(self._coming)
