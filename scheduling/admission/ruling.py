"""What deciding one gang gives: the verdict, the room left, the steps taken."""

from collections.abc import Callable
from dataclasses import dataclass

from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.gang import Group, PendingGang
from scheduling.model.verdict import Refusal, Verdict


@dataclass(frozen=True, eq=False, slots=True)
class Ruling:
    """The verdict for one gang, the room left after it, and the steps it took.

    `about` are the groups that a refusal is about, held to the domain that it speaks of; none where
    it speaks of all nodes. `why_not` explains what of the surplus an admission leaves out, None
    where nothing is: many gangs with surplus wait for long, so it is asked only where that is news.
    """

    verdict: Verdict
    room: FreeCapacity
    steps: int = 0
    about: tuple[Group, ...] = ()
    why_not: Callable[[], Refusal] | None = None


Decide = Callable[[PendingGang, FreeCapacity, int], Ruling]
"""How a gang is decided whose shapes say which domains they are held to; the number is steps."""
