"""Finds a smallest set of candidates whose removal is enough (QuickXplain).

Ulrich Junker, "QUICKXPLAIN: Preferred Explanations and Relaxations for Over-Constrained Problems",
AAAI 2004: some 2k log(n/k) questions for k of n candidates, where to take back one after the other
asks n. The set is minimal by inclusion, and of the candidates it takes the later ones only where
all earlier ones together are not enough.

The last candidate of the set is found first, by bisection, with log n questions: it and all before
it are enough. A question that is answered with no from then on, whatever the truth, spares less;
what is found is enough all the same. So a search that must end early has a set to end with.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

Enough = Callable[[Sequence[T]], bool]
"""Whether to remove these is enough; to remove more never undoes it."""


def minimal_set(candidates: Sequence[T], enough: Enough[T]) -> list[T] | None:
    """Return candidates that are enough, in their order, and of which none can be spared.

    `candidates` begin with those to be taken first. None where all of them are not enough; empty
    where nothing need be removed.
    """
    first = first_enough(candidates, enough)
    return None if first is None else spared(first, enough)


def first_enough(candidates: Sequence[T], enough: Enough[T]) -> Sequence[T] | None:
    """Return the fewest candidates from the first on that are enough; None if all are not."""
    if enough([]):
        return []
    if not enough(candidates):
        return None
    counts = range(len(candidates))
    return candidates[: bisect_left(counts, x=True, lo=1, key=lambda n: enough(candidates[:n]))]


def spared(first: Sequence[T], enough: Enough[T]) -> list[T]:
    """Return which of the first candidates are needed, which are enough with the last of them."""
    if not first:
        return []
    *others, last = first
    if not others or enough([last]):
        return [last]
    return [*_needed([last], others, enough), last]


def _needed(taken: list[T], candidates: Sequence[T], enough: Enough[T]) -> list[T]:
    """Return which of the candidates are needed beside those taken, which are not enough."""
    if len(candidates) == 1:
        return list(candidates)
    half = len(candidates) // 2
    first, later = list(candidates[:half]), candidates[half:]
    of_later = [] if enough(taken + first) else _needed(taken + first, later, enough)
    of_first = [] if enough(taken + of_later) else _needed(taken + of_later, first, enough)
    return of_first + of_later
