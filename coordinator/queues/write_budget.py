"""Limits the writes to GangQueues: each queue seldom, and a few per second over all queues."""

from collections import deque

EACH = 5.0
"""Seconds between two writes of the status of one queue."""

MOST = 5
"""Writes to all queues together within `WINDOW` seconds."""

WINDOW = 1.0
NEVER = float("-inf")


class WriteBudget:
    """When the next write may be made. Time is an argument."""

    def __init__(self) -> None:
        self._recent: deque[float] = deque(maxlen=MOST)
        self._written: dict[str, float] = {}

    @property
    def free_at(self) -> float:
        """Return from when on any queue may be written."""
        return self._recent[0] + WINDOW if len(self._recent) == MOST else NEVER

    def again_at(self, name: str) -> float:
        """Return from when on the status of this queue may be written."""
        return self._written.get(name, NEVER) + EACH

    def spend(self, now: float, name: str = "") -> None:
        """Note a write; without a name it is not one of a status."""
        self._recent.append(now)
        if name:
            self._written[name] = now

    def forget(self, name: str) -> None:
        """Drop what is known of a queue that is gone."""
        self._written.pop(name, None)
