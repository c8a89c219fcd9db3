"""Selects, per cycle, the waiting gangs whose refusal gets fresh numbers.

A waiting gang keeps the reason of the cycle that refused it, with the numbers of that time. Once
per quiet time all waiting gangs are decided anew, spread over cycles so that no cycle is long and
no gang waits for long.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from scheduling.model.gang import GangKey

AT_ONCE = 100
"""Gangs that one cycle decides anew; some 0.2 ms each on 5,000 nodes."""

ROUNDS = 30
"""In so many cycles all are decided anew, however many there are."""

PAUSE = 1.0
"""Seconds from one cycle to the next where nothing else asks for one."""


@dataclass
class Renewals:
    """The gangs still to be decided anew since the last quiet time ended."""

    began: float = float("-inf")
    _left: list[GangKey] = field(default_factory=list)
    _share: int = AT_ONCE

    def due(self, waiting: Iterable[GangKey], now: float, quiet: float) -> frozenset[GangKey]:
        """Return those to decide anew now; `waiting` are all, the first in the queue first."""
        if now >= self.began + quiet:
            self.began, self._left = now, list(waiting)
            self._share = max(AT_ONCE, -(-len(self._left) // ROUNDS))
        due, self._left = self._left[: self._share], self._left[self._share :]
        return frozenset(due)

    def next_at(self, now: float, quiet: float) -> float:
        """Return when the next are decided anew, if numbers are old by then."""
        return now + PAUSE if self._left else self.began + quiet
