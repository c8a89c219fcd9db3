"""Tracks the shared counters of a pool: partitions of one GPU draw on the same memory.

Answers to checkAvailableCounters of kube-scheduler's allocator (k8s.io/dynamic-resource-allocation,
structured/internal/incubating) in Kubernetes 1.36 and 1.37.
"""

from collections import Counter
from collections.abc import Sequence

from scheduling.devices.pools import Pool, PoolDevice, PoolKey
from scheduling.model.devices.features import Features
from scheduling.model.devices.in_use import InUse

Counts = Counter[tuple[str, str]]
"""Amounts by set and counter."""


class CountersLeft:
    """What a search leaves of the counters of pools, of whose devices some are in use.

    Devices that cannot be judged count for nothing. Shares of a device consume its counters once.
    """

    def __init__(self, pools: Sequence[Pool], in_use: InUse, features: Features) -> None:
        self._pools, self._in_use = pools, in_use
        self._are_read = features.partitionable_devices
        self._left: dict[PoolKey, Counts] = {}

    def take(self, found: PoolDevice) -> bool:
        """Take what a device consumes; say whether no counter of its pool is below zero then.

        Without the gate devices that consume any are never allocated.
        """
        if not _counts(found):
            return True
        if not self._are_read:
            return False
        left = self._of_pool(found)
        left.subtract(_consumed(found))
        if all(amount >= 0 for amount in left.values()):
            return True
        self.give_back(found)
        return False

    def give_back(self, found: PoolDevice) -> None:
        """Give back what a device took."""
        if _counts(found):
            self._of_pool(found).update(_consumed(found))

    def _of_pool(self, found: PoolDevice) -> Counts:
        key = PoolKey(found.id.driver, found.id.pool)
        if key not in self._left:
            self._left[key] = self._counted(next(each for each in self._pools if each.key == key))
        return self._left[key]

    def _counted(self, pool: Pool) -> Counts:
        """Return what devices in use left; below zero where they took more than there is."""
        left = Counts({(of.name, name): n for of in pool.counters for name, n in of.counters})
        for found in pool.devices:
            if found.id in self._in_use or self._in_use.consumed(found.id) is not None:
                left.subtract(_consumed(found))
        return left


def _counts(found: PoolDevice) -> bool:
    return bool(found.device.consumes_counters) and not found.unsupported


def _consumed(found: PoolDevice) -> Counts:
    return Counts(
        {(s.name, name): n for s in found.device.consumes_counters for name, n in s.counters}
    )
