"""Limits the status writes of waiting gangs to a rate, however many gangs wait.

A change waits in one of two lines until it is due and the rate leaves room for it: one line has new
reasons, the other one numbers that moved. Among numbers a wrong position goes first, then what has
been wrong for longest. Time is an argument.
"""

from bisect import bisect_left
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import pairwise

from coordinator.record.urgency import Status
from scheduling.model.gang import GangKey

NUMBERS_RATE = 15.0
"""Writes a second of positions and other numbers; GangQueues have 5 more."""

REASONS_RATE, REASONS_BURST = 100.0, 500.0
"""Writes a second of new reasons, and how many at once after a quiet time."""

EXACT = 600
"""While no more gangs wait, every position is told exactly."""

ROUND = (1, 2, 3, 4, *(n * 10**e // 10 for e in range(7) for n in (60, 100, 150, 250, 400)))
"""The positions that are told where more wait."""

_BETWEEN = [here * above for here, above in pairwise(ROUND)]


def told_position(position: int, waiting: int) -> int:
    """Return the position that a gang is told: the first four exactly, others within a third.

    So one gang that leaves moves what five in each decade of positions are told, and not what all
    behind it are.
    """
    if waiting <= EXACT:
        return position
    return ROUND[bisect_left(_BETWEEN, position * position)] if position else 0


@dataclass
class WriteLine:
    """Gangs whose status is to be written, and when the rate lets the next of them go.

    `called` may be written now; the rate was charged when they were called.
    """

    rate: float
    burst: float
    called: set[GangKey] = field(default_factory=set)
    _planned: dict[GangKey, tuple[bool, float]] = field(default_factory=dict)
    _due: list[tuple[float, str, GangKey]] = field(default_factory=list)
    _ready: list[tuple[bool, float, str, GangKey]] = field(default_factory=list)
    _full_at: float = float("-inf")

    def __len__(self) -> int:
        """Count the gangs in the line."""
        return len(self._planned)

    def plan(self, key: GangKey, due: float, *, later: bool) -> None:
        """Put a gang in the line, from `due` on; those that may go `later` let others pass."""
        if key in self.called or self._planned.get(key) == (later, due):
            return
        self._planned[key] = later, due
        heappush(self._due, (due, str(key), key))
        if len(self._due) + len(self._ready) > 2 * len(self._planned) + 100:
            self._tidy()

    def drop(self, key: GangKey) -> None:
        """Take a gang out that has nothing to be written; the rate is given back."""
        self._planned.pop(key, None)
        if key in self.called:
            self.called.discard(key)
            self._full_at -= 1 / self.rate

    def admits(self, key: GangKey) -> bool:
        """Say whether a gang was called, which then is being written."""
        if key not in self.called:
            return False
        self.called.discard(key)
        self._planned.pop(key, None)
        return True

    def call(self, now: float) -> list[GangKey]:
        """Return the gangs whose turn it is."""
        self._make_ready(now)
        found = []
        while self._ready and self._free_at <= now:
            later, due, _, key = heappop(self._ready)
            if self._planned.get(key) == (later, due):
                del self._planned[key]
                self._full_at = max(self._full_at, now) + 1 / self.rate
                self.called.add(key)
                found.append(key)
        return found

    @property
    def next_at(self) -> float | None:
        """Return when the next gang may be called."""
        if self._ready:
            return self._free_at
        return max(self._due[0][0], self._free_at) if self._due else None

    def forget(self) -> None:
        """Drop all that is planned; the rate goes on."""
        self.called.clear()
        self._planned.clear()
        self._due.clear()
        self._ready.clear()

    @property
    def _free_at(self) -> float:
        """When one more may be called: a bucket of tokens that is full at `_full_at`."""
        return self._full_at - (self.burst - 1) / self.rate

    def _make_ready(self, now: float) -> None:
        while self._due and self._due[0][0] <= now:
            due, name, key = heappop(self._due)
            found = self._planned.get(key)
            if found is not None and found[1] == due:
                heappush(self._ready, (found[0], due, name, key))

    def _tidy(self) -> None:
        """Leave out what was planned anew since."""
        planned = self._planned
        self._due = [each for each in self._due if planned.get(each[2], (0, None))[1] == each[0]]
        self._ready = [each for each in self._ready if planned.get(each[3]) == each[:2]]
        heapify(self._due)
        heapify(self._ready)


@dataclass
class WriteLines:
    """The two lines."""

    numbers: WriteLine = field(default_factory=lambda: WriteLine(NUMBERS_RATE, NUMBERS_RATE))
    reasons: WriteLine = field(default_factory=lambda: WriteLine(REASONS_RATE, REASONS_BURST))

    @property
    def are_read(self) -> bool:
        """Whether it is read why gangs wait."""
        return True

    def line_of(self, status: Status, written: Status, *, waits: bool) -> WriteLine | None:
        """Return the line for a change of a status; None where that is written when it is due.

        `waits`: the gang waits for its minimum or for surplus. A placement or a plan, and the first
        word that a gang waits, stand in no line.
        """
        urgent = ("placement", "planned", "phase")
        same = all(status.get(field) == written.get(field) for field in urgent)
        if not (waits and same):
            return None
        return self.numbers if status["reason"] == written.get("reason") else self.reasons

    def call(self, now: float) -> list[GangKey]:
        """Return the gangs whose turn it is."""
        return [*self.reasons.call(now), *self.numbers.call(now)]

    @property
    def next_at(self) -> float | None:
        """Return when the next gang may be called."""
        moments = (self.numbers.next_at, self.reasons.next_at)
        return min((at for at in moments if at is not None), default=None)

    def drop(self, key: GangKey, but: WriteLine | None = None) -> None:
        """Take a gang out of the lines, but one."""
        for line in (self.numbers, self.reasons):
            if line is not but:
                line.drop(key)

    def forget(self) -> None:
        """Drop all that is planned."""
        self.numbers.forget()
        self.reasons.forget()
