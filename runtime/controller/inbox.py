"""Holds the events that are not handled yet, and since when."""

from collections import deque
from collections.abc import Iterable
from typing import Generic, TypeVar

E = TypeVar("E")


class Inbox(Generic[E]):
    """A queue of events, which remembers when each batch came."""

    def __init__(self) -> None:
        self._events: deque[E] = deque()
        self._batches: deque[tuple[float, int]] = deque()
        """When a batch came, and how many of it are left; of the first of them some are gone."""

    def __len__(self) -> int:
        return len(self._events)

    def put(self, events: Iterable[E], now: float) -> None:
        """Add events at the end."""
        before = len(self._events)
        self._events.extend(events)
        if len(self._events) > before:
            self._batches.append((now, len(self._events) - before))

    def take(self, most: int) -> list[E]:
        """Return the oldest events and forget them."""
        taken = [self._events.popleft() for _ in range(min(most, len(self._events)))]
        left = len(taken)
        while left:
            came, count = self._batches.popleft()
            if count > left:
                self._batches.appendleft((came, count - left))
            left -= min(count, left)
        return taken

    @property
    def oldest(self) -> float | None:
        """When the oldest event came; None where there is none."""
        return self._batches[0][0] if self._batches else None
