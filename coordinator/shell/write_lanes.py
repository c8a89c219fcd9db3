"""Orders the writes that wait to be sent: gang by gang, each gang's own in the order they came.

A gang whose writes have begun goes before those that begin later, so that its releases do not queue
up behind the placements of hundreds of others: few gangs are partly bound at one time, and the
first runs while the last is still being written down. The place is lost after a while, so that a
gang that never comes to rest cannot hold up the others.
"""

import heapq
from collections import deque

from coordinator.messages.actions import GangAction, gang_of
from scheduling.model.gang import GangKey

KEPT = 30.0
"""Seconds for which a gang keeps its place; a gang of a thousand pods is released in less."""


class Lanes:
    """The waiting writes: one lane for each gang, served in the order in which they began."""

    def __init__(self) -> None:
        self._lanes: dict[GangKey, deque[GangAction]] = {}
        self._places: dict[GangKey, tuple[float, int]] = {}
        self._order: list[tuple[int, GangKey]] = []
        self._begun = 0

    def __bool__(self) -> bool:
        return bool(self._lanes)

    def add(self, action: GangAction, now: float) -> None:
        """Put an action at the end of its gang's lane; `now` in seconds of any steady clock."""
        key = gang_of(action)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = deque()
            heapq.heappush(self._order, (self._place(key, now), key))
        lane.append(action)

    def pop(self, now: float) -> GangAction:
        """Take the next action out; IndexError where none waits."""
        _, key = self._order[0]
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

    def _place(self, key: GangKey, now: float) -> int:
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
