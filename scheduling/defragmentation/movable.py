"""A running gang that may be moved."""

from dataclasses import dataclass

from scheduling.defragmentation.subsets import Cost
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.preemption import GangPart


@dataclass(frozen=True, eq=False, slots=True)
class Movable:
    """A running gang: what it holds, what it would ask for again, and the work that is lost.

    `lost` is in millionths of a GPU-hour.
    """

    parts: tuple[GangPart, ...]
    again: PendingGang
    lost: int

    @property
    def cost(self) -> Cost:
        """Return what sorts first the least that is lost, then the fewest gangs."""
        return self.lost, 1

    @property
    def key(self) -> GangKey:
        """Name the gang."""
        return self.again.key
