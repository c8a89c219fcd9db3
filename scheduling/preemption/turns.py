"""Rotates which gangs may search for victims when a cycle has too few steps for all.

A gang that had its turn waits until all others had theirs. So gangs for which the search finds
nothing, cycle after cycle, cannot keep the others from their turn.
"""

from collections.abc import Collection

from scheduling.model.gang import GangKey


class Turns:
    """The turns of one cycle; `before` are the gangs that had theirs in the cycles before."""

    def __init__(self, before: Collection[GangKey]) -> None:
        self._before, self._had = frozenset(before), set[GangKey]()
        self._is_any_left = False

    def is_due(self, gang: GangKey) -> bool:
        """Say whether a gang may ask in this cycle."""
        return gang not in self._before

    def had(self, gang: GangKey) -> None:
        """Note that a gang asked."""
        self._had.add(gang)

    def cut_short(self, gang: GangKey) -> None:
        """Note that the steps were used up; the first of a cycle had all that there are."""
        if self._had:
            self._is_any_left = True
        else:
            self._had.add(gang)

    def done(self) -> frozenset[GangKey]:
        """Return which gangs had theirs; none once all had."""
        return self._before | self._had if self._is_any_left else frozenset()
