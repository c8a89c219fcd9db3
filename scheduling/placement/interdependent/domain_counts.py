"""Counts a gang's pods in each domain, and how many more a constraint lets in.

Counts that are kept pod by pod, for a search that places one pod and takes it back time after time.
"""

from collections.abc import Collection, Iterable, Sequence
from operator import add

from scheduling.model.amounts import MOST, Amounts, Positions


class DomainCounts:
    """How many pods of some units each domain holds.

    Node i is in domain `of[i]`; the last domain is no domain, and never has least.
    """

    def __init__(self, units: Collection[int], of: Positions, before: Amounts) -> None:
        self.units = units
        self.of: list[int] = of.tolist()
        self.held: list[int] = before.tolist()
        self.outside = len(self.held) - 1
        self._least: int | None = None

    def put(self, node: int, count: int) -> None:
        """Count pods that are placed on a node; fewer than none are taken back."""
        self.held[self.of[node]] += count
        self._least = None

    def sums(self, row: Iterable[int]) -> list[int]:
        """Add up a row over the nodes by domain."""
        sums = [0] * len(self.held)
        for domain, pods in zip(self.of, row, strict=True):
            sums[domain] += pods
        return sums

    def holds_any(self, node: int) -> bool:
        """Say whether the node is in a domain that holds anybody."""
        domain = self.of[node]
        return domain != self.outside and self.held[domain] > 0

    def anywhere(self) -> bool:
        """Say whether any domain holds anybody."""
        return any(self.held[:-1])

    def least(self) -> int:
        """Return what the domain holds that has least."""
        if self._least is None:
            self._least = min(self.held[:-1])
        return self._least

    def least_but(self, domain: int) -> int:
        """Return the least among the other domains; a domain alone is never above any."""
        return min((*self.held[:domain], *self.held[domain + 1 : -1]), default=MOST)


class Prospect:
    """How many more pods one rule lets in at most, once all come that still have room.

    `owners` are the units that have the rule, alike in all it says: what one takes of a domain the
    others lack. `room` is what the domains still hold of their pods, `coming` of all that count.
    """

    def __init__(
        self,
        counted: DomainCounts,
        floor: Sequence[int] | None,
        max_skew: int,
        caps: Sequence[Sequence[int]],
    ) -> None:
        self.owners: list[int] = []
        self._counted, self._floor, self._max_skew = counted, floor, max_skew
        self._room = [0] * len(counted.held)
        self._coming = counted.sums(sum(each[at] for at in counted.units) for each in caps)

    def own(self, at: int, caps: Sequence[int]) -> None:
        """Take in another unit that has the rule, and how many of its pods each node holds."""
        self.owners.append(at)
        self._room = list(map(add, self._room, self._counted.sums(caps)))

    def find_room(self, at: int, node: int, pods: int) -> None:
        """Take in that a node holds more pods of a unit, or fewer."""
        domain = self._counted.of[node]
        if at in self.owners:
            self._room[domain] += pods
        if at in self._counted.units:
            self._coming[domain] += pods

    def most(self) -> int:
        """Return how many pods of the owners there can be at most."""
        held = self._counted.held[:-1]
        floor = self._floor
        if floor is None:
            floor = [min(map(add, held, self._coming))] * len(held)
        most = 0
        for least, there, room in zip(floor, held, self._room[:-1], strict=True):
            most += max(0, min(least + self._max_skew - there, room))
        return most
