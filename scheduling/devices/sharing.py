"""Splits groups whose pods share claims: one pod is allocated the devices, the others reuse them.

Which pod comes first does not matter, so the one is of the first group. The devices belong to one
node, so all who share them go there.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from scheduling.devices.gang import ClaimGroup, Foreseen, NoPlacement, Verdict
from scheduling.devices.mixes import Mix


@dataclass(frozen=True, slots=True)
class PartedGroups:
    """Groups as they are foreseen; `of` says by part of which group it is.

    A group of a tie is one pod with the claims and the rest without, or all of it without.
    """

    groups: Sequence[ClaimGroup]
    parts: Sequence[ClaimGroup]
    of: Sequence[int]

    @classmethod
    def of_groups(cls, groups: Sequence[ClaimGroup]) -> "PartedGroups":
        """Part the groups."""
        found = [(part, at) for at in range(len(groups)) for part in _parts(groups, at)]
        return cls(groups, [part for part, _ in found], [at for _, at in found])

    def most(self, most: Mix) -> Mix:
        """Return by part how many pods a node may take; of a tie all or none."""
        return tuple(
            min(part.count, most[at]) if self._is_whole(part, most) else 0
            for part, at in zip(self.parts, self.of, strict=True)
        )

    def _is_whole(self, part: ClaimGroup, most: Mix) -> bool:
        return part.tie is None or all(
            most[at] >= each.count for at, each in enumerate(self.groups) if each.tie == part.tie
        )

    def joined(self, verdict: Verdict) -> Verdict:
        """Return a verdict on the parts as one on the groups."""
        match verdict:
            case Foreseen(placement, waves):
                placed = tuple((name, self._together(sum, mix)) for name, mix in placement)
                return Foreseen(placed, tuple(map(self._wave(waves), range(len(self.groups)))))
            case NoPlacement(refusals, most):
                whole = tuple(refusals[self._first(at)] for at in range(len(self.groups)))
                return NoPlacement(whole, tuple(self._most(most, at) for at in range(len(whole))))
        return verdict

    def _together(self, join: Callable[[Iterable[int]], int], by_part: Mix) -> Mix:
        """Join the numbers of the parts of each group."""
        return tuple(
            join(number for number, at in zip(by_part, self.of, strict=True) if at == group)
            for group in range(len(self.groups))
        )

    def _wave(self, waves: Mix) -> Callable[[int], int]:
        return lambda at: waves[self._first(at)]

    def _most(self, most: Mix, at: int) -> int:
        """Return how many pods of a group get devices: all who share them, or none."""
        if self.groups[at].tie is None:
            return most[self._first(at)]
        return self.groups[at].count if most[self._first(at)] else 0

    def _first(self, at: int) -> int:
        """Return the part that decides for a group: of a tie the one with the claims."""
        tie = self.groups[at].tie
        if tie is None:
            return self.of.index(at)
        return next(part for part, each in enumerate(self.parts) if each.tie == tie)


def _parts(groups: Sequence[ClaimGroup], at: int) -> list[ClaimGroup]:
    whole = groups[at]
    if whole.tie is None:
        return [whole]
    if any(each.tie == whole.tie for each in groups[:at]):
        return [replace(whole, claims=())]
    others = replace(whole, claims=(), count=whole.count - 1)
    return [replace(whole, count=1), *([others] if others.count else [])]
