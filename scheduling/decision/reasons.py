"""Builds the reasons of refusals, with the holders of the missing room where they are known."""

from collections.abc import Iterable

from scheduling.admission.gang import why_left_out
from scheduling.admission.question import Untried
from scheduling.admission.refusal_memory import CERTAIN
from scheduling.admission.shared_disks import is_short_of_shared
from scheduling.diagnosis.causes import (
    Cause,
    SharedDisksCounted,
    VolumesUnforeseen,
    groups_of,
)
from scheduling.diagnosis.explain import explain
from scheduling.diagnosis.holders import with_holders
from scheduling.diagnosis.preemption_refusals import held_for, with_note
from scheduling.filters.feasibility import feasible
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.volumes.node_volume_limits import SharedDisks
from scheduling.filters.volumes.volume_binding import Volumes
from scheduling.model.gang import Group, PendingGang
from scheduling.model.placement import Placement
from scheduling.model.verdict import Reason, Refusal
from scheduling.preemption.holds import Holds
from scheduling.state.holder_index import Holders


class RefusalReasons:
    """Why gangs are refused in one cycle; `holders` is None where none is to be named."""

    def __init__(self, volumes: Volumes, holds: Holds, holders: Holders | None) -> None:
        self._volumes, self._holds, self._holders = volumes, holds, holders

    def assume(self, gang: PendingGang, placement: Placement) -> None:
        """Count a gang among the holders of room."""
        if self._holders is not None:
            self._holders.assume(gang.key, placement)

    def refusal(
        self, gang: PendingGang, room: FreeCapacity, cause: Cause, shared: SharedDisks
    ) -> Refusal:
        """Refuse a gang, for good only if no way to count its volumes would let it fit."""
        refusal = explain(cause)
        if shared and refusal.reason in CERTAIN:
            return explain(SharedDisksCounted(tuple(shared)))
        left_open = self._volumes.left_open(gang)
        if left_open and refusal.reason in CERTAIN:
            return explain(VolumesUnforeseen(left_open))
        refusal = self._with_holders(refusal, groups_of(cause) or gang.minimum, room)
        if refusal.reason is not Reason.INSUFFICIENT_RESOURCES:
            return refusal
        masks = (feasible(each.shape, room.columns) for each in gang.minimum)
        return with_note(refusal, held_for(self._holds.on(masks)))

    def surplus(self, gang: PendingGang, left_out: Cause | Untried, room: FreeCapacity) -> Refusal:
        """Say why some of a surplus waits."""
        groups = [group for unit in gang.surplus for group in unit]
        return self._with_holders(explain(why_left_out(left_out)), groups, room)

    def short_of_shared(
        self, asked: PendingGang, gang: PendingGang, room: FreeCapacity
    ) -> SharedDisks:
        """Return the disks that may keep a gang out only because each pod is counted for them."""
        if gang is asked:  # it mounts nothing
            return {}
        shared = self._volumes.shared_disks(asked)
        return shared if shared and is_short_of_shared(gang.minimum, shared, room) else {}

    def _with_holders(
        self, refusal: Refusal, groups: Iterable[Group], room: FreeCapacity
    ) -> Refusal:
        if self._holders is None:
            return refusal
        return with_holders(refusal, groups, room, self._holders)
