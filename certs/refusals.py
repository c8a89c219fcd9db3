"""Remembers which objects could not be written, and when each is tried again. Pure.

Each object has its own pause, so that a refused object delays no other. The pause doubles with each
try, and ends once the object is as it should be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

FIRST = timedelta(seconds=5)
LONGEST = timedelta(seconds=60)
"""A right that an operator has given back is noticed within it."""

TRIES = 10
"""In a row, where another was quicker or writes over what was written: then it is no race."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    why: str
    pause: timedelta
    until: datetime


class Refusals:
    """What is known of the objects of one server's certificates, each by its path."""

    def __init__(self) -> None:
        self._known: dict[str, _Refusal] = {}
        self._tries: Counter[str] = Counter()

    def resting(self, now: datetime) -> Mapping[str, str]:
        """Return what is not to be tried now, and why each was refused."""
        # A clock that was put back makes no pause longer.
        return {
            path: each.why
            for path, each in self._known.items()
            if each.until - each.pause <= now < each.until
        }

    @property
    def standing(self) -> Mapping[str, str]:
        """What was refused and has not been well since: why, by path."""
        return {path: each.why for path, each in self._known.items()}

    def refused(self, path: str, why: str, now: datetime) -> None:
        """Note that a write failed; each time in a row the pause is twice as long."""
        before = self._known.get(path)
        pause = FIRST if before is None else min(LONGEST, before.pause * 2)
        self._known[path] = _Refusal(why, pause, now + pause)

    def raced(self, path: str, why: str, now: datetime) -> None:
        """Note a write that another may have been quicker than: many in a row are a refusal."""
        self._tries[path] += 1
        if self._tries[path] >= TRIES:
            self._tries[path] = 0
            self.refused(path, why, now)

    def well(self, path: str) -> None:
        """Note that an object is as it should be."""
        self._known.pop(path, None)
        self._tries.pop(path, None)
