"""Finds running gangs whose move lets a waiting gang start, at the least cost that is found.

The gangs to move and the waiting gang are placed as one gang, in the room without the gangs to
move. So the verdict follows the usual rules, and after the moves all fit at once. A larger set of
moves fits wherever a smaller one does, for each gang may stay where it is. So the search finds a
minimal set first, as for a preemption, and then anything cheaper. If many gangs run, it tries only
gangs on the nodes that lack the least: first a few, then more.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile

from scheduling.admission.gang import admit
from scheduling.admission.question import Accepted, Question
from scheduling.defragmentation.in_the_way import in_the_way
from scheduling.defragmentation.movable import Movable
from scheduling.defragmentation.subsets import Cost, cheapest_first
from scheduling.diagnosis.causes import is_open, is_unsupported
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.gang import Group, Member, PendingGang
from scheduling.model.placement import Placement
from scheduling.preemption.freed import Freed
from scheduling.preemption.minimal_set import minimal_set
from scheduling.preemption.search import QUESTION
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.state.pod_index import ExistingPods

STEPS = 100_000_000
"""What one search may take: some 2 s."""

FEW = 48
"""Gangs of which every choice is looked at."""

_OF = "\n"
"""In no name of a pod set: parts the number of a moved gang from the name of its pod set."""


@dataclass(frozen=True, eq=False, slots=True)
class Move:
    """A gang that is moved, and where to."""

    gang: Movable
    to: Placement


@dataclass(frozen=True, eq=False, slots=True)
class Moves:
    """The moves, and where the waiting gang will be; `is_cheapest` where no others cost less."""

    moves: tuple[Move, ...]
    start: Placement
    is_cheapest: bool
    steps: int

    @property
    def lost(self) -> int:
        """Return what all moves lose, in millionths of a GPU-hour."""
        return sum(each.gang.lost for each in self.moves)


@dataclass(frozen=True, slots=True)
class NoMoves:
    """No moves help; `is_certain` says that this does not come of the bound alone."""

    is_certain: bool
    steps: int


@dataclass(frozen=True, eq=False, slots=True)
class Running:
    """What runs: the room beside it, the gangs that can be moved, and the pods that are there.

    `existing` is None where no pod has inter-pod constraints.
    """

    movables: Sequence[Movable]
    room: FreeCapacity
    tree: QuotaTree
    existing: ExistingPods | None = None


def cheapest_moves(gang: PendingGang, running: Running, steps: int = STEPS) -> Moves | NoMoves:
    """Find what to move so that the minimum of a gang is admitted beside all that moved."""
    if len(running.movables) <= FEW:
        return _cheapest(gang, running, steps)
    spent = 0
    for movables in in_the_way(gang, running.movables, running.room):
        found = _cheapest(gang, replace(running, movables=movables), (steps - spent) // 2)
        spent += found.steps
        if isinstance(found, Moves):
            return replace(found, is_cheapest=False, steps=spent)
    return NoMoves(is_certain=False, steps=spent)


def _cheapest(gang: PendingGang, running: Running, steps: int) -> Moves | NoMoves:
    """Find the cheapest moves among those of all that may be moved."""
    ranked = sorted(running.movables, key=lambda each: (each.cost, str(each.key)))
    search = _Search(replace(gang, surplus=()), replace(running, movables=ranked), steps)
    every = range(len(ranked))
    first = minimal_set(every, lambda chosen: search.fits(chosen) is not None)
    if first is None and not search.is_open:
        return NoMoves(is_certain=True, steps=search.spent)
    best = search.cheaper_than(first)
    if best is None:
        return NoMoves(is_certain=False, steps=search.spent)
    return search.moves(best)


class _Search:
    """The questions about one gang, within a bound of steps; the same is not asked twice.

    `is_open` says that a no was not certain: then what is found may not be the cheapest.
    """

    def __init__(self, gang: PendingGang, running: Running, steps: int) -> None:
        self._gang, self._running, self._steps = gang, running, steps
        self._movables = running.movables
        self._answers: dict[tuple[int, ...], Accepted | None] = {}
        self.spent, self.is_open = 0, False

    def fits(self, chosen: Sequence[int]) -> Accepted | None:
        """Return how all would be placed if these gangs were moved; None if they would not."""
        key = tuple(sorted(chosen))
        if key not in self._answers:
            if self._is_out:
                self.is_open = True
                return None
            self._answers[key] = self._asked(key)
        return self._answers[key]

    def cheaper_than(self, found: Collection[int] | None) -> tuple[int, ...] | None:
        """Return the cheapest that is enough; what was found where nothing else costs less."""
        costs = [each.cost for each in self._movables]
        limit = self._cost(found) if found is not None else None
        for chosen in takewhile(
            lambda each: limit is None or self._cost(each) < limit, cheapest_first(costs)
        ):
            if self.fits(chosen) is not None:
                return chosen
            if self._is_out:
                self.is_open = True
                break
        return tuple(sorted(found)) if found is not None else None

    def moves(self, chosen: tuple[int, ...]) -> Moves:
        """Return the moves of gangs that are enough."""
        accepted = self._answers[chosen]
        assert accepted is not None, "they are enough"
        by_number = _apart(accepted.placement)
        moves = tuple(Move(self._movables[at], by_number[str(at)]) for at in chosen)
        start = by_number.get("", Placement())
        return Moves(moves, start, not self.is_open, self.spent)

    def _cost(self, chosen: Collection[int]) -> Cost:
        return sum(self._movables[at].lost for at in chosen), len(chosen)

    @property
    def _is_out(self) -> bool:
        return self.spent + QUESTION >= self._steps

    def _asked(self, chosen: tuple[int, ...]) -> Accepted | None:
        gone = [at for number in chosen for at in self._positions[number]]
        room = self._freed.room(gone, self._running.room)
        gang = _together(self._gang, [(at, self._movables[at].again) for at in chosen])
        room = room.for_priority(gang.pod_priority)
        left = self._steps - self.spent - QUESTION
        outcome = admit(Question(gang, room, left, self._running.existing))
        self.spent += QUESTION + outcome.steps
        if isinstance(outcome, Accepted):
            return outcome
        self.is_open |= is_open(outcome.cause) or is_unsupported(outcome.cause)
        return None

    @cached_property
    def _positions(self) -> list[range]:
        """The numbers of the parts of each gang."""
        found, at = [], 0
        for each in self._movables:
            found.append(range(at, at + len(each.parts)))
            at += len(each.parts)
        return found

    @cached_property
    def _freed(self) -> Freed:
        parts = [part for each in self._movables for part in each.parts]
        return Freed(dict(enumerate(parts)), self._running.room.columns, self._running.tree)


def _together(gang: PendingGang, moved: Sequence[tuple[int, PendingGang]]) -> PendingGang:
    """Return all as one gang, in which the pod sets of those that are moved have a number."""
    minimum, members = list(gang.minimum), list(gang.members)
    for at, each in moved:
        minimum += (Group(_named(at, g.pod_set), g.replica, g.shape, g.count) for g in each.minimum)
        members += (Member(_named(at, m.pod_set), *m[1:]) for m in each.members)
    lowest = min((gang.pod_priority, *(each.pod_priority for _, each in moved)))
    return replace(gang, minimum=tuple(minimum), members=tuple(members), pod_priority=lowest)


def _named(at: int, pod_set: str) -> str:
    return f"{at}{_OF}{pod_set}"


def _apart(placement: Placement) -> dict[str, Placement]:
    """Return the placement of each gang by its number, that of the waiting one by none."""
    return {
        number: Placement.of(
            replace(each, pod_set=each.pod_set.rpartition(_OF)[2])
            for each in placement.assignments
            if each.pod_set.rpartition(_OF)[0] == number
        )
        for number in dict.fromkeys(e.pod_set.rpartition(_OF)[0] for e in placement.assignments)
    }
