"""Computes the share that each fair-sharing queue, and each of its namespaces, used over time.

The share of a usage is that of its dominant resource (Dominant Resource Fairness): of the quota of
the queue and those below it, else of what all nodes have, for CPU, memory and devices.
"""

from collections.abc import Iterable, Mapping, Set
from functools import cached_property
from math import floor
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from scheduling.model.amounts import CPU, MEMORY, Amounts, Mask, is_device
from scheduling.model.gang import GangKey, PendingGang
from scheduling.queueing.average_usage import NOW, Average, Held, MovedUsages, QueueUsage
from scheduling.queueing.quota_tree import MOST, QuotaTree, Shares

AGED = -1.0
"""The share of gangs that have waited too long: for them arrival alone counts."""

NONE: Held = MappingProxyType({})


class ByRow(NamedTuple):
    """The shares of all queues of a tree, by row; those of queues without usage do not count."""

    counts: Mask
    of_quota: Shares
    of_cluster: Shares


Whole = Mapping[str, float]
"""What amounts are parts of, by resource; others do not count."""


def share_of(counts: Average, whole: Whole) -> float:
    """Return the dominant share, in whole millionths."""
    parts = (counts.get(each, 0.0) / amount for each, amount in whole.items())
    return float(floor(1e6 * max(parts, default=0.0)))


class FairShares:
    """The usages of the queues with fair sharing, over one tree and one cluster.

    Shares follow from the usages as they are when asked; they are worked out once.
    """

    def __init__(
        self, usages: Mapping[str, QueueUsage], tree: QuotaTree, cluster: Mapping[str, int]
    ) -> None:
        self.usages, self.tree, self.cluster = usages, tree, cluster
        self._wholes: dict[str, Whole] = {}
        self._totals: dict[str, _Total] = {}
        self._moved = MovedUsages(usages)
        self._by_row = self._nothing()

    def __contains__(self, queue: str) -> bool:
        """Say whether a queue has fair sharing."""
        return queue in self.usages

    def of_quota(self, queue: str, more: Held = NONE) -> float:
        """Return the share of its quota that a queue used, with `more` that it holds by now."""
        total = self._total(queue)
        return self._with(queue, total, self.whole(queue), more) if more else total.of_quota

    def of_cluster(self, queue: str, more: Held = NONE) -> float:
        """Return the share of the cluster that a queue used, with `more` that it holds by now."""
        total = self._total(queue)
        return self._with(queue, total, self._whole_cluster, more) if more else total.of_cluster

    def by_row(self) -> ByRow:
        """Return the shares of all queues; only those whose usage moved are worked out anew."""
        moved = self._moved.since_last()
        if len(moved) == len(self.usages):
            self._by_row = self._nothing()  # a usage that was dropped counts no more
        for name in (each for each in moved if each in self.tree.index):
            row, total = self.tree.index[name], self._total(name)
            self._by_row.counts[row] = True
            self._by_row.of_quota[row] = total.of_quota
            self._by_row.of_cluster[row] = total.of_cluster
        return self._by_row

    def _nothing(self) -> ByRow:
        length = len(self.tree.names)
        return ByRow(np.zeros(length, dtype=np.bool_), np.zeros(length), np.zeros(length))

    def of_namespace(self, queue: str, namespace: str) -> float:
        """Return the share of what its queue has that a namespace used."""
        usage = self.usages[queue]
        share = share_of(usage.usage_of(namespace).counts, self.whole(queue))
        return share / usage.weight_of(namespace)

    def starts(
        self, queue: str, gangs: Iterable[tuple[PendingGang, Held]], overdue: Set[GangKey]
    ) -> dict[GangKey, float]:
        """Return the share of its namespace that each gang finds when it is its turn.

        `gangs` are some of a queue with what they ask for, as they would be ordered without usage.
        What those of its namespace before it ask for counts as held; of those that no quota could
        ever cover nothing does.
        """
        usage, whole, most = self.usages[queue], self.whole(queue), self._most(queue)
        counts: dict[str, dict[str, float]] = {}
        found: dict[GangKey, float] = {}
        for gang, asked in gangs:
            name = gang.key.namespace
            if name not in counts:
                counts[name] = usage.usage_of(name).counts
            share = share_of(counts[name], whole) / usage.weight_of(name)
            found[gang.key] = AGED if gang.key in overdue else share
            if all(asked.get(each, 0) <= amount for each, amount in most.items()):
                _charge(counts[name], asked)
        return found

    def whole(self, queue: str) -> Whole:
        """Return what the usage of a queue and its namespaces is a part of."""
        if queue not in self._wholes:
            self._wholes[queue] = {**self._whole_cluster, **self._quota(queue)}
        return self._wholes[queue]

    def _quota(self, queue: str) -> Whole:
        quota = self._limited(queue, self.tree.subtree)
        return {each: amount for each, amount in quota.items() if amount}

    def _most(self, queue: str) -> Whole:
        return self._limited(queue, self.tree.most)

    def _limited(self, queue: str, amounts: Amounts) -> dict[str, int]:
        """Return the row of a queue, of the resources that it is limited in."""
        tree, at = self.tree, self.tree.index.get(queue)
        if at is None:
            return {}
        row = zip(tree.resources, amounts[at].tolist(), tree.limited[at].tolist(), strict=True)
        return {each: amount for each, amount, is_limited in row if is_limited}

    @cached_property
    def _whole_cluster(self) -> Whole:
        counted = (each for each in self.cluster if each in (CPU, MEMORY) or is_device(each))
        return {each: self.cluster[each] for each in counted if self.cluster[each]}

    def _total(self, queue: str) -> "_Total":
        usage, found = self.usages[queue], self._totals.get(queue)
        if found is None or found.version != usage.version:
            counts, weight = usage.total().counts, usage.rules.weight
            of_quota = share_of(counts, self.whole(queue)) / weight
            of_cluster = share_of(counts, self._whole_cluster) / weight
            found = self._totals[queue] = _Total(usage.version, counts, of_quota, of_cluster)
        return found

    def _with(self, queue: str, total: "_Total", whole: Whole, more: Held) -> float:
        counts = dict(total.counts)
        _charge(counts, more)
        return share_of(counts, whole) / self.usages[queue].rules.weight


class _Total(NamedTuple):
    """The usage of a queue as it counts, and the shares that follow from one version of it."""

    version: int
    counts: Average
    of_quota: float
    of_cluster: float


def _charge(counts: dict[str, float], held: Held) -> None:
    """Count what is held from now on."""
    for resource, amount in held.items():
        counts[resource] = min(counts.get(resource, 0.0) + NOW * amount, float(MOST))
