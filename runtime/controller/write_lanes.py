"""Orders waiting writes by key, and the writes of one key as they came.

A key (a gang, an AppWrapper) whose writes have begun goes before keys that begin later, so that a
gang's releases do not queue up behind the placements of hundreds of others: few gangs are partly
bound at one time, and the first runs while the last is still being written down. A key loses its
place after a while, so that a key that never comes to rest cannot hold up the others.
"""

import heapq
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

A = TypeVar("A")
K = TypeVar("K", bound=Hashable)

KEPT = 30.0
"""Seconds for which a key keeps its place; a gang of a thousand pods is released in less."""

COURTESY = 1.0
"""Seconds that a write which only informs lets others pass."""


class Lanes(Generic[K, A]):
    """The waiting writes: one lane for each key, served in the order in which they began."""

    def __init__(self) -> None:
        self._lanes: dict[K, deque[A]] = {}
        self._places: dict[K, tuple[float, int]] = {}
        self._order: list[tuple[int, K]] = []
        self._begun = 0
        self._waiting = 0

    def __len__(self) -> int:
        return self._waiting

    def add(self, key: K, action: A, now: float) -> None:
        """Put an action at the end of its key's lane; `now` in seconds of any steady clock."""
        self._waiting += 1
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = deque()
            heapq.heappush(self._order, (self._place(key, now), key))
        lane.append(action)

    def pop(self, now: float) -> A:
        """Take the next action out; IndexError where none waits."""
        _, key = self._order[0]
        self._waiting -= 1
        lane = self._lanes[key]
        action = lane.popleft()
        if lane:  # a lane that never empties loses its place too
            heapq.heapreplace(self._order, (self._place(key, now), key))
        else:
            del self._lanes[key]
            heapq.heappop(self._order)
        return action

    def clear(self) -> None:
        """Drop all that waits, and all places."""
        self._lanes.clear()
        self._places.clear()
        self._order.clear()
        self._waiting = 0

    def _place(self, key: K, now: float) -> int:
        known = self._places.get(key)
        if known is not None and now < known[0] + KEPT:
            return known[1]
        self._forget(now)
        self._begun += 1
        self._places.pop(key, None)
        self._places[key] = now, self._begun
        return self._begun

    def _forget(self, now: float) -> None:
        """Drop the places that are over; they stand in the order in which they were given."""
        while self._places:
            first = next(iter(self._places))
            if now < self._places[first][0] + KEPT:
                return
            del self._places[first]


class Writes(Generic[K, A]):
    """All waiting writes: what only informs lets the lanes pass, for a second at most.

    What repeats what is said elsewhere comes after everything else, of each only the newest.
    """

    def __init__(self) -> None:
        self._lanes = Lanes[K, A]()
        self._informing: deque[tuple[float, A]] = deque()
        self._repeating: dict[Hashable, A] = {}
        self._informed = False

    def __len__(self) -> int:
        return len(self._lanes) + len(self._informing) + len(self._repeating)

    def add(self, key: K, action: A, now: float) -> None:
        """Add a write that others wait for."""
        self._lanes.add(key, action, now)

    def inform(self, action: A, now: float) -> None:
        """Add a write that only informs."""
        self._informing.append((now + COURTESY, action))

    def repeat(self, what: Hashable, action: A) -> None:
        """Add a write that repeats another, in place of the one before of the same."""
        self._repeating[what] = action

    def pop(self, now: float) -> A:
        """Take the next action out. Of what only informs and is overdue at most every other."""
        overdue = bool(self._informing) and self._informing[0][0] <= now
        self._informed = not self._lanes or (overdue and not self._informed)
        if not self._informed:
            return self._lanes.pop(now)
        if self._informing:
            return self._informing.popleft()[1]
        return self._repeating.pop(next(iter(self._repeating)))

    def clear(self) -> None:
        """Drop all that waits."""
        self._lanes.clear()
        self._informing.clear()
        self._repeating.clear()
