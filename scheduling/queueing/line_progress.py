"""Walks one line gang by gang, as far as quota and blocked gangs let it."""

import numpy as np

from scheduling.model.amounts import Amounts, Mask
from scheduling.model.gang import PendingGang
from scheduling.model.queue import WhenBlocked
from scheduling.queueing.line import Line

NO_END = 2**31
"""The position up to which a line goes on that nothing stops."""


class LineProgress:
    """How far one line has come: the gangs that its quota let through when the cycle began.

    `covered` says which those are; none behind `end` is decided but repairs. `given` are those that
    were handed out.
    """

    def __init__(self, line: Line, demands: Amounts, covered: Mask, end: int) -> None:
        self.line, self.end = line, end
        self.given = np.zeros(len(line.gangs), dtype=np.bool_)
        self._demands = demands
        self._open = np.flatnonzero(covered)
        self._next = 0
        self._is_short_first = False
        if end < NO_END:
            self._stop_at(end)

    @property
    def _is_strict(self) -> bool:
        return self.line.queue.when_blocked is WhenBlocked.STRICT

    @property
    def at(self) -> int:
        """The position of the next gang."""
        return int(self._open[self._next])

    @property
    def demand(self) -> Amounts:
        """What the next gang asks for."""
        row: Amounts = self._demands[self.at]
        return row

    def is_at(self, position: int) -> bool:
        """Say whether the gang at this position is the next, and may be decided."""
        return self._next < len(self._open) and self.at == position

    def find(self, allowance: Amounts) -> bool:
        """Go on to the next gang that the quota covers; say whether there is one."""
        if self._next >= len(self._open):
            return False
        if bool((self.demand <= np.maximum(allowance, 0)).all()):
            return True
        if self._is_strict:
            self._stop_at(self.at)
        self._drop_uncovered(allowance)
        return self._next < len(self._open)

    def _drop_uncovered(self, allowance: Amounts) -> None:
        """Leave out the gangs that the quota no longer covers: within a cycle it only shrinks."""
        rest = self._open[self._next :]
        covered = (self._demands[rest] <= np.maximum(allowance, 0)).all(axis=1)
        self._open = np.concatenate([self._open[: self._next], rest[covered]])

    def step(self) -> PendingGang:
        """Hand out the next gang."""
        at = self.at
        self.given[at] = True
        self._next += 1
        return self.line.gangs[at]

    def put_short_first(self) -> None:
        """Order those that may pass a blocked gang: priority, repairs, then the shorter one, once.

        (Tsafrir et al., "Backfilling Using System-Generated Predictions Rather than User Runtime
        Estimates", 2007: the order in which gangs pass costs the blocked one nothing.)
        """
        if self._is_short_first:
            return
        self._is_short_first = True
        gangs = self.line.gangs
        rest = self._open[self._next :].tolist()
        rest.sort(
            key=lambda at: (-gangs[at].priority, not gangs[at].only_repairs, gangs[at].duration, at)
        )
        self._open = np.concatenate([self._open[: self._next], np.array(rest, dtype=np.intp)])

    def stop_behind(self, gang: PendingGang) -> None:
        """Let all that are behind a gang wait."""
        self._stop_at(self.line.position(gang))

    def _stop_at(self, position: int) -> None:
        """Let nothing behind a position be decided but repairs."""
        self.end = min(self.end, position)
        rest = self._open[self._next :]
        goes_on = [at <= self.end or self.line.gangs[at].is_repair for at in rest.tolist()]
        rest = rest[np.array(goes_on, dtype=np.bool_)]
        self._open = np.concatenate([self._open[: self._next], rest])
