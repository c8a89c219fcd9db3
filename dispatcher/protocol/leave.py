"""Permits one member at a time to stop gangs or ask for nodes, when no member has room. Pure.

Each member that may take the gang has its turn, in order of preference; after the last one the
turns begin anew. A member that offers room meanwhile is taken, with permission or without.

The manager's Gang records the permitted member and the end of its time before that member is told,
and no other member is permitted before that end. So neither an earlier leader nor a member that is
cut off has to be asked. The member has an end of its own, by its own clock, which a late write
cannot put off.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

LEAVE_SECONDS = 300.0
"""For which a member may stop gangs."""
CLOCK_SECONDS = 60.0
"""From its end to the next member: clocks of one cluster may differ by half of that."""
SILENT_SECONDS = 30.0
"""After which a member that was asked, and says nothing, counts as one that has no room."""


@dataclass(frozen=True, slots=True)
class Given:
    """The member with permission, and from when another may get it (the manager's time of day)."""

    cluster: str
    until: float

    def is_over(self, wall: float) -> bool:
        """Say whether another member may get the permission."""
        return wall >= self.until

    def seconds_left(self, wall: float) -> float:
        """Return for how long its member may stop gangs, 0 or less where it may no longer."""
        return self.until - CLOCK_SECONDS - wall


NOTHING = "", "", 0.0


@dataclass(slots=True)
class Leave:
    """What one leader remembers of the permissions for one gang; the next leader does without."""

    had: set[str] = field(default_factory=set)
    """Members that had it since all had it last."""
    told: tuple[str, str, float] = NOTHING
    """What was told last: the member, the uid of its offer, and the end. It is not asked of the
    offer: a member of an older release drops it."""
    reasons: dict[str, str] = field(default_factory=dict)
    """By member what it said when it was asked last; empty where it was silent."""
    silent: dict[str, float] = field(default_factory=dict)
    """By member that is asked since when it says nothing (monotonic seconds)."""

    def hear(self, said: Mapping[str, str], now: float) -> None:
        """Take in the reasons of members that are asked, empty for a silent member."""
        self.reasons |= said
        self.silent = {name: self.silent.get(name, now) for name in said if not said[name]}

    def forget_reasons(self) -> None:
        """Forget the members' reasons: the gang has a place elsewhere, or is asked for no more."""
        self.reasons, self.silent = {}, {}

    def waits_until(self) -> float:
        """Return when each asked member has given its reason, or counts as without room."""
        return max(self.silent.values(), default=-math.inf) + SILENT_SECONDS

    def note(self, given: Given | None) -> None:
        """Take in what is on record."""
        if given is not None:
            self.had.add(given.cluster)

    def may_be_lost(self, member: str) -> None:
        """Take in that what a member was told last may not have arrived."""
        self.told = NOTHING if self.told[0] == member else self.told

    def next_one(self, helped: Sequence[str], wall: float) -> Given | None:
        """Return the permission of the next of the `helped` members, the best first, or None."""
        left = [each for each in helped if each not in self.had]
        if helped and not left:
            self.had, left = set(), list(helped)
        return Given(left[0], wall + LEAVE_SECONDS + CLOCK_SECONDS) if left else None
