"""How is a gang decided whose members mind each other's company?

As any other: its minimum whole or not at all, then as much of the surplus as fits, unit by unit.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from scheduling import explain
from scheduling.assign import Assignments
from scheduling.bonded import NoWay, place_bonded
from scheduling.columns import Amounts
from scheduling.model import Group, PendingGang
from scheduling.neighbours import Neighbours
from scheduling.room import Room, Spread
from scheduling.search import Found, OutOfSteps
from scheduling.verdict import Admitted, Refusal, Verdict


@dataclass(frozen=True, eq=False, slots=True)
class Turn:
    """The verdict for one gang, the room left after it, and the steps it took."""

    verdict: Verdict
    room: Room
    steps: int = 0


def decide_bonded(gang: PendingGang, found: Neighbours, room: Room, steps: int) -> Turn:
    """Decide a gang whose groups have the bounds of `found` in their shapes."""
    attempt = _Attempt(found, room, steps)
    outcome = attempt.place(gang.minimum)
    if not isinstance(outcome, Found):
        return Turn(_refused(gang, found, outcome, room), room, outcome.steps)
    placed: list[int] = []
    hopeless: set[tuple[Group, ...]] = set()
    for at, unit in enumerate(gang.surplus):
        if unit not in hopeless and isinstance(attempt.place(unit), Found):
            placed.append(at)
        else:
            hopeless.add(unit)
    verdict = Admitted(attempt.assignments.placement(), tuple(placed))
    return Turn(verdict, attempt.room, attempt.spent)


def _refused(
    gang: PendingGang, found: Neighbours, outcome: NoWay | OutOfSteps, room: Room
) -> Refusal:
    if isinstance(outcome, OutOfSteps):
        return explain.undecided(gang.minimum, room)
    return explain.no_way(gang.minimum, dict(zip(_keys(found), outcome.missing, strict=True)), room)


def _keys(found: Neighbours) -> list[tuple[str, str]]:
    return [(pod_set, shape.key) for pod_set, shape in found.units]


class _Attempt:
    """What was placed so far, and the room that is left."""

    def __init__(self, found: Neighbours, room: Room, steps: int) -> None:
        self._found = found
        self._steps = steps
        self._standing: Amounts = np.zeros(
            (len(found.units), len(room.columns.names)), dtype=np.int64
        )
        self.room = room
        self.assignments = Assignments(room.columns)
        self.spent = 0

    def place(self, groups: Sequence[Group]) -> Found | NoWay | OutOfSteps:
        """Place all of the groups beside what stands, or none of them."""
        shapes, bonds = self._found.shapes, self._found.bonds
        counts = [sum(g.count for g in self._of_unit(at, groups)) for at in range(len(shapes))]
        left = self._steps - self.spent
        outcome = place_bonded(shapes, counts, bonds, self.room, self._standing, left)
        self.spent += outcome.steps
        if isinstance(outcome, Found):
            for at, spread in enumerate(outcome.spreads):
                self._take(at, self._of_unit(at, groups), counts[at], spread)
        return outcome

    def _of_unit(self, at: int, groups: Iterable[Group]) -> list[Group]:
        unit = self._found.units[at][0], self._found.shapes[at]
        return [group for group in groups if (group.pod_set, group.shape) == unit]

    def _take(self, at: int, groups: list[Group], count: int, spread: Spread) -> None:
        if not count:
            return
        shape = self._found.shapes[at]
        self.assignments.hand_out(groups, ((shape, count),), (spread,))
        self.room = self.room.without(shape, spread)
        self._standing[at, spread.nodes] += spread.pods
