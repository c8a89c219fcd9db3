"""Indexes holders of capacity and how much each has on which nodes, kept from events.

A holder is what a user would ask about: a Ray cluster, another controller, or a namespace for its
pods without one. The table is kept from events by one owner, summed up per holder and node; an
answer costs a look at those sums, not at pods. It only explains, so what is absurdly large is cut
off, and of more than `MOST_RESOURCES` resources in use at a time the later ones are left out.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, TypeVar

import numpy as np

from scheduling.model.amounts import LIMIT, Amounts, Mask, exact_sum
from scheduling.model.gang import GangKey
from scheduling.model.holder import Held, Holder, Share, gang_holder
from scheduling.model.placement import Placement
from scheduling.model.shape.host_ports import is_port
from scheduling.state.node_snapshot import NodeSnapshot

MOST_RESOURCES = 64
"""Nodes have some ten; the names of others that pods ask for can be invented."""

K = TypeVar("K", bound=Hashable)


class _Ids(Generic[K]):
    """Small numbers for keys, for as long as they are in use; the numbers of others are reused."""

    def __init__(self) -> None:
        self.of: dict[K, int] = {}
        self.keys: list[K | None] = []
        self._uses: list[int] = []
        self._free: list[int] = []

    def use(self, key: K, times: int) -> int:
        """Count uses of a key, or take them back where negative, and return its number."""
        at = self.of.get(key)
        if at is None:
            at = self.of[key] = self._free.pop() if self._free else len(self.keys)
            if at == len(self.keys):
                self.keys.append(None)
                self._uses.append(0)
            self.keys[at] = key
        self._uses[at] += times
        if not self._uses[at]:
            del self.of[key]
            self.keys[at] = None
            self._free.append(at)
        return at


class HolderIndex:
    """The sums, one row for each pair of a holder and a node."""

    def __init__(self) -> None:
        self._rows: _Ids[tuple[int, int]] = _Ids()
        self._holders: _Ids[Holder] = _Ids()
        self._nodes: _Ids[str] = _Ids()
        self._resources: _Ids[str] = _Ids()
        self._rowless: Counter[str] = Counter()
        self._pairs = np.zeros((2, 64), dtype=np.intp)
        self._sums = np.zeros((8, 64), dtype=np.int64)

    def use(self, holder: Holder, node: str, amounts: Iterable[tuple[str, int]], pods: int) -> None:
        """Add pods of a holder on a node, or take them back where negative."""
        pair = self._holders.use(holder, pods), self._nodes.use(node, pods)
        known = pair in self._rows.of
        row = self._rows.use(pair, pods)
        if not known:
            self._begin(row, pair)
        for resource, amount in amounts:
            if is_port(resource):
                continue  # holders of ports are never asked for, and a pod can name thousands
            if self._has_row(resource):
                at = self._row_of(resource, pods)
                self._sums[at, row] += pods * min(amount, LIMIT)
            else:
                self._do_without(resource, pods)

    def _begin(self, row: int, pair: tuple[int, int]) -> None:
        if row >= self._sums.shape[1]:
            self._pairs = np.pad(self._pairs, ((0, 0), (0, row)))
            self._sums = np.pad(self._sums, ((0, 0), (0, row)))
        self._pairs[:, row] = pair

    def _has_row(self, resource: str) -> bool:
        """Say whether it is summed up; which began without is not, for as long as it is in use."""
        rows = self._resources.of
        free = len(rows) < MOST_RESOURCES and resource not in self._rowless
        return free or resource in rows

    def _row_of(self, resource: str, pods: int) -> int:
        at = self._resources.use(resource, pods)
        if at >= len(self._sums):
            self._sums = np.pad(self._sums, ((0, at), (0, 0)))
        return at

    def _do_without(self, resource: str, pods: int) -> None:
        self._rowless[resource] += pods
        if not self._rowless[resource]:
            del self._rowless[resource]
        if not self._rowless:
            self._rowless = Counter()  # a table that was large does not shrink by itself

    def held(self, resource: str, nodes: Sequence[str]) -> "Sums":
        """Return what each holder has of a resource on the nodes."""
        at, rows = self._resources.of.get(resource), len(self._rows.keys)
        if at is None or not self._nodes.keys:
            return Sums(self._holders, np.zeros(0, dtype=np.int64))
        wanted = np.zeros(len(self._nodes.keys) + 1, dtype=np.bool_)
        of = self._nodes.of
        wanted[[of.get(node, -1) for node in nodes]] = True
        wanted[-1] = False  # the place of nodes without pods
        holders, where = self._pairs[:, :rows]
        sums = np.bincount(holders, weights=self._sums[at, :rows] * wanted[where])
        return Sums(self._holders, sums.astype(np.int64))


class Sums:
    """Amounts per holder; to be read before the table changes."""

    def __init__(self, holders: _Ids[Holder], amounts: Amounts) -> None:
        self._of, self._keys = holders.of, holders.keys
        self._amounts = amounts.copy()
        self._others: Counter[Holder] = Counter()

    def add(self, holder: Holder, amount: int) -> None:
        """Count an amount beside what the table has."""
        at = self._of.get(holder, len(self._amounts))
        if at < len(self._amounts):
            self._amounts[at] += amount
        else:
            self._others[holder] += amount

    def largest(self, most: int) -> tuple[Share, ...]:
        """Return the largest shares, equal ones in the order of their names."""
        amounts = self._amounts
        least = np.partition(amounts, -most)[-most] if len(amounts) > most else 0
        found = np.flatnonzero((amounts >= least) & (amounts > 0)).tolist()
        shares = [Share(holder, int(amounts[at])) for at in found if (holder := self._keys[at])]
        shares += [Share(holder, amount) for holder, amount in self._others.items()]
        return tuple(sorted(shares, key=lambda share: (-share.amount, share.holder))[:most])

    def __len__(self) -> int:
        """Return how many hold anything."""
        return int(np.count_nonzero(self._amounts)) + len(self._others)

    def total(self) -> int:
        """Return what all hold together."""
        return exact_sum(self._amounts) + self._others.total()


class Holders:
    """The index at one moment of a cycle, with what the cycle has assumed beside it."""

    def __init__(self, table: HolderIndex) -> None:
        self._table = table
        self._assumed: list[tuple[Holder, Placement]] = []

    def assume(self, gang: GangKey, placement: Placement) -> None:
        """Count what this cycle gives to a gang."""
        self._assumed.append((gang_holder(gang), placement))

    def of(self, resource: str, mask: Mask, columns: NodeSnapshot, most: int) -> Held:
        """Return the holders of the most of a resource on some nodes, ties broken by name."""
        nodes = [columns.names[at] for at in np.flatnonzero(mask).tolist()]
        sums = self._table.held(resource, nodes)
        for holder, amount in self._given(resource, frozenset(nodes)):
            sums.add(holder, amount)
        total = exact_sum(columns.allocatable[columns.row[resource]][mask])
        shares = sums.largest(most)
        rest = sums.total() - sum(share.amount for share in shares)
        return Held(total, shares, rest, len(sums) - len(shares))

    def _given(self, resource: str, nodes: frozenset[str]) -> Iterable[tuple[Holder, int]]:
        for holder, placement in self._assumed:
            for each in placement.assignments:
                amount = dict(each.requests).get(resource, 0)
                pods = sum(count for node, count in each.nodes if node in nodes)
                if amount and pods:
                    yield holder, amount * pods
