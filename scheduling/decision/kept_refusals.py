"""Reuses refusals of the previous cycle that still hold, and remembers this cycle's refusals."""

from collections.abc import Hashable, Mapping

from scheduling.admission.refusal_memory import (
    CERTAIN,
    Kept,
    Memory,
    has_grown_for,
    is_for_the_same,
    reachable_groups,
)
from scheduling.decision.search import GangSearch
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.verdict import Refusal
from scheduling.placement.independent import cannot_fit, demand_of
from scheduling.placement.offered_by_class import as_offered
from scheduling.state.node_snapshot import NodeSnapshot


class KeptRefusals:
    """The refusals of one cycle: `refused` of whole gangs, `left_out` of surplus.

    `taken_over` are the gangs whose refusal is that of the cycle before.
    """

    def __init__(self, memory: Memory | None, nodes: NodeSnapshot, search: GangSearch) -> None:
        self._search = search
        self.has_same_nodes = memory is not None and memory.room.columns.traits is nodes.traits
        self._refused_before = memory.refused if memory else {}
        self._left_out_before: Mapping[GangKey, tuple[PendingGang, Refusal]] = (
            memory.left_out if memory and self.has_same_nodes else {}
        )
        self.refused: dict[GangKey, Kept] = {}
        self.left_out: dict[GangKey, tuple[PendingGang, Refusal]] = {}
        self.taken_over: set[GangKey] = set()

    def standing(
        self, gang: PendingGang, room: FreeCapacity, *, is_certain: bool
    ) -> Refusal | None:
        """Take over the refusal of a gang; None where it may differ by now.

        `is_certain` says that a refusal for want of room would be certain.
        """
        kept = self._refused_before.get(gang.key)
        if kept is None or (kept.is_certain and not is_certain):
            return None
        if not self._still_holds(kept, gang, room):
            return None
        self.refused[gang.key] = kept
        self.taken_over.add(gang.key)
        return kept.refusal

    def keep(self, gang: PendingGang, refusal: Refusal, room: FreeCapacity, steps: int) -> None:
        """Keep a refusal with all that it follows from."""
        demand, around = demand_of(gang.minimum), self._search.around(gang, room)
        reachable = reachable_groups(gang, room)
        devices = _stamp(gang, room, is_certain=refusal.reason in CERTAIN)
        self.refused[gang.key] = Kept(gang, demand, around, reachable, refusal, steps, devices)

    def gets_further(self, room: FreeCapacity) -> bool:
        """Say whether a gang was given up that the next cycle may get further with."""
        return bool(room.devices and room.devices.gets_further) and any(
            kept.gang.claims_devices and not kept.is_certain for kept in self.refused.values()
        )

    def standing_surplus(self, gang: PendingGang) -> Refusal | None:
        """Take over why surplus waits, where gang and nodes are the same.

        So a thousand gangs that could grow are not explained a thousand times in each cycle.
        """
        asked, refusal = self._left_out_before.get(gang.key, (None, None))
        if refusal is None or asked != gang or gang.claims_devices:
            return None
        self.taken_over.add(gang.key)
        return refusal

    def _still_holds(self, kept: Kept, gang: PendingGang, room: FreeCapacity) -> bool:
        """Say whether the refusal is what deciding anew would say, in other numbers at most.

        What inter-pod constraints and domains mean also follows from nodes that have no room.
        """
        if kept.gang is not gang and kept.gang != gang:
            return False
        if not self.has_same_nodes and not is_for_the_same(kept, gang, room):
            return False
        offered = as_offered(gang, room)
        if kept.is_certain and not gang.is_separable and cannot_fit(kept.demand, offered):
            return True
        is_constrained = self._search.constraints is not None
        return (
            (self.has_same_nodes or not (is_constrained or gang.topology or gang.sharing))
            and not has_grown_for(gang, offered)
            and kept.devices == _stamp(gang, room, is_certain=kept.is_certain)
            and (kept.is_certain or self._search.steps <= kept.steps)
            and kept.around == self._search.around(gang, room)
        )


def _stamp(gang: PendingGang, room: FreeCapacity, *, is_certain: bool) -> Hashable:
    """Return what is equal while devices that the gang claims are what they were.

    A search that was given up is tried again as long as each cycle knows more nodes.
    """
    devices = room.devices
    if devices is None or not gang.claims_devices:
        return None
    return devices.stamp if is_certain else (devices.stamp, devices.looks)
