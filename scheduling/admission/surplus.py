"""Places as many units of a surplus as fit, one after the other."""

from collections.abc import Hashable, Sequence
from itertools import groupby
from typing import NamedTuple, Protocol

from scheduling.diagnosis.causes import Cause
from scheduling.model.gang import Group

Unit = tuple[Group, ...]


class Placer(Protocol):
    """Places units in the room that those before them leave."""

    def kind(self, unit: Unit) -> Hashable:
        """Return what equal units have in common: if one does not fit, none does."""

    def at_once(self, unit: Unit, most: int, /) -> int:
        """Return how many of so many equal units to place in one attempt."""

    def place(self, units: Sequence[Unit]) -> Cause | None:
        """Place equal units, all or none; return what stops them, None where they are placed."""


class Stopped(NamedTuple):
    """A unit that was not placed, and what stopped it or the attempt that it was part of."""

    unit: Unit
    cause: Cause


class Surplus(NamedTuple):
    """The positions of the units that were placed; None stopped where that is all of them."""

    units: tuple[int, ...]
    stopped: Stopped | None


def place_surplus(units: Sequence[Unit], placer: Placer) -> Surplus:
    """Place units as long as they fit; neighbours of one kind at once, or else half as many.

    A kind of which one unit does not fit is not tried again.
    """
    placed: list[int] = []
    stopped: Stopped | None = None
    hopeless: set[Hashable] = set()
    for kind, run in groupby(range(len(units)), key=lambda at: placer.kind(units[at])):
        waiting = [] if kind in hopeless else list(run)
        several = placer.at_once(units[waiting[0]], len(waiting)) if waiting else 0
        while waiting and several:
            cause = placer.place([units[at] for at in waiting[:several]])
            if cause is None:
                placed, waiting = placed + waiting[:several], waiting[several:]
                several = min(several, len(waiting))
            else:
                several, stopped = several // 2, Stopped(units[waiting[0]], cause)
        if waiting:
            hopeless.add(kind)
    return Surplus(tuple(placed), stopped if len(placed) < len(units) else None)
