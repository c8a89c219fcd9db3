"""Keeps the ledger of room that gangs reserve on nodes, beside what bound pods use."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from coordinator.cluster.cache import ClusterCache
from coordinator.gang.view import GangView
from kube.codec.observed_pod import ObservedPod
from reservation.slots import Reserved, reserved
from scheduling.model.gang import GangKey
from scheduling.model.placement import Placement

NO_PLACEMENT = Placement()


class ReservedRoom:
    """What each gang reserves; the sums are in the cache, where decisions read them."""

    def __init__(self, cache: ClusterCache) -> None:
        self.holders: defaultdict[str, set[GangKey]] = defaultdict(set)
        """Node -> the gangs that reserve room on it."""
        self._cache = cache

    def update(self, view: GangView, pods: Iterable[ObservedPod]) -> bool:
        """Bring what a gang reserves in line with its placement and its pods."""
        return self._hold(view, reserved(view.reservation.placement or NO_PLACEMENT, pods))

    def release(self, view: GangView) -> bool:
        """Reserve nothing for a gang any more."""
        return self._hold(view, Reserved())

    def use(self, view: GangView, pod: ObservedPod) -> bool:
        """Turn the reservation of one pod into use; False where all must be looked at for that."""
        reserved_now = view.reservation.reserved
        if not reserved_now.bound(pod):
            return False
        self._cache.reserve(view.key, [(pod.holds, pod.used, -1)])
        if not reserved_now.keeps(pod.holds):
            self._leave(pod.holds, view.key)
        return True

    def gangs_on(self, node: str) -> set[GangKey]:
        """The gangs that reserve room on a node."""
        return self.holders.get(node, set())

    def _hold(self, view: GangView, asked: Reserved) -> bool:
        """Reserve `asked` in place of what was reserved; say whether room came free."""
        before, room = view.reservation.reserved.room, asked.room
        view.reservation.reserved = asked
        if room == before:
            return False
        change = Counter(room)
        change.subtract(before)
        taken = ((node, requests, n) for (node, requests), n in change.items() if n)
        self._cache.reserve(view.key, taken)
        for node in {node for node, _ in before} - {node for node, _ in room}:
            self._leave(node, view.key)
        for node, _ in room:
            self.holders[node].add(view.key)
        return any(n < 0 for n in change.values())

    def _leave(self, node: str, gang: GangKey) -> None:
        """Note that a gang reserves nothing on a node any more."""
        self.holders[node].discard(gang)
        if not self.holders[node]:
            del self.holders[node]
