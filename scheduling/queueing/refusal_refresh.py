"""Selects, per cycle, which undecided gangs get a refreshed refusal.

Thousands may wait for quota or behind a blocked gang, and every admission moves the numbers of all.
A gang gets its refusal at once when it begins to wait, or when the reason changes. Where only
numbers and positions moved, a bounded number of gangs per cycle get a new one.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from scheduling.model.amounts import Amounts, Positions
from scheduling.queueing.waiting import WaitingGangs

Kinds = NDArray[np.int8]

DECIDED, QUOTA, BEHIND, NEVER = range(4)
"""Why a cycle did not decide a gang: it did, its queue may not take it, another one is blocked, or
no nodes could hold it even if they were empty."""

REFRESHED_PER_CYCLE = 2000
"""Gangs that a cycle tells of moved numbers; some 5 us each."""


@dataclass(frozen=True, eq=False, slots=True)
class UndecidedGangs:
    """How a cycle ended for the gangs that it did not decide.

    `why` by gang, in the order of `WaitingGangs.columns`; by queue `ends`, the position of the
    blocked gang, and what it uses and may take.
    """

    why: Kinds
    ends: Positions
    used: Amounts
    available: Amounts


@dataclass(frozen=True, eq=False, slots=True)
class RefusalRefresh:
    """What the gangs that wait were told last.

    By row of a gang its serial, `why`, and the `version` of what its queue was like; by queue that
    version now, and what it counts the changes of. `at` is where the renewal goes on. `is_behind`
    says that some gangs have older numbers.
    """

    waiting: WaitingGangs
    serials: Positions
    why: Positions
    versions: Positions
    of_queue: Positions
    changes: Positions
    last: UndecidedGangs | None = None
    at: int = 0
    is_behind: bool = False

    @classmethod
    def nothing(cls, waiting: WaitingGangs) -> "RefusalRefresh":
        """Return that no gang was told anything."""
        by_row, by_queue = np.zeros(0, np.intp), np.zeros(len(waiting.tree.names), np.intp)
        return cls(waiting, by_row, by_row, by_row, by_queue, by_queue)

    def due(self, now: UndecidedGangs) -> tuple[Positions, "RefusalRefresh"]:
        """Return the gangs to be told, by their place in the columns, and what is told then."""
        columns = self.waiting.columns
        serials, why, versions = (lengthened(each, columns.rows) for each in self._by_row())
        of_queue = self._versions(now)
        rows, current = columns.rows, of_queue[columns.queue]
        waits = now.why != DECIDED
        anew = waits & ((serials[rows] != columns.serials) | (why[rows] != now.why))
        old = np.flatnonzero(waits & ~anew & (versions[rows] != current))
        renewed = np.roll(old, -int(np.searchsorted(old, self.at)))[:REFRESHED_PER_CYCLE]
        told = np.union1d(np.flatnonzero(anew), renewed)
        serials[rows], why[rows] = columns.serials, now.why
        versions[rows[told]] = current[told]
        at = int(renewed[-1]) + 1 if len(renewed) else 0
        after = replace(
            self,
            serials=serials,
            why=why,
            versions=versions,
            of_queue=of_queue,
            changes=self.waiting.changes.copy(),
            last=now,
            at=at,
            is_behind=len(old) > len(renewed),
        )
        return told, after

    def _by_row(self) -> tuple[Positions, Positions, Positions]:
        return self.serials, self.why, self.versions

    def _versions(self, now: UndecidedGangs) -> Positions:
        """Return by queue the version of what its gangs are told: another one where that moved."""
        if self.last is None:
            return self.of_queue + 1
        moved = (now.used != self.last.used).any(axis=1)
        moved |= (now.available != self.last.available).any(axis=1)
        moved |= (self.waiting.changes != self.changes) | (now.ends != self.last.ends)
        found: Positions = self.of_queue + moved
        return found


def lengthened(by_row: Positions, rows: Positions) -> Positions:
    """Return a copy that has a place for every row."""
    lacks = int(rows.max(initial=-1)) + 1 - len(by_row)
    return np.concatenate([by_row, np.zeros(max(0, lacks), np.intp)])
