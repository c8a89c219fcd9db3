"""Admits a gang whose pods claim devices, on nodes with room where each pod gets its devices."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import assert_never

from scheduling.admission.independent import IndependentPods
from scheduling.admission.surplus import Stopped, Unit
from scheduling.devices.gang import NoPlacement
from scheduling.devices.outcome import Doubt, Undecided, Unsupported
from scheduling.diagnosis.causes import (
    Cause,
    DevicesUndecided,
    DevicesUnforeseen,
    NoDevices,
    SearchEnded,
)
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.gang import Group, PendingGang
from scheduling.model.placement import Placement
from scheduling.model.pod import PodShape
from scheduling.placement.claimed_devices import PlacedWithDevices, place_with_devices
from scheduling.placement.exact_search import Demand
from scheduling.placement.independent import Placed, is_short_alone


class ClaimingPods(IndependentPods):
    """The pods of a gang that claim devices, as far as they are placed."""

    def __init__(self, gang: PendingGang, room: FreeCapacity, steps: int) -> None:
        super().__init__(gang, room, steps)
        self._waves: dict[PodShape, int] = {}
        self._shared: set[tuple[str, ...]] = set()

    def placement(self) -> Placement:
        """Return where all that was placed goes, and in which wave it is released."""
        return self._assignments.placement(lambda _, shape, __: self._waves[shape])

    def _place(self, groups: tuple[Group, ...], demand: Demand) -> Cause | None:
        if not demand:
            return None
        unread = [each.unsupported for shape, _ in demand for each in shape.restrictions.claims]
        if any(unread):
            return DevicesUnforeseen(", ".join(dict.fromkeys(chain.from_iterable(unread))))
        shared = {shape.restrictions.shared_claims for shape, _ in demand} - {()}
        if shared & self._shared:
            return DevicesUndecided(groups, self.room, Doubt.SHARED)
        devices = self.room.devices
        if devices is None or is_short_alone(demand, self.room):
            return self._lacks_room(groups, demand) or SearchEnded(groups, self.room)
        steps = self._steps - self.spent
        found, spent = place_with_devices(demand, self.room, devices, steps)
        self.spent += spent
        if not isinstance(found, PlacedWithDevices):
            return self._lacks_room(groups, demand) or _cause(groups, demand, self.room, found)
        self._assignments.hand_out(groups, demand, found.distributions)
        for (shape, _), wave in zip(demand, found.waves, strict=True):
            self._waves[shape] = max(wave, self._waves.get(shape, 0))
        self.room = found.room
        self._shared |= shared
        return None

    def _lacks_room(self, groups: tuple[Group, ...], demand: Demand) -> Cause | None:
        """Return what keeps the demand waiting whatever devices there are; None where nothing."""
        outcome = self._searched(groups, demand)
        return None if isinstance(outcome, Placed) else outcome

    def at_once(self, _: Unit, most: int, /) -> int:
        """Return all of them: if they do not fit, half as many are tried."""
        return most

    def left_out(self, placed: Sequence[int], stopped: Stopped) -> Cause:
        """Return why the last unit that failed is not placed, beside all that are."""
        match stopped.cause:
            case NoDevices() | DevicesUndecided():
                return replace(stopped.cause, groups=stopped.unit, room=self.room)
            case DevicesUnforeseen():
                return stopped.cause
        return super().left_out(placed, stopped)


def _cause(
    groups: tuple[Group, ...],
    demand: Demand,
    room: FreeCapacity,
    found: NoPlacement | Unsupported | Undecided,
) -> Cause:
    match found:
        case NoPlacement():
            shapes = tuple(shape for shape, _ in demand)
            return NoDevices(groups, room, shapes, found.most, found.refusals)
        case Unsupported(feature):
            return DevicesUnforeseen(feature)
        case Undecided(doubt):
            return DevicesUndecided(groups, room, doubt)
    assert_never(found)
