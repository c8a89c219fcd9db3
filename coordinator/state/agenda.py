"""Lists the gangs to look at, now or later, and whether a cycle is needed."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice

from coordinator.record.urgency import QUIET_DELAY
from coordinator.record.write_lines import WriteLines
from scheduling.model.gang import GangKey

LATER = 0.5  # seconds; what only goes on as decided has its gang looked at so often

AT_ONCE = 200
"""So many gangs are looked at in one step where all have to be: some 50 ms. Others are decided, and
what else happened is taken in, between two steps."""


@dataclass
class Agenda:
    """What is to be done next."""

    dirty: set[GangKey] = field(default_factory=set)
    """The gangs to look at now."""
    late: set[GangKey] = field(default_factory=set)
    """Those that are looked at in a moment, or before the next cycle."""
    wake_at: dict[GangKey, float] = field(default_factory=dict)
    """When time alone asks for a look."""
    in_turn: dict[GangKey, None] = field(default_factory=dict)
    """Those looked at a few at a time."""
    turn_at: float | None = None
    """When the next few of them are."""
    cycle_wanted: bool = False
    refresh_at: float | None = None
    """When numbers are to be worked out anew."""
    cycled_at: float = 0.0
    """When the last cycle was."""
    lines: WriteLines = field(default_factory=WriteLines)
    """The gangs whose status waits for its turn to be written."""

    def put_off(self, key: GangKey, now: float) -> None:
        """Look at a gang in a moment, unless something has it looked at before."""
        self.wake_by(key, now + LATER)
        self.late.add(key)

    def wake(self, key: GangKey, at: float | None) -> None:
        """Set when a gang is to be looked at again; None: not for time alone."""
        if at is None:
            self.wake_at.pop(key, None)
        else:
            self.wake_at[key] = at

    def wake_by(self, key: GangKey, at: float) -> None:
        """Look at a gang at a moment, unless it is to be looked at before."""
        self.wake_at[key] = min(self.wake_at.get(key, at), at)

    def look_in_turn(self, keys: Iterable[GangKey], now: float) -> None:
        """Look at gangs, at the first of them in this step."""
        self.in_turn.update(dict.fromkeys(keys))
        self._take_turn(now)

    def _take_turn(self, now: float) -> None:
        for key in list(islice(self.in_turn, AT_ONCE)):
            del self.in_turn[key]
            self.dirty.add(key)
        self.turn_at = now if self.in_turn else None

    def renew_soon(self) -> None:
        """Schedule fresh numbers for waiting gangs once the numbers are `QUIET_DELAY` old."""
        self.refresh_by(self.cycled_at + QUIET_DELAY)

    def refresh_by(self, at: float) -> None:
        """Schedule a cycle at a moment, unless one is due before."""
        self.refresh_at = at if self.refresh_at is None else min(self.refresh_at, at)

    def pass_time(self, now: float) -> None:
        """Mark all that is due by now."""
        due = {key for key, at in self.wake_at.items() if at <= now}
        for key in due:
            del self.wake_at[key]
        self.dirty |= due
        if self.turn_at is not None:
            self._take_turn(now)
        if self.refresh_at is not None and self.refresh_at <= now:
            self.refresh_at, self.cycle_wanted = None, True

    def forget_term(self) -> None:
        """Drop what was planned by a leader."""
        self.late.clear()
        self.wake_at.clear()
        self.in_turn.clear()
        self.turn_at = None
        self.refresh_at, self.cycle_wanted = None, False
        self.lines.forget()
