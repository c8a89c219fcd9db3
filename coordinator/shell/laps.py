"""Measures the parts of a cycle: the state machine has no clock and only reports their ends."""

import time
from collections import defaultdict

from coordinator.metrics import CYCLE_PART_SECONDS


class Laps:
    """The parts of the step that is under way; they are told where it was a cycle."""

    def __init__(self) -> None:
        self._since = 0.0
        self._parts: defaultdict[str, float] = defaultdict(float)

    def begin(self) -> None:
        """Begin a step."""
        self._since = time.monotonic()
        self._parts.clear()

    def lap(self, part: str) -> None:
        """Note that a part is done; it may come several times."""
        now = time.monotonic()
        self._parts[part] += now - self._since
        self._since = now

    def tell(self) -> None:
        """Observe how long each part took."""
        for part, seconds in self._parts.items():
            CYCLE_PART_SECONDS.labels(part).observe(seconds)
