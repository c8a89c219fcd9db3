"""Keeps a start for blocked gangs while gangs behind them use the room (EASY backfilling).

The first blocked gang of each set of contested nodes has a reservation: the earliest time at which
it would be admitted if the running gangs end as expected. Another gang may take room on those nodes
only if it ends before that time, or if the blocked gang would still be admitted then with the other
one standing. (Lifka, "The ANL/IBM SP Scheduling System", 1995; on nodes instead of on a number of
processors.)

A gang that has waited too long, or was passed too often, has a reservation without a time: on the
nodes that it waits for nothing passes it but what these nodes can spare whatever else ends there.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from math import inf

from scheduling.model.amounts import Amounts, Mask, Positions
from scheduling.model.gang import GangKey, PendingGang
from scheduling.queueing.waiting import Place


@dataclass(frozen=True, eq=False, slots=True)
class RunningGang:
    """A gang that holds room, and when it is expected to give it back.

    `ends` is in seconds on the clock of the cycle, infinite where nothing is said of it. `room` is
    what it holds on the nodes at `nodes` (resources x those), `quota` what it holds of the quota of
    the queue in row `queue`; `borrows` says that this is more than its own quota covers,
    `place` where it waited in the queue. `is_plain` says that nothing else of it is in the way of
    other pods on its nodes: no host port, no volume, no constraint between pods.
    """

    key: GangKey
    ends: float
    nodes: Positions
    room: Amounts
    queue: int
    quota: Amounts
    borrows: bool = True
    place: Place | None = None
    is_plain: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Outlook:
    """What is free (resources x nodes) and what queues hold (queues x resources) at some time."""

    free: Amounts
    held: Amounts

    def after(self, ended: Iterable[RunningGang]) -> "Outlook":
        """Return the outlook once these gangs have ended."""
        free, held = self.free.copy(), self.held.copy()
        for each in ended:
            free[:, each.nodes] += each.room
            held[each.queue] -= each.quota
        return Outlook(free, held)

    def beside(self, gang: RunningGang) -> "Outlook":
        """Return the outlook with one more gang standing."""
        free, held = self.free.copy(), self.held.copy()
        free[:, gang.nodes] -= gang.room
        held[gang.queue] += gang.quota
        return Outlook(free, held)


Fits = Callable[[PendingGang, Outlook], bool]
"""Whether a gang would be admitted, by the full verdict."""

Spares = Callable[[PendingGang, RunningGang, Mask, Amounts], bool]
"""Whether some nodes, with so much free, have to spare what the second gang takes of them: beside
all pods of the first one that they could run if they were empty."""


@dataclass(frozen=True, eq=False, slots=True)
class Contested:
    """What a blocked gang waits for: room on some nodes, or quota that some queues share.

    `resources` are the columns of the quota that is short, None for all.
    """

    nodes: Mask
    queues: Mask
    resources: Mask | None = None

    def meets(self, other: "Contested") -> bool:
        """Say whether both want something of the same."""
        return bool((self.nodes & other.nodes).any() or (self.queues & other.queues).any())

    def is_taken_by(self, gang: RunningGang) -> bool:
        """Say whether a gang takes some of it."""
        return bool(self.nodes[gang.nodes].any()) or self.is_quota_taken_by(gang)

    def is_quota_taken_by(self, gang: RunningGang) -> bool:
        """Say whether a gang takes some of the quota."""
        short = gang.quota if self.resources is None else gang.quota[self.resources]
        return bool(self.queues[gang.queue] and short.any())


@dataclass(eq=False, slots=True)
class Reservation:
    """What is kept for a blocked gang.

    `starts` is when it would be admitted, and `then` what is free and held at that time; None until
    a gang would pass. A barred one has no time: nothing may pass. `is_part`: the gang stands for
    those of its groups that would fit now and are to go on fitting. `row` is that of the gang's
    queue; `within` says that it is kept from that queue alone, `borrows` that gangs of other queues
    may take from it what their own quota covers. Gangs before its `place` in its queue need not
    heed it.
    """

    gang: PendingGang
    contested: Contested
    starts: float = -inf
    then: Outlook | None = None
    barred: bool = False
    is_part: bool = False
    row: int = -1
    within: bool = False
    borrows: bool = False
    place: Place | None = None

    @property
    def has_no_time(self) -> bool:
        """Say whether it is kept without regard to when the gang will start."""
        return self.barred or self.is_part

    def concerns(self, gang: RunningGang) -> bool:
        """Say whether a gang that would start takes some of what is kept, and has to heed that."""
        if gang.key == self.gang.key:
            return False
        if gang.queue != self.row and (self.within or (self.borrows and not gang.borrows)):
            return False
        return self.is_heeded(gang.queue, gang.place) and self.contested.is_taken_by(gang)

    def is_heeded(self, queue: int, place: Place | None) -> bool:
        """Say whether a gang of a queue is not before this one in the same line."""
        return queue != self.row or place is None or self.place is None or place >= self.place


class Reservations:
    """The reservations of one cycle, in the order in which the gangs were blocked."""

    def __init__(
        self, now: float, running: Iterable[RunningGang], fits: Fits, spares: Spares
    ) -> None:
        self._now = now
        self._running = sorted((each for each in running if each.ends < inf), key=_order)
        self._fits, self._spares = fits, spares
        self._kept: list[Reservation] = []
        self._all: Contested | None = None

    def may_reserve(self, kept: Reservation) -> bool:
        """Say whether no gang with a start waits for some of the same."""
        before = (each for each in self._kept if not each.has_no_time)
        return not any(each.contested.meets(kept.contested) for each in before)

    def reserve(self, kept: Reservation) -> None:
        """Keep a start for a blocked gang, unless one before it waits for some of the same."""
        if self.may_reserve(kept):
            self._add(kept)

    def bar(self, kept: Reservation) -> None:
        """Let nothing pass a gang to what it waits for."""
        kept.barred = True
        self._add(kept)

    def keep(self, kept: Reservation) -> None:
        """Keep what a part of a gang has now."""
        self._add(kept)

    def _add(self, kept: Reservation) -> None:
        self._kept.append(kept)
        if self._all is None:
            self._all = Contested(kept.contested.nodes.copy(), kept.contested.queues.copy())
        else:
            self._all.nodes[:] |= kept.contested.nodes
            self._all.queues[:] |= kept.contested.queues

    def drop(self, kept: Reservation) -> None:
        """Keep nothing for a gang any more."""
        self._kept.remove(kept)

    def delayed_by(self, gang: RunningGang, outlook: Outlook) -> Reservation | None:
        """Return the reservation that a gang would break if it started now, None where none.

        Then it counts as running, and as standing where it outlasts a blocked gang's wait.
        """
        if self._all is None or not self._all.is_taken_by(gang):
            self._note(gang)
            return None
        standing: list[tuple[Reservation, Outlook]] = []
        for each in [each for each in self._kept if each.concerns(gang)]:
            if each.barred and not self._is_spared(each, gang, outlook):
                return each
            then = self._then(each, outlook)
            if then is None or gang.ends <= each.starts:
                continue
            then = then.beside(gang)
            if not self._fits(each.gang, then):
                return each
            standing.append((each, then))
        self._move_starts(gang, [each for each, _ in standing])
        for each, then in standing:
            each.then = then
        self._note(gang)
        return None

    def _is_spared(self, kept: Reservation, gang: RunningGang, outlook: Outlook) -> bool:
        """Say whether a gang takes only what a barred one will not need, whatever ends first."""
        contested = kept.contested
        if not gang.is_plain or contested.is_quota_taken_by(gang):
            return False
        return self._spares(kept.gang, gang, contested.nodes, outlook.free)

    def start(self, gang: RunningGang) -> None:
        """Count a gang as running that nothing may delay; starts that it moves are found anew."""
        self._move_starts(gang, ())
        self._note(gang)

    def _move_starts(self, gang: RunningGang, but: Container[Reservation]) -> None:
        """Forget the starts, but some, that a gang moves which does not have to heed them."""
        for each in self._kept:
            if each not in but and each.contested.is_taken_by(gang) and gang.ends > each.starts:
                each.then = None

    def _note(self, gang: RunningGang) -> None:
        if gang.ends < inf:
            insort(self._running, gang, key=_order)

    def _then(self, reservation: Reservation, outlook: Outlook) -> Outlook | None:
        """Return the outlook at the start of a blocked gang; None where no start can be told.

        Too little is known then of when others end, and nothing is kept for the gang.
        """
        if reservation.then is None and not reservation.barred:
            count = self._ends_needed(reservation.gang, outlook)
            if count is None:
                self._kept.remove(reservation)
                return None
            ends = self._running[count - 1].ends if count else self._now
            reservation.starts = max(ends, self._now)
            reservation.then = outlook.after(self._running[:count])
        return reservation.then

    def _ends_needed(self, gang: PendingGang, outlook: Outlook) -> int | None:
        """Return after how many ends the gang would be admitted; None where after all it is not.

        More room never hurts, but for rare constraints between pods: those may find a later start.
        """

        def fits_after(count: int) -> int:
            return int(self._fits(gang, outlook.after(self._running[:count])))

        numbers = range(len(self._running) + 1)
        found = bisect_left(numbers, 1, key=fits_after)
        return found if found < len(numbers) else None


def _order(gang: RunningGang) -> tuple[float, str]:
    return gang.ends, str(gang.key)
