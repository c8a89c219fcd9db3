"""Lets one member at a time stop gangs or ask for nodes, where none has room as it is. Pure.

Each member that may take the gang has its time, in order of preference; after the last it begins
anew. Whichever offers meanwhile is taken, with leave or without.

Who has leave until when is written on the manager's Gang before that member is told, and no other
has it before that time is over: no leader, and no member that is cut off, has to be asked. The
member has an end of its own, by its own clock, which a late write cannot put off.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

LEAVE_SECONDS = 300.0
"""For which a member may stop gangs."""
CLOCK_SECONDS = 60.0
"""From its end to the next member: clocks of one cluster may differ by half of that."""


@dataclass(frozen=True, slots=True)
class Given:
    """Which member has leave, and from when another may have it (the manager's time of day)."""

    cluster: str
    until: float

    def is_over(self, wall: float) -> bool:
        """Say whether another member may have it."""
        return wall >= self.until

    def seconds_left(self, wall: float) -> float:
        """Return for how long its member may stop gangs, 0 or less where it may no longer."""
        return self.until - CLOCK_SECONDS - wall


@dataclass(slots=True)
class Leave:
    """What one leader remembers of the leave for one gang; another one does without."""

    had: set[str] = field(default_factory=set)
    """Members that had it since all had it last."""
    told: set[tuple[str, float]] = field(default_factory=set)
    """By uid of the offer and end: a member of an older release drops what it is told."""

    def note(self, given: Given | None) -> None:
        """Take in what is on record."""
        if given is not None:
            self.had.add(given.cluster)

    def next_one(
        self, members: Sequence[str], refused: Collection[str], wall: float
    ) -> Given | None:
        """Return who has it next, None where it is of use to no member.

        `members` are those that may take the gang, the best first; `refused` those of them that
        leave would not help.
        """
        useful = [each for each in members if each not in refused]
        left = [each for each in useful if each not in self.had]
        if not left:
            self.had, left = set(), useful
        return Given(left[0], wall + LEAVE_SECONDS + CLOCK_SECONDS) if left else None
