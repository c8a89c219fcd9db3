"""Counts seconds in which the programs could have worked: outages and a busy machine count less."""

from __future__ import annotations

import time
from collections.abc import Callable

_SPIN = 20_000
_WEIGHT = 0.2
"""Of the newest measurement of slowness."""


class FairClock:
    """A clock that stands still in outages and is slow on a slow machine."""

    def __init__(self, is_outage: Callable[[], bool]) -> None:
        self.seconds = 0.0
        """Fair seconds since the beginning."""
        self.slowness = 1.0
        """By what factor a busy machine takes longer than an idle one."""
        self.worst = 1.0
        self._is_outage = is_outage
        self._last = time.monotonic()

    def tick(self) -> None:
        """Go on; to be called about once a second."""
        now = time.monotonic()
        self.slowness += _WEIGHT * (_measured() - self.slowness)
        self.worst = max(self.worst, self.slowness)
        if not self._is_outage():
            self.seconds += (now - self._last) / max(1.0, self.slowness)
        self._last = now


def _measured() -> float:
    """How much longer a little work takes by the clock than by the processor."""
    wall, cpu = time.monotonic(), time.thread_time()
    total = 0
    for number in range(_SPIN):
        total += number
    return max(1.0, (time.monotonic() - wall) / max(1e-6, time.thread_time() - cpu))
