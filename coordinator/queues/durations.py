"""Keeps a histogram of gang run times on a logarithmic scale, and computes quantiles of it.

A step is a quarter of a doubling, so a stored time is within a tenth of the real one. Beyond 64
gangs all counts are halved, so that old run times are forgotten.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from math import floor, log2

STEPS = 4
"""Of each doubling."""

SHORTEST, LONGEST = 8, 365 * 24 * 3600
"""Seconds; what is shorter or longer counts as these."""

MOST = 64
"""Gangs that are remembered together."""


def step_of(seconds: float) -> int:
    """Return the step that a time is on."""
    return floor(STEPS * log2(min(max(seconds, SHORTEST), LONGEST)))


def seconds_of(step: int) -> int:
    """Return the time in the middle of a step, which is on that step."""
    return round(2 ** ((step + 0.5) / STEPS))


@dataclass(frozen=True, slots=True)
class Durations:
    """How many gangs ran for so long, by step."""

    counts: Mapping[int, int] = field(default_factory=dict)

    @property
    def ended(self) -> int:
        """How many gangs are remembered."""
        return sum(self.counts.values())

    def with_one(self, seconds: float) -> "Durations":
        """Return it with one more that ran for so long."""
        return self.and_of(Durations({step_of(seconds): 1})).bounded()

    def and_of(self, other: "Durations") -> "Durations":
        """Return both as one."""
        found = dict(self.counts)
        for step, count in other.counts.items():
            found[step] = found.get(step, 0) + count
        return Durations(found)

    def bounded(self) -> "Durations":
        """Return it with as many as are remembered together."""
        found = self
        while found.ended > MOST:
            found = found._halved()
        return found

    def quantile(self, share: float, beyond: float = 0.0) -> float | None:
        """Return the time that this share ended by, of those that ran beyond an age."""
        left = sorted((seconds_of(step), count) for step, count in self.counts.items())
        left = [(seconds, count) for seconds, count in left if seconds > beyond]
        if not left:
            return None
        total = sum(count for _, count in left)
        by = zip(left, accumulate(count for _, count in left), strict=True)
        return float(next(seconds for (seconds, _), sofar in by if sofar >= share * total))

    def _halved(self) -> "Durations":
        """Halve all counts; what is left over of one counts for the next, so that none is lost."""
        found, over = {}, 0
        for step, count in sorted(self.counts.items()):
            half, over = divmod(count + over, 2)
            if half:
                found[step] = half
        return Durations(found)
