"""What do pods take that were passed and are not seen bound, on each node that they may be on?

A pod may go to any node that it was passed for. Where room is reserved is not the point here: it
may be reserved later, when the next pod is asked about. So all nodes are kept, as a bit each
where they are many, and what the pods take together is kept as a sum for each node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kube.observed import Amounts as Requests
from kube.observed import ObservedPod
from scheduling.columns import LIMIT, Amounts, Mask, Positions, Traits

SUMS_KEPT = 64
"""Resources whose sums are kept: 2.5 MB at 5,000 nodes. Anybody can invent host ports."""

FEW = 64
"""The positions of fewer than one node in so many take less than a bit for each node."""

MOST = 2**62
"""Sums stay below this, or nothing is said (see `Underway.countable`)."""


@dataclass(frozen=True, slots=True)
class Passed:
    """A pod that was passed and may be on its way to one of these nodes (`at` in `traits`).

    `seat` is the pod of a gang that was passed for its seat.
    """

    uid: str
    amounts: Requests
    traits: Traits
    at: Positions
    seat: ObservedPod | None = None


@dataclass(frozen=True, slots=True)
class _Record:
    """Of a pod with few nodes `few` are their places on the axis; else `bits` has one for each."""

    amounts: Mapping[str, int]
    few: Positions | None
    bits: NDArray[np.uint8] | None

    @classmethod
    def of(cls, amounts: Mapping[str, int], at: Positions, places: int) -> _Record:
        """Of these nodes among so many places."""
        if len(at) <= places // FEW:
            return cls(amounts, at, None)
        mask = np.zeros(places, dtype=np.bool_)
        mask[at] = True
        return cls(amounts, None, np.packbits(mask))

    def at(self, places: int) -> Positions | Mask:
        """Return the nodes, in a form that picks them out of a column of so many places."""
        if self.bits is None:
            assert self.few is not None
            return self.few
        return np.unpackbits(self.bits, count=places).view(np.bool_)


class Underway:
    """Passed pods by uid, kept by one owner; others only ask.

    The axis of masks and sums is the nodes of `traits` and, behind them, those that have gone since
    a pod was passed for them: they may come back.
    """

    def __init__(self) -> None:
        self._traits = Traits(())
        self._names: tuple[str, ...] = ()
        self._records: dict[str, _Record] = {}
        self._sums: dict[str, Amounts] = {}
        self._totals: defaultdict[str, int] = defaultdict(int)
        self._seated: dict[str, str] = {}
        self._seats: defaultdict[str, dict[str, ObservedPod]] = defaultdict(dict)

    @classmethod
    def of(cls, passed: Iterable[Passed]) -> Underway:
        """These pods."""
        made = cls()
        for each in passed:
            made.add(each)
        return made

    # ---- what is asked

    def taken(self, resource: str, traits: Traits) -> Amounts | None:
        """What they take of a resource, by node of `traits`; None for nothing.

        Shared, never to be written, and right until the next pod comes or goes.
        """
        if resource not in self._totals:
            return None
        self._follow(traits)
        if resource not in self._sums:
            if len(self._sums) >= SUMS_KEPT:
                self._sums.clear()
            self._sums[resource] = self._summed(resource)
        return self._sums[resource][: len(traits.names)]

    @property
    def countable(self) -> bool:
        """Whether the sums fit into 64 bits."""
        return all(total < MOST for total in self._totals.values())

    def seats_on(self, node: str) -> Collection[ObservedPod]:
        """The pods of gangs that are on their way to seats there."""
        return self._seats[node].values() if node in self._seats else ()

    # ---- what comes and goes

    def add(self, passed: Passed) -> None:
        """Count a pod; one of the same uid must not be there."""
        if passed.seat is not None:
            node = passed.traits.names[passed.at[0]]
            self._seated[passed.uid] = node
            self._seats[node][passed.uid] = passed.seat
            return
        self._follow(passed.traits)
        amounts = {name: min(amount, LIMIT) for name, amount in passed.amounts if amount > 0}
        record = _Record.of(amounts, passed.at, len(self._names))
        self._records[passed.uid] = record
        self._count(record, +1)

    def remove(self, uid: str) -> None:
        """Count a pod no more; it need not be there."""
        node = self._seated.pop(uid, None)
        if node is not None:
            del self._seats[node][uid]
            if not self._seats[node]:
                del self._seats[node]
        record = self._records.pop(uid, None)
        if record is not None:
            self._count(record, -1)

    def _count(self, record: _Record, sign: int) -> None:
        at = record.at(len(self._names))
        for resource, amount in record.amounts.items():
            self._totals[resource] += sign * amount
            if not self._totals[resource]:
                del self._totals[resource]
                self._sums.pop(resource, None)
            elif resource in self._sums:
                # Beyond 64 bits this wraps around, and back again when the pod goes.
                _add(self._sums[resource], at, sign * amount)

    def _summed(self, resource: str) -> Amounts:
        found = np.zeros(len(self._names), dtype=np.int64)
        for record in self._records.values():
            if resource in record.amounts:
                _add(found, record.at(len(self._names)), record.amounts[resource])
        return found

    # ---- other nodes

    def _follow(self, traits: Traits) -> None:
        """Bring the axis in line with the nodes of now."""
        if traits is self._traits:
            return
        was, gone = len(self._names), self._gone(traits)
        behind = {name: len(traits.names) + at for at, name in enumerate(gone)}
        index = {**traits.index, **behind}
        now = np.array([index.get(name, -1) for name in self._names], dtype=np.intp)
        self._traits, self._names = traits, (*traits.names, *gone)
        for uid, record in self._records.items():
            moved = _Record.of(record.amounts, now[record.at(was)], len(self._names))
            self._records[uid] = moved
        self._sums.clear()

    def _gone(self, traits: Traits) -> list[str]:
        """The nodes that are no more, and that some pod was passed for."""
        anyone = np.zeros(len(self._names), dtype=np.bool_)
        for record in self._records.values():
            anyone[record.at(len(self._names))] = True
        names = (self._names[at] for at in np.flatnonzero(anyone).tolist())
        return [name for name in names if name not in traits.index]


def _add(column: Amounts, at: Positions | Mask, amount: int) -> None:
    """Add an amount at some places, once at each."""
    if at.dtype == np.bool_:
        column += at * np.int64(amount)
    else:
        column[at] += amount
