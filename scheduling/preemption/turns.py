"""Lets each gang ask in its turn what could be taken for it, where a cycle has no steps for all.

Those that were asked wait until all others were: no gang, and no number of them that find nothing
cycle after cycle, keeps the others from ever being asked.
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
