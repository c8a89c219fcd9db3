"""Keeps what blocked gangs wait for, and says which gangs would break that.

- `StartReservation`: the earliest time at which the gang would be admitted if the running gangs end
  as expected. Another gang may take of its room and quota only if it ends before that, or if the
  blocked gang would still be admitted then with the other one standing (EASY backfilling: Lifka,
  "The ANL/IBM SP Scheduling System", 1995; on nodes instead of on a number of processors).
- `LentQuota`: of what a queue has lent nothing more is borrowed while its own gang waits for it.
- `Bar`: nothing takes what an aged gang lacks, but what its nodes can spare whatever else ends.
- `OwnQuota`: gangs behind an aged one do not use up the quota of their queue that covers it.
- `KeptPart`: what an aged gang has now, of its groups and of quota, it goes on having.

An aged gang keeps the first start that it was told. Once that is over, or where none can be told,
it keeps the three others instead.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf

from scheduling.backfill.outlook import Outlook, RunningGang
from scheduling.model.amounts import Mask
from scheduling.model.gang import GangKey, PendingGang
from scheduling.queueing.line import Place

Turn = tuple[float, str, str]
"""What orders overdue gangs of all queues: their arrival, then their names."""

NO_TURN: Turn = (inf, "", "")
"""That of a gang which is not overdue."""


@dataclass(frozen=True, eq=False, slots=True)
class Contested:
    """Room on some nodes, and quota of some resources that some queues share."""

    nodes: Mask
    queues: Mask
    resources: Mask

    def meets(self, other: "Contested") -> bool:
        """Say whether both are about some of the same."""
        if (self.nodes & other.nodes).any():
            return True
        same = (self.queues & other.queues).any() and (self.resources & other.resources).any()
        return bool(same)

    def is_taken_by(self, gang: RunningGang) -> bool:
        """Say whether a gang takes some of it."""
        return self.has_nodes_of(gang) or self.has_quota_of(gang)

    def has_nodes_of(self, gang: RunningGang) -> bool:
        """Say whether a gang takes room on some of the nodes."""
        return bool(self.nodes[gang.nodes].any())

    def has_quota_of(self, gang: RunningGang) -> bool:
        """Say whether a gang takes some of the quota."""
        return bool(self.queues[gang.queue] and gang.quota[self.resources].any())


@dataclass(frozen=True, eq=False)
class Passer:
    """A gang that would start: the row of its queue, its place there, and its turn if overdue."""

    key: GangKey
    queue: int
    place: Place
    is_borrower: Callable[[], bool]
    turn: Turn = NO_TURN

    @cached_property
    def borrows(self) -> bool:
        """Whether its minimum takes its queue beyond its own quota."""
        return self.is_borrower()


@dataclass(frozen=True, eq=False)
class Start:
    """A gang that would start, what it takes, and the outlook before and after.

    `is_plain` says that nothing else of it is in the way of other pods on its nodes: no host port,
    no volume, no constraint between pods.
    """

    who: Passer
    takes: RunningGang
    before: Outlook
    is_plain: bool = False

    @cached_property
    def after(self) -> Outlook:
        """The outlook with the gang standing."""
        return self.before.beside(self.takes)


@dataclass(frozen=True, eq=False, slots=True)
class Claim:
    """The gang that something is kept for, and the gangs that it is kept from.

    `queue` is the row of the gang's queue, `place` its place there. `within` says that it is kept
    from that queue alone, `borrows` that the own quota of the queue would not cover the gang even
    if nothing used it: then gangs of other queues may take what their own quota covers.
    `is_of_lender` says that it is kept only from gangs of other queues that borrow.
    """

    gang: PendingGang
    queue: int
    place: Place
    turn: Turn = NO_TURN
    within: bool = False
    borrows: bool = False
    is_of_lender: bool = False

    def is_heeded_by(self, other: Passer) -> bool:
        """Say whether a gang may not take it: in its queue any behind it, in others by turn."""
        if other.key == self.gang.key:
            return False
        if self.is_of_lender:
            return other.queue != self.queue and other.borrows
        if other.queue == self.queue:
            return other.place >= self.place
        if self.within or (self.borrows and not other.borrows):
            return False
        return other.turn >= self.turn or (other.borrows and not self.borrows)


@dataclass(eq=False)
class Kept(ABC):
    """What is kept for a blocked gang: `contested` is what it waits for, or what it has."""

    claim: Claim
    contested: Contested

    @abstractmethod
    def is_broken_by(self, start: Start) -> bool:
        """Say whether a gang that has to heed it would take some of it for good."""

    def lets_end(self, ends: float) -> bool:  # noqa: ARG002
        """Say whether a gang that ends then breaks nothing, whatever it takes."""
        return False

    @property
    def needed(self) -> Contested:
        """What the gang needs of what others may take."""
        return self.contested

    def concerns(self, start: Start) -> bool:
        """Say whether a gang that would start takes some of it, and has to heed that."""
        return self.needed.is_taken_by(start.takes) and self.claim.is_heeded_by(start.who)


class LentQuota(Kept):
    """What a gang lacks of the quota that its own queue has lent; no more of it is borrowed.

    Only while nothing but quota keeps the gang waiting: no gang waits for nodes with quota unused.
    """

    def is_broken_by(self, start: Start) -> bool:
        """Say whether the nodes would take the gang now."""
        return start.before.has_room_for(self.claim.gang)


class Bar(Kept):
    """Nothing passes an aged gang to what it lacks."""

    def is_broken_by(self, start: Start) -> bool:
        """Say whether a gang takes quota, or more of the nodes than they can spare."""
        if self.contested.has_quota_of(start.takes) or not start.is_plain:
            return True
        return not start.before.spares(start.takes, self.claim.gang, self.contested.nodes)


class OwnQuota(Kept):
    """The quota of its own queue that covers an aged gang: nothing behind it there uses that up.

    Else it would borrow, for which all others come first that do not.
    """

    def is_broken_by(self, start: Start) -> bool:
        """Say whether too little is left of what a gang takes."""
        lacks = start.after.lacks_own_quota(self.claim.gang)
        return bool(start.takes.quota[lacks].any())


@dataclass(eq=False)
class KeptPart(Kept):
    """What an aged gang has now: room for the groups in `part`, and quota for all of it."""

    part: PendingGang

    def is_broken_by(self, start: Start) -> bool:
        """Say whether a gang takes quota or room that the aged one has now."""
        return self._loses_quota(start) or self._loses_room(start)

    def _loses_quota(self, start: Start) -> bool:
        if not self.contested.has_quota_of(start.takes):
            return False
        gang = self.claim.gang
        return bool((start.after.short_of(gang) & ~start.before.short_of(gang)).any())

    def _loses_room(self, start: Start) -> bool:
        if not self.contested.has_nodes_of(start.takes):
            return False
        return not start.after.has_room_for(self.part) and start.before.has_room_for(self.part)


@dataclass(eq=False)
class StartReservation(Kept):
    """The start of a blocked gang, found when another one would pass.

    `all_of_it` is what it waits for and what it has now. `promised` is the start that it was told
    before, `instead` what is kept for it where that is over or none can be told. `then` is the
    outlook at the start; `behind` are aged gangs that start after this one.
    """

    all_of_it: Contested
    instead: tuple[Kept, ...] = ()
    promised: float = inf
    starts: float = -inf
    then: Outlook | None = None
    behind: list["StartReservation"] = field(default_factory=list)

    @property
    def needed(self) -> Contested:
        """What the gang needs of what others may take."""
        return self.all_of_it

    def lets_end(self, ends: float) -> bool:
        """Say whether a gang that ends then leaves the start what it is."""
        return self.then is not None and ends <= min(self.starts, self.promised)

    def is_before(self, other: "StartReservation") -> bool:
        """Say whether another blocked gang waits for some of the same, and starts after this one.

        An aged gang waits for an aged one alone that keeps the same gangs from passing.
        """
        ours, theirs = self.claim, other.claim
        if ours.turn > theirs.turn or not self.contested.meets(other.contested):
            return False
        keeps_as_much = ours.queue == theirs.queue or not ours.within
        return not other.instead or (bool(self.instead) and keeps_as_much)

    def is_broken_by(self, start: Start) -> bool:
        """Say whether the blocked gang would start later for a gang."""
        if self.then is None or self.lets_end(start.takes.ends):
            return False
        return not self.then.beside(start.takes).fits(self.claim.gang)

    def count(self, gang: RunningGang, *, is_heeded: bool) -> None:
        """Count a gang that stands at the start; one that need not heed it may move the start."""
        if self.then is not None and gang.ends > self.starts and self.needed.is_taken_by(gang):
            self.then = self.then.beside(gang) if is_heeded else None


class Reservations:
    """What is kept in one cycle, in the order in which the gangs were blocked."""

    def __init__(self, now: float, running: Iterable[RunningGang]) -> None:
        self._now = now
        self._running = sorted((each for each in running if each.ends < inf), key=_order)
        self._kept: list[Kept] = []
        self.promised: dict[GangKey, float] = {}

    def all(self) -> Sequence[Kept]:
        """Return all that is kept."""
        return self._kept

    def is_first(self, asked: StartReservation) -> bool:
        """Say whether no gang before it with a start waits for some of the same."""
        return self._before(asked) is None

    def keep(self, kept: Kept) -> None:
        """Keep something; a start only where no gang before it waits for some of the same."""
        before = self._before(kept) if isinstance(kept, StartReservation) else None
        if before is None:
            self._kept.append(kept)
        elif isinstance(kept, StartReservation) and kept.instead:
            before.behind.append(kept)

    def drop(self, key: GangKey) -> None:
        """Keep nothing for a gang any more."""
        for each in [each for each in self._kept if each.claim.gang.key == key]:
            self._replace(each, ())

    def broken_by(self, start: Start) -> Kept | None:
        """Return what a gang would break if it started now, None where nothing.

        Then it counts as running, and as standing where it outlasts a blocked gang's wait.
        """
        heeded = [each for each in self._kept if each.concerns(start)]
        while any(self._is_given_up(each, start.before) for each in heeded):
            heeded = [each for each in self._kept if each.concerns(start)]
        broken = next((each for each in heeded if each.is_broken_by(start)), None)
        if broken is None:
            self._note(start.takes, heeded)
        return broken

    def start(self, gang: RunningGang) -> None:
        """Count a gang as running that nothing may delay; starts that it moves are found anew."""
        self._note(gang, ())

    def _before(self, asked: StartReservation) -> StartReservation | None:
        """Return the gang with a start for which another one has to wait."""
        return next((each for each in self._starts() if each.is_before(asked)), None)

    def _starts(self) -> Iterator[StartReservation]:
        return (each for each in self._kept if isinstance(each, StartReservation))

    def _note(self, gang: RunningGang, heeded: Collection[Kept]) -> None:
        for each in self._starts():
            each.count(gang, is_heeded=each in heeded)
        if gang.ends < inf:
            insort(self._running, gang, key=_order)

    def _is_given_up(self, kept: Kept, outlook: Outlook) -> bool:
        """Give up a start that is over or cannot be told, for what is kept instead."""
        if not isinstance(kept, StartReservation) or self._has_start(kept, outlook):
            return False
        self._replace(kept, kept.instead)
        return True

    def _replace(self, kept: Kept, others: Iterable[Kept]) -> None:
        at = self._kept.index(kept)
        self._kept[at : at + 1] = others
        for each in kept.behind if isinstance(kept, StartReservation) else ():
            self.keep(each)

    def _has_start(self, kept: StartReservation, outlook: Outlook) -> bool:
        """Say whether a start can be told; an aged gang keeps the first one."""
        if kept.then is not None:
            return True
        count = self._ends_needed(kept, outlook) if kept.promised > self._now else None
        if count is None:
            return False
        kept.starts = max(self._running[count - 1].ends if count else self._now, self._now)
        kept.then = outlook.after(self._running[:count])
        if kept.instead:
            kept.promised = min(kept.promised, kept.starts)
            self.promised[kept.claim.gang.key] = kept.promised
        return True

    def _ends_needed(self, kept: StartReservation, outlook: Outlook) -> int | None:
        """Return after how many ends the gang would be admitted; None where after all it is not.

        More room never hurts, but for rare constraints between pods: those may find a later start.
        """

        def fits_after(count: int) -> int:
            return int(outlook.after(self._running[:count]).fits(kept.claim.gang))

        numbers = range(len(self._running) + 1)
        found = bisect_left(numbers, 1, key=fits_after)
        return found if found < len(numbers) else None


def _order(gang: RunningGang) -> tuple[float, str]:
    return gang.ends, str(gang.key)
