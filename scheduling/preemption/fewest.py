"""Compares sets of victims: of equal rank fewer are better, and then those with fewer pods.

The fewest that are enough cannot be found with few questions. So a minimal set is sought once more
in another order, and the better set is taken: within each rank first the smallest of those that are
enough alone, as far as amounts tell, then the largest of the others.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from scheduling.model.amounts import PODS
from scheduling.preemption.candidates import Candidate, rank_of

Found = Mapping[int, Candidate]
"""Candidates by the position of their first part, the first to go first."""


def fewest_first(found: Found, asked: Mapping[str, int]) -> list[int]:
    """Order candidates by rank, then by how few of them would do."""
    return sorted(found, key=lambda at: (rank_of(found[at]), *_few(found[at], asked)))


def cost(found: Found, taken: Collection[int]) -> tuple[object, ...]:
    """Return what makes a set of victims worse: how many of the last rank, and so on, and pods."""
    whole = {found[at].first.gang for at in taken if at in found and found[at].first.is_minimum}
    mine = [found[at] for at in taken if at in found]
    apart = [e for e in mine if e.first.is_minimum or e.first.gang not in whole]
    counts = Counter(map(rank_of, apart))
    ranks = sorted({rank_of(each) for each in found.values()}, reverse=True)
    return (*(counts[each] for each in ranks), sum(_has(each, PODS) for each in apart))


def _few(candidate: Candidate, asked: Mapping[str, int]) -> tuple[bool, int, int]:
    """Return what sorts first who is enough alone and has few pods, then who has the largest part.

    Parts are in millionths of what is asked for.
    """
    amounts = {name: amount for name, amount in asked.items() if amount and name != PODS}
    parts = [_has(candidate, name) * 1_000_000 // each for name, each in amounts.items()]
    is_enough, pods = min(parts, default=0) >= 1_000_000, _has(candidate, PODS)
    return not is_enough, 0 if is_enough else -max(parts, default=0), pods


def _has(candidate: Candidate, resource: str) -> int:
    rooms: Iterable[tuple[str, int]] = (
        one for part in candidate.parts for _, amounts in part.room for one in amounts
    )
    return sum(amount for name, amount in rooms if name == resource)
