"""Which of the volumes made by hand may the gangs of a cycle still count on?

A gang is placed by what `static` counts as free, less what pods on their way will take. Claims that
ask differently for volumes of one class, and for some of the same ones, could take each other's: in
one gang that is not supported, and of two gangs one waits for the other.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np

from scheduling.attach import counted
from scheduling.columns import LIMIT, Amounts, Columns, Traits
from scheduling.static import PREFIX, Lot, Terms, Want, Wanted, own_size, stem_of
from scheduling.storage import StorageTable

Claims = Counter[tuple[Want, int]]
"""Numbers of claims by what they want and their size."""


class Where(NamedTuple):
    """From where volumes can be had; where it is not certain, other claims may take them."""

    terms: Terms
    is_certain: bool = True


Held = Mapping[str, Mapping[str, int]]
"""Amounts by made-up resource and node."""


MOST_ROWS = 32
"""How many kinds of claims, by what they want and their size, are looked at in a cycle."""

MOST_OF_GANG = 8
"""How many of them one gang may add."""


class Stock:
    """The free volumes at one moment of a cycle, and what is promised of them.

    `reserved` says what is promised of the resources whose names begin in one way.
    """

    def __init__(self, table: StorageTable, reserved: Callable[[str], Held]) -> None:
        self._table, self._reserved = table, reserved
        self._traits = Traits(())
        self._sizes: dict[Want, set[int]] = {}
        self._given: Claims = Counter()

    # ---- room

    def rows(
        self, columns: Columns, gangs: Iterable[Iterable[Wanted]]
    ) -> dict[str, tuple[Amounts, Amounts]]:
        """Return the rows that the claims of gangs need: what there is, and what is taken.

        Each kind of claim costs a look at all nodes, so there are bounds: of a gang that asks in
        too many ways, or comes when too many are asked for already, nothing is looked at.
        """
        self._traits, self._sizes = columns.traits, {}
        rows = 0
        for claims in gangs:
            new = {(each.want, each.size) for each in claims if not self.knows(each)}
            if len(new) <= MOST_OF_GANG and rows + len(new) <= MOST_ROWS:
                rows += len(new)
                for want, size in new:
                    self._sizes.setdefault(want, set()).add(size)
        for want, sizes in self._sizes.items():
            sizes.update(sorted(self._promised_sizes(want))[:MOST_OF_GANG])
        return dict(row for want in self._sizes for row in self._rows_of(want, columns))

    def knows(self, wanted: Wanted) -> bool:
        """Say whether there is a row for a claim."""
        return wanted.size in self._sizes.get(wanted.want, ())

    def _rows_of(
        self, want: Want, columns: Columns
    ) -> Iterator[tuple[str, tuple[Amounts, Amounts]]]:
        lot = self._lot(want)
        plenty = np.full(len(columns.names), LIMIT)
        for size in sorted(self._sizes[want]):
            _, taken = counted(columns, {}, self._taken(want, size))
            yield want.row(size), (lot.counts(size) if lot.is_local else plenty, taken)
            yield want.own_row(size), (plenty, np.zeros_like(plenty))

    def _taken(self, want: Want, size: int) -> Counter[str]:
        """Count per node what claims of at least the size will take; no more can be said of others.

        A claim of a pod that is there and not known to be bound has its volume, whichever it is.
        """
        taken = Counter(self._table.taking().get(want.storage_class, {}))
        for row, nodes in self._promised[want.storage_class].items():
            if stem_of(row) != want.stem:
                taken.update(dict.fromkeys(nodes, LIMIT))
            elif self._rounded(want, own_size(row) or 0) >= size:
                taken.update(nodes)
        return taken

    @cached_property
    def _promised(self) -> Mapping[str, Held]:
        """Return by storage class the claims that are promised a volume, as rows of own sizes."""
        found: defaultdict[str, dict[str, Mapping[str, int]]] = defaultdict(dict)
        for row, nodes in self._reserved(PREFIX).items():
            if own_size(row) is not None:
                found[row.split(":")[1]][row] = nodes
        return found

    def _rounded(self, want: Want, size: int) -> int:
        """Return a size that is counted for one that is not: the next above, to be safe."""
        return min((each for each in self._sizes[want] if each >= size), default=size)

    def _promised_sizes(self, want: Want) -> Iterator[int]:
        """Yield the sizes of claims on their way that may take volumes from larger ones."""
        largest = max(self._sizes[want])
        for row in self._promised[want.storage_class]:
            size = own_size(row) or 0
            if stem_of(row) == want.stem and size < largest:
                yield size

    def _lot(self, want: Want) -> Lot:
        return self._table.lot(want, self._traits)

    # ---- claims

    def requests(self, wanted: Iterable[Wanted]) -> Counter[str]:
        """Return what a pod with these claims takes."""
        taken: Counter[str] = Counter()
        for each in wanted:
            taken[each.want.own_row(each.size)] += 1
            for size in self._sizes.get(each.want, ()):
                if size <= each.size:
                    taken[each.want.row(size)] += 1
        return taken

    def unlike(self, one: Want, others: Iterable[Want]) -> bool:
        """Say whether one of the others asks differently for some of the same volumes."""
        mine = self._lot(one).pools
        return any(one != each and mine & self._lot(each).pools for each in others)

    def is_given(self, want: Want) -> bool:
        """Say whether this cycle has given volumes to claims that ask differently for them."""
        return self.unlike(want, (each for each, _ in self._given))

    def moves(self, want: Want) -> bool:
        """Say whether some of the volumes may be reached from elsewhere once they are bound."""
        return any(pool.moves for pool in self._lot(want).pools)

    def where(self, wanted: Wanted, claims: Claims) -> Where:
        """Return from where a volume is found, rows left aside, if `claims` of the gang go too.

        Where no node has volumes of its own any claim may take any volume. If all of those are
        reached from the same nodes, it is with them as with the volumes of one node.
        """
        lot = self._lot(wanted.want)
        if lot.is_local:
            return Where(None)
        sizes, strangers = self._rivals(wanted.want, claims), self._strangers(wanted.want)
        if not strangers and len(lot.wide) < 2:
            found = all(lot.wide_count(size) >= _from(sizes, size) for size in sizes)
            return Where(lot.reached(wanted.size, 1) if found else ())
        terms = lot.reached(wanted.size, sizes.total() + strangers)
        return Where(terms, is_certain=terms != () or not lot.wide_count(wanted.size))

    def _rivals(self, want: Want, claims: Claims) -> Counter[int]:
        """Count by size the claims with the same want: these, and those that are on their way."""
        given = (pair for some in (claims, self._given) for pair in some.items())
        sizes: Counter[int] = Counter()
        for (each, size), count in given:
            sizes[size] += count if each == want else 0
        for row, nodes in self._promised[want.storage_class].items():
            if stem_of(row) == want.stem:
                sizes[own_size(row) or 0] += sum(nodes.values())
        return +sizes

    def _strangers(self, want: Want) -> int:
        """Count the claims on their way of which it is not known what they may take."""
        others = (
            sum(nodes.values())
            for row, nodes in self._promised[want.storage_class].items()
            if stem_of(row) != want.stem
        )
        return sum(others) + sum(self._table.taking().get(want.storage_class, {}).values())

    def give(self, claims: Claims) -> None:
        """Count the claims of a gang that this cycle gives room to."""
        self._given.update(claims)


def _from(sizes: Counter[int], least: int) -> int:
    return sum(count for size, count in sizes.items() if size >= least)
