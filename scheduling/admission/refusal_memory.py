"""Refusals kept from one cycle to the next, and whether they still hold.

A verdict follows from the gang, from what the pods around mean to it (`Around`), and from the room
at its turn. So a gang stays refused while the first two are equal and no node has got room that one
of its pods could use.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from scheduling.diagnosis.never_fits import never
from scheduling.filters.feasibility import is_feasible_somewhere
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.inter_pod_affinity import Neighbours
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.pod import PodShape
from scheduling.model.verdict import Reason, Refusal
from scheduling.placement.exact_search import Demand

CERTAIN = (Reason.INSUFFICIENT_RESOURCES, Reason.NEVER_FITS, Reason.NO_FEASIBLE_NODE)
"""Why a gang does not fit; every other reason says that this was not found out."""

Around = Neighbours | str | None
"""What the pods around mean to a gang, all of it, or why that cannot be said; None if nothing.

Whatever a verdict takes from outside belongs in here or, as volumes do, into the shapes of the
gang that is compared, or a refusal would outlive it.
"""


@dataclass(frozen=True, eq=False, slots=True)
class Kept:
    """A refusal with all that it follows from but the room, and the steps it might take.

    `reachable` says per group whether any node is feasible for it: why a gang does not fit follows
    from that, and from whether the nodes could hold it if they were empty.
    """

    gang: PendingGang
    demand: Demand
    around: Around
    reachable: tuple[bool, ...]
    refusal: Refusal
    steps: int

    @property
    def is_certain(self) -> bool:
        """Say whether the gang did not fit, and no search was given up."""
        return self.refusal.reason in CERTAIN


@dataclass(frozen=True, eq=False, slots=True)
class Memory:
    """What a cycle leaves to the next: the refusals, and the room after all gangs.

    `left_out` are the gangs of whose surplus something waits, with the reason. `kept` says how many
    of the refusals and reasons were taken over from the cycle before, and `old` which of them may
    have other numbers by now. `took` says that a gang was given room: if that is free again in the
    next cycle, more is left than the refusals say.
    """

    room: FreeCapacity
    refused: Mapping[GangKey, Kept]
    left_out: Mapping[GangKey, tuple[PendingGang, Refusal]]
    kept: int
    old: frozenset[GangKey] = frozenset()
    took: bool = False

    def waiting(self) -> Iterator[GangKey]:
        """Yield the gangs that something is known of, in the order they were decided in."""
        yield from self.refused
        yield from self.left_out

    def without(self, gangs: Collection[GangKey]) -> "Memory":
        """Return it without what is known of some gangs, so that they are decided anew."""
        if not gangs:
            return self
        refused = {key: kept for key, kept in self.refused.items() if key not in gangs}
        left_out = {key: kept for key, kept in self.left_out.items() if key not in gangs}
        return replace(self, refused=refused, left_out=left_out)


def is_for_the_same(same: Kept, gang: PendingGang, room: FreeCapacity) -> bool:
    """Say whether other nodes leave the reason what it is, if the gang still does not fit."""
    if same.reachable != reachable_groups(gang, room):
        return False
    was_never = same.refusal.reason is Reason.NEVER_FITS
    return was_never == bool(never(same.demand, room.columns))


def reachable_groups(gang: PendingGang, room: FreeCapacity) -> tuple[bool, ...]:
    """Return per group of the minimum whether any node is feasible for it."""
    return tuple(is_feasible_somewhere(group.shape, room.columns) for group in gang.minimum)


def has_grown_for(gang: PendingGang, room: FreeCapacity) -> bool:
    """Say whether a pod of the gang could go where there is more room than a cycle ago."""
    return any(_has_grown(group.shape, room) for group in gang.minimum)


def _has_grown(shape: PodShape, room: FreeCapacity) -> bool:
    return room.remembered(
        ("has grown", shape.fitting), lambda: bool(room.counts(shape)[room.grown].any())
    )
