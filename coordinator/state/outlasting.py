"""Keeps the room of pods that outlast their RayCluster and may still be bound.

The garbage collector takes seconds for the pods of a RayCluster that is gone, and orphaned ones
stay. Those that were released go to their node all the same, and a release that is under way may
arrive. Their gang has no view any more, which would reserve their room.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from coordinator.cluster.cache import ClusterCache
from coordinator.gang.view import GangView
from kube.codec.observed_pod import ObservedPod
from reservation.slots import slot_of, take_slot
from scheduling.model.amounts import Requests
from scheduling.model.gang import GangKey


@dataclass(frozen=True, slots=True)
class _Stay:
    """Room that is kept for one pod, until it is over (monotonic seconds) at the latest."""

    name: str
    uid: str
    node: str
    requests: Requests
    until: float


class Outlasting:
    """The room of such pods by gang; the sums are in the cache, where decisions read them."""

    def __init__(self, cache: ClusterCache) -> None:
        self._cache = cache
        self._stays: dict[GangKey, list[_Stay]] = {}

    def keep(self, view: GangView, until: float) -> None:
        """Keep what a view reserves for pods on their way; called before that is given back.

        What is not bound by then does not get to it any more, for others may be placed there.
        """
        pods = self._cache.members(view.key, view.cluster_uid)
        stays = [
            _Stay(pod.name, pod.uid, node, pod.used, until)
            for pod, node in _on_their_way(view, pods)
        ]
        if stays:
            self._stays.setdefault(view.key, []).extend(stays)
            self._cache.reserve(view.key, [(each.node, each.requests, 1) for each in stays])

    def look(self, key: GangKey, now: float) -> bool:
        """Keep no room any more for pods that are bound or gone; say whether it came free.

        A bound pod uses its room itself.
        """
        left = [each for each in self._stays.get(key, ()) if self._lasts(key, each, now)]
        over = [each for each in self._stays.get(key, ()) if each not in left]
        self._end(key, over)
        if left:
            self._stays[key] = left
        return bool(over)

    def due_at(self, key: GangKey) -> float | None:
        """Return when time alone ends one of them (monotonic seconds)."""
        return min((each.until for each in self._stays.get(key, ())), default=None)

    def forget(self) -> None:
        """Keep nothing for any pod."""
        for key, stays in list(self._stays.items()):
            self._end(key, stays)

    def _end(self, key: GangKey, over: Iterable[_Stay]) -> None:
        self._cache.reserve(key, [(each.node, each.requests, -1) for each in over])
        self._stays.pop(key, None)

    def _lasts(self, key: GangKey, stay: _Stay, now: float) -> bool:
        pod = self._cache.pods.get((key.namespace, stay.name))
        there = pod is not None and pod.uid == stay.uid and pod.alive
        return there and pod is not None and not pod.expected_on and now < stay.until


def _on_their_way(view: GangView, pods: Iterable[ObservedPod]) -> Iterator[tuple[ObservedPod, str]]:
    """The pods that take a slot of the view soon, and its node; nominated ones count already."""
    writes, slots = view.pod_writes, view.reservation.reserved.slots.copy()
    asked = writes.inflight | writes.unsure
    for pod in pods:
        sent = writes.targets.get(pod.uid, "") if pod.uid in asked else ""
        node = pod.settled_on or sent
        if node and pod.alive and not pod.expected_on and take_slot(slots, slot_of(pod, node)):
            yield pod, node
