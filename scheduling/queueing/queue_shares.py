"""The shares by which the queues of one cycle are ordered, also while gangs are admitted.

A queue that its own quota covers goes by the share of that quota, a borrower by that of the
cluster: by what is used at the moment, or with fair sharing by what was used over time.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping

import numpy as np

from scheduling.model.amounts import Amounts, Positions
from scheduling.queueing.fair_shares import FairShares
from scheduling.queueing.quota_tree import QuotaTree, Rows, Shares, millionths


class QueueShares:
    """The shares of the queues of a tree; what is held and used is told again as it changes."""

    def __init__(
        self,
        tree: QuotaTree,
        cluster: Mapping[str, int],
        used: Amounts,
        fair: FairShares | None = None,
    ) -> None:
        self._tree, self._fair = tree, fair
        self._cluster = np.maximum(1, tree.requests(cluster))
        self._of_quota = tree.shares(used)
        self._of_cluster: dict[int, float] = {}
        self._charged: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def note_use(self, rows: Rows, used: Amounts) -> None:
        """Take in what some queues use by now."""
        self._of_quota[rows] = self._tree.shares(used, rows)

    def note_held(self) -> None:
        """Take in that queues hold something else."""
        self._of_cluster.clear()

    def charge(self, queue: str, amounts: Mapping[str, int]) -> None:
        """Count an admission as usage, where usage counts."""
        if self._fair is not None and queue in self._fair:
            self._charged[queue].update(amounts)

    def of(self, row: int, level: int, held: Amounts, used: Amounts) -> float:
        """Return the share that orders a queue whose next gang borrows up to a level."""
        name = self._tree.names[row]
        if self._fair is not None and name in self._fair:
            return self._over_time(self._fair, name, level)
        if not level:
            return float(self._of_quota[row])
        if row not in self._of_cluster:
            self._of_cluster[row] = float(self._parts(np.array([row]), held, used)[0])
        return self._of_cluster[row]

    def of_all(self, rows: Positions, levels: Positions, held: Amounts, used: Amounts) -> Shares:
        """Return the same of many queues at once."""
        shares = np.where(levels > 0, self._parts(rows, held, used), self._of_quota[rows])
        return shares if self._fair is None else self._with_usage(self._fair, shares, rows, levels)

    def _with_usage(
        self, fair: FairShares, shares: Shares, rows: Positions, levels: Positions
    ) -> Shares:
        """Put usage over time in the place of the shares of the queues where it counts."""
        by_row = fair.by_row()
        over_time = np.where(levels > 0, by_row.of_cluster[rows], by_row.of_quota[rows])
        found = np.where(by_row.counts[rows], over_time, shares)
        charged = [self._tree.index[name] for name in self._charged]
        for at in np.flatnonzero(np.isin(rows, charged)).tolist():
            found[at] = self._over_time(fair, self._tree.names[int(rows[at])], int(levels[at]))
        return found

    def _over_time(self, fair: FairShares, name: str, level: int) -> float:
        more: Mapping[str, int] = self._charged.get(name, {})
        return fair.of_cluster(name, more) if level else fair.of_quota(name, more)

    def _parts(self, rows: Positions, held: Amounts, used: Amounts) -> Shares:
        """Return the dominant shares of the cluster that queues hold."""
        holds = np.maximum(held[rows], used[rows])
        found: Shares = millionths(holds, self._cluster).max(axis=1, initial=0)
        return found
