"""Counts what the gangs of each queue hold: pods on nodes, also ending ones, and reserved slots."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from kube.codec.observed_pod import ObservedPod
from reservation.slots import Reserved
from scheduling.model.amounts import Amounts
from scheduling.model.gang import GangKey
from scheduling.queueing.quota_tree import QuotaTree


class Held(NamedTuple):
    """What one gang holds of which queue's quota, by resource; `reserved` is the part of no pod."""

    queue: str
    amounts: Mapping[str, int]
    reserved: Mapping[str, int]


class QuotaLedger:
    """What each gang holds, and the sums by queue for the tree that was asked for last."""

    def __init__(self) -> None:
        self.gangs: dict[GangKey, Held] = {}
        self._tree: QuotaTree | None = None
        self._held: Amounts = np.zeros((0, 0), dtype=np.int64)

    def note(
        self, key: GangKey, queue: str, pods: Iterable[ObservedPod], reserved: Reserved
    ) -> bool:
        """Count a gang anew; say whether its queue has more to give than before.

        `pods` are all pods of Ray clusters of this name, those of an earlier one as well.
        """
        before = self.gangs.get(key)
        amounts, kept = _amounts(pods), _reserved(reserved)
        now = Held(queue, amounts + kept, kept) if amounts or kept else None
        if now == before:
            return False
        self._add(before, -1)
        self._add(now, +1)
        if now is None:
            self.gangs.pop(key, None)
        else:
            self.gangs[key] = now
        return before is not None and (now is None or not _covers(now, before))

    def queue_of(self, key: GangKey) -> str | None:
        """Return whose quota a gang holds; None of one that holds nothing."""
        held = self.gangs.get(key)
        return None if held is None else held.queue

    def held(self, tree: QuotaTree) -> Amounts:
        """Return what the gangs of each queue hold: queues x resources of the tree."""
        if self._tree is not tree:
            self._tree = tree
            self._held = np.zeros((len(tree.names), len(tree.resources)), dtype=np.int64)
            for each in self.gangs.values():
                self._add(each, +1)
        return self._held

    def _add(self, held: Held | None, sign: int) -> None:
        tree = self._tree
        if held is not None and tree is not None and held.queue in tree.index:
            self._held[tree.index[held.queue]] += sign * tree.requests(held.amounts)


def _amounts(pods: Iterable[ObservedPod]) -> Counter[str]:
    total: Counter[str] = Counter()
    for pod in pods:
        if pod.holds:
            total.update(dict(pod.used))
    return total


def _reserved(reserved: Reserved) -> Counter[str]:
    total: Counter[str] = Counter()
    for (_, requests), pods in reserved.room.items():
        for resource, amount in requests:
            total[resource] += amount * pods
    return total


def _covers(now: Held, before: Held) -> bool:
    same = now.queue == before.queue
    return same and all(now.amounts.get(name, 0) >= had for name, had in before.amounts.items())
