"""Keeps refusals from one cycle to the next, and says whether they still hold.

A verdict follows from the gang, from what existing pods mean to it (`Around`), and from the room at
its place in the order. So a refusal stands while the first two are equal and no node has gained
room that one of the gang's pods could use.
"""

from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from scheduling.admission.never_fitting import NeverFitting
from scheduling.admission.pods import Surroundings
from scheduling.diagnosis.never_fits import never
from scheduling.filters.feasibility import is_feasible_somewhere
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.amounts import Amounts
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.pod import PodShape
from scheduling.model.preemption import FailedAttempts, Preemption
from scheduling.model.verdict import Reason, Refusal
from scheduling.placement.exact_search import Demand
from scheduling.queueing.refusal_refresh import RefusalRefresh

CERTAIN = (Reason.INSUFFICIENT_RESOURCES, Reason.NEVER_FITS, Reason.NO_FEASIBLE_NODE)
"""Reasons for which a gang certainly does not fit."""

Around = Surroundings | None
"""What existing pods mean to a gang; None if nothing.

Whatever else a verdict depends on belongs in here or, as volumes do, into the shapes of the gang
that is compared; else a refusal would outlive it.
"""


@dataclass(frozen=True, eq=False, slots=True)
class Kept:
    """A refusal with all that it follows from but the room, and the steps it might take.

    `reachable` says per group whether any node is feasible for it: the reason follows from that,
    and from whether the nodes could hold the gang if they were empty. `devices` is the stamp of the
    devices, for a gang that claims some.
    """

    gang: PendingGang
    demand: Demand
    around: Around
    reachable: tuple[bool, ...]
    refusal: Refusal
    steps: int
    devices: Hashable = None

    @property
    def is_certain(self) -> bool:
        """Say whether the gang did not fit, and no search was given up."""
        return self.refusal.reason in CERTAIN


@dataclass(frozen=True, eq=False, slots=True)
class EmptyAnswers:
    """Whether nodes might hold what gangs ask for if nothing but `daemons` used any of them.

    Those are pods of DaemonSets and static pods; `might_hold` is by what a gang asks for.
    """

    daemons: Amounts
    might_hold: Mapping[Hashable, bool]


@dataclass(frozen=True, eq=False, slots=True)
class Memory:
    """What a cycle leaves to the next: the refusals, and the room after all gangs.

    `left_out` are the gangs with surplus that waits, and why. `kept` is how many of these refusals
    were taken over from the cycle before, `old` which of them may have other numbers by now. `took`
    says that a gang was given room: if that is free again in the next cycle, more is left than the
    refusals say. `passed` names a blocked gang once for each gang behind it that was admitted.
    `refresh` is what undecided gangs were told last. `asks_again_in` is after how many seconds time
    alone may turn a refusal, or more of them are to be told. `preemptions` are the gangs for which
    parts of others end, with the room that is held for them; `failed_attempts` those for which
    nothing can be taken; `had_turn` those that sought it while others had to wait for steps.
    `when_empty` says what these nodes might hold if they were empty; None where no gang was asked.
    `never_fitting` are the gangs that were not decided and that no nodes could hold.
    `promised_starts` are the first starts that aged gangs were told.
    """

    room: FreeCapacity
    refused: Mapping[GangKey, Kept]
    left_out: Mapping[GangKey, tuple[PendingGang, Refusal]]
    kept: int
    old: frozenset[GangKey] = frozenset()
    took: bool = False
    passed: tuple[GangKey, ...] = ()
    refresh: RefusalRefresh | None = None
    asks_again_in: float = inf
    preemptions: tuple[Preemption, ...] = ()
    failed_attempts: FailedAttempts | None = None
    had_turn: frozenset[GangKey] = frozenset()
    when_empty: EmptyAnswers | None = None
    never_fitting: NeverFitting | None = None
    promised_starts: Mapping[GangKey, float] = field(default_factory=dict)

    def waiting(self) -> Iterator[GangKey]:
        """Yield the gangs with a refusal, in the order they were decided in."""
        yield from self.refused
        yield from self.left_out

    def without(self, gangs: Collection[GangKey]) -> "Memory":
        """Return it without the refusals of some gangs, so that they are decided anew."""
        if not gangs:
            return self
        refused = {key: kept for key, kept in self.refused.items() if key not in gangs}
        left_out = {key: kept for key, kept in self.left_out.items() if key not in gangs}
        return replace(self, refused=refused, left_out=left_out)

    def only_promises(self) -> "Memory":
        """Return it without any answer, so that all are decided anew; what is held stays held."""
        return replace(
            self,
            refused={},
            left_out={},
            old=frozenset(),
            took=True,
            refresh=None,
            failed_attempts=None,
        )


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
