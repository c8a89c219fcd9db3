"""Says which running gangs a waiting one may stop, and in which order they are taken.

- In its own queue (`withinQueue`): parts of a lower priority, but none that a quota covers which
  would not cover the waiting gang: a gang that borrows takes no room from one that does not.
- In other queues (`reclaim`): parts that no quota covers below the queue above both, where some
  quota below it covers the waiting gang.
- Also in other queues below the same root (`while_borrowing`): parts of a lower priority, as in its
  own queue.

Surplus is taken before whole gangs, and with its minimum a gang loses all of it. Among surplus, and
among whole gangs, a part that quota covers at a deeper queue is taken later.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scheduling.model.gang import GangKey
from scheduling.model.preemption import GangPart
from scheduling.model.queue import Queue, Reclaim, WhileBorrowing, WithinQueue
from scheduling.preemption.coverage import Coverage, Guarantees, Use


@dataclass(frozen=True, slots=True)
class Claim:
    """By what right a waiting gang takes room: its queue, priority, and what covers it."""

    queue: Queue
    row: int
    priority: int
    covered: frozenset[int]


@dataclass(frozen=True, eq=False, slots=True)
class Candidate:
    """What may be taken at once: one replica of surplus, or a gang with all its parts.

    `depth` is that of the deepest guarantee that covers it.
    """

    parts: tuple[GangPart, ...]
    depth: int

    @property
    def first(self) -> GangPart:
        """Return the minimum, or the replica."""
        return self.parts[0]


def candidates(
    claim: Claim,
    parts: Iterable[tuple[GangPart, Use]],
    coverage: Coverage,
    guarantees: Guarantees,
) -> tuple[list[Candidate], list[GangPart]]:
    """Return what may be taken, the first to go first, and of each gang that is kept a part."""
    of_gang: dict[GangKey, list[GangPart]] = defaultdict(list)
    open_to: list[tuple[GangPart, int]] = []
    for part, use in parts:
        of_gang[part.gang].append(part)
        if may_take(claim, part, use, coverage, guarantees):
            open_to.append((part, coverage.depth(use)))
    found = [_candidate(part, depth, of_gang[part.gang]) for part, depth in open_to]
    kept = {each.first.gang: part for each in found for part in _kept(each)}
    free = [each for each in found if not any(_kept(each))]
    return sorted(free, key=order), sorted(kept.values(), key=_name)


def may_take(
    claim: Claim, part: GangPart, use: Use, coverage: Coverage, guarantees: Guarantees
) -> bool:
    """Say whether the rules of a waiting gang's queue let it take a part."""
    if not is_open(claim.queue, claim.priority, part.queue, part.priority):
        return False
    covered = coverage.covered(use)
    if use.row == claim.row:
        return covered <= claim.covered
    ours, theirs = guarantees.apart(claim.row, use.row)
    is_theirs = not covered.isdisjoint(theirs) or claim.covered.isdisjoint(ours)
    if not is_theirs and _reclaims(claim.queue, claim.priority, part.priority):
        return True
    below_one_root = len(ours) < len(guarantees.path(claim.row))
    borrows = _stops_borrowers(claim.queue, claim.priority, part.priority)
    return borrows and below_one_root and covered <= claim.covered


def is_open(queue: Queue, priority: int, victims_queue: str, victims_priority: int) -> bool:
    """Say whether a queue's settings let its gang of a priority stop others at all."""
    if victims_queue == queue.name:
        return victims_priority < priority and queue.within_queue is WithinQueue.LOWER_PRIORITY
    priorities = priority, victims_priority
    return _reclaims(queue, *priorities) or _stops_borrowers(queue, *priorities)


def _reclaims(queue: Queue, priority: int, victims_priority: int) -> bool:
    is_lower = victims_priority < priority
    return queue.reclaim is Reclaim.ANY or (is_lower and queue.reclaim is Reclaim.LOWER_PRIORITY)


def _stops_borrowers(queue: Queue, priority: int, victims_priority: int) -> bool:
    if queue.while_borrowing is WhileBorrowing.NEVER:
        return False
    return victims_priority < priority and victims_priority <= queue.borrowers_priority


def _candidate(part: GangPart, depth: int, of_gang: Sequence[GangPart]) -> Candidate:
    if not part.is_minimum:
        return Candidate((part,), depth)
    return Candidate((part, *(each for each in of_gang if not each.is_minimum)), depth)


def _kept(candidate: Candidate) -> Iterable[GangPart]:
    return (each for each in candidate.parts if each.kept_because)


def _name(part: GangPart) -> str:
    return str(part.gang)


def order(candidate: Candidate) -> tuple[object, ...]:
    """Surplus before gangs; what borrows before what is covered, which would come back for it.

    Then by priority, and of equals those first that outlived theirs. A queue's default duration
    makes gangs outlive what no user declared: they must not end before gangs of a lower priority,
    which they could stop in turn.
    """
    part = candidate.first
    last = -len(part.replica), *(-ord(letter) for letter in part.replica)
    return *rank_of(candidate), not part.outlived, -part.admitted, str(part.gang), last


def rank_of(candidate: Candidate) -> tuple[bool, int, int]:
    """Return what decides first which is taken: among equal ones as few as possible are."""
    return candidate.first.is_minimum, candidate.depth, candidate.first.priority
