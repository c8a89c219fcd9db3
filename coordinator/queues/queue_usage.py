"""Counts the usage of each queue: pods on nodes, also ending ones, and reserved slots."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain
from types import MappingProxyType
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


NOTHING_HELD: Mapping[str, Held] = MappingProxyType({})


class QuotaLedger:
    """What each gang holds, and the sums by queue for the tree that was asked for last.

    `gangs` tells RayClusters of one name apart by uid: ending pods of an earlier one stay with the
    queue that it was admitted in. `namespaces` has the sums by queue and namespace, `moved` the
    queues and namespaces of which these changed since that was emptied.
    """

    def __init__(self) -> None:
        self.gangs: dict[GangKey, dict[str, Held]] = {}
        self.namespaces: defaultdict[str, dict[str, Counter[str]]] = defaultdict(dict)
        self.moved: set[tuple[str, str]] = set()
        self._tree: QuotaTree | None = None
        self._held: Amounts = np.zeros((0, 0), dtype=np.int64)

    def note(
        self, key: GangKey, uid: str, queue: str, pods: Iterable[ObservedPod], reserved: Reserved
    ) -> bool:
        """Count the gang of one RayCluster anew; say whether its queue has more to give."""
        before = self.of(key).get(uid)
        amounts, kept = _amounts(pods), _reserved(reserved)
        now = Held(queue, amounts + kept, kept) if amounts or kept else None
        if now == before:
            return False
        self._add(before, -1)
        self._add(now, +1)
        self._keep(key, uid, now)
        self._sum_up(key.namespace, before, now)
        return before is not None and (now is None or not _covers(now, before))

    def of(self, key: GangKey) -> Mapping[str, Held]:
        """Return what RayClusters of this name hold, by their uid."""
        return self.gangs.get(key, NOTHING_HELD)

    def queue_of(self, key: GangKey, uid: str) -> str | None:
        """Return whose quota a gang holds; None of one that holds nothing."""
        held = self.of(key).get(uid)
        return None if held is None else held.queue

    def held(self, tree: QuotaTree) -> Amounts:
        """Return what the gangs of each queue hold: queues x resources of the tree."""
        if self._tree is not tree:
            self._tree = tree
            self._held = np.zeros((len(tree.names), len(tree.resources)), dtype=np.int64)
            for each in chain.from_iterable(by_uid.values() for by_uid in self.gangs.values()):
                self._add(each, +1)
        return self._held

    def _sum_up(self, namespace: str, before: Held | None, now: Held | None) -> None:
        for held, sign in ((before, -1), (now, +1)):
            if held is not None:
                of_queue = self.namespaces[held.queue]
                sums = of_queue.setdefault(namespace, Counter())
                for resource, amount in held.amounts.items():
                    sums[resource] += sign * amount
                if not any(sums.values()):
                    del of_queue[namespace]
                self.moved.add((held.queue, namespace))

    def _keep(self, key: GangKey, uid: str, held: Held | None) -> None:
        if held is not None:
            self.gangs.setdefault(key, {})[uid] = held
            return
        left = self.gangs.get(key, {})
        left.pop(uid, None)
        if not left:
            self.gangs.pop(key, None)

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
