"""Keeps reservations for released pods whose RayCluster is gone.

The garbage collector takes seconds to delete the pods of such a RayCluster, and orphaned pods stay.
Released pods go to their node all the same, and a release that is under way may arrive. Their gang
has no view any more, which would reserve their room.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from coordinator.cluster.cache import ClusterCache
from coordinator.gang.view import GangView
from coordinator.record.spec import is_of
from coordinator.state.room.reserved_room import ReservedRoom
from kube.codec.observed_pod import ObservedPod
from kube.objects.gang import Gang
from reservation.slots import Reserved, is_released, slot_of, take_slot
from scheduling.model.amounts import Requests
from scheduling.model.gang import GangKey

Room = Counter[tuple[str, Requests]]
"""(Node, requests) -> pods."""


@dataclass(frozen=True, slots=True)
class _Stay:
    """Room that is kept for one pod, until it is over (monotonic seconds) at the latest."""

    pod: tuple[str, str]
    uid: str
    cluster_uid: str
    node: str
    requests: Requests
    until: float


class OrphanReservations:
    """The room of such pods by gang; the sums are in the cache, where decisions read them."""

    def __init__(self, cache: ClusterCache, room: ReservedRoom) -> None:
        self._cache = cache
        self._reserve = room.reserve
        self._stays: dict[GangKey, list[_Stay]] = {}
        self._room: dict[GangKey, Room] = {}
        """What of it is in the sums."""

    def keep(self, view: GangView, until: float) -> None:
        """Keep what a view reserves for pods on their way; called before that is given back.

        What is not bound by then does not get to it any more, for others may be placed there.
        """
        pods = self._cache.members(view.key, view.cluster_uid)
        on_their_way = _on_their_way(view, pods)
        self._add(view.key, [_stay(pod, node, until) for pod, node in on_their_way])

    def adopt(self, until: float) -> None:
        """Keep the room of those that an earlier leader released; called as a term begins.

        Of none without a Gang with a placement: whoever may make pods can make them look released.
        """
        for key, gang in self._cache.gangs.items():
            if gang.status.placement is not None:
                pods = self._left_of(key, gang)
                self._add(key, [_stay(pod, pod.settled_on, until) for pod in pods])

    def drop(self, key: GangKey, cluster_uid: str) -> None:
        """Keep nothing for the pods of a RayCluster that is there: its view reserves their room."""
        if key in self._stays:
            stays = self._stays[key]
            self._stays[key] = [each for each in stays if each.cluster_uid != cluster_uid]
            self._count(key)

    def look(self, key: GangKey, now: float) -> bool:
        """Keep no room any more for pods that are bound or gone; say whether it came free.

        A bound pod uses its room itself.
        """
        if key not in self._stays:
            return False
        self._stays[key] = [each for each in self._stays[key] if self._lasts(each, now)]
        return self._count(key)

    def reserved(self, key: GangKey, cluster_uid: str) -> Reserved:
        """Return what the pods of a RayCluster that is gone take of quota without being bound."""
        mine = (each for each in self._stays.get(key, ()) if each.cluster_uid == cluster_uid)
        return Reserved(room=Counter((each.node, each.requests) for each in mine))

    def due_at(self, key: GangKey) -> float | None:
        """Return when time alone ends one of them (monotonic seconds)."""
        return min((each.until for each in self._stays.get(key, ())), default=None)

    def forget(self) -> None:
        """Keep nothing for any pod."""
        for key in list(self._stays):
            self._stays[key] = []
            self._count(key)

    def _left_of(self, key: GangKey, gang: Gang) -> Iterator[ObservedPod]:
        """The pods on their way of the RayCluster of a Gang, where that is gone."""
        cluster = self._cache.sources.get(key)
        if cluster is not None and is_of(gang, cluster.metadata.uid):
            return
        for pod in self._cache.pods_of(key):
            mine = pod.member is not None and is_of(gang, pod.member.cluster_uid)
            if mine and is_released(pod) and pod.alive and not pod.holds:
                yield pod

    def _add(self, key: GangKey, stays: list[_Stay]) -> None:
        if stays:
            self._stays[key] = self._stays.get(key, []) + stays
            self._count(key)

    def _count(self, key: GangKey) -> bool:
        """Bring the sums in line; say whether room came free.

        A pod that is nominated counts itself, but only for as long as it is.
        """
        stays = self._stays[key]
        room = Room((each.node, each.requests) for each in stays if not self._is_nominated(each))
        change = Room(room)
        change.subtract(self._room.pop(key, Room()))
        self._reserve(key, [(*place, n) for place, n in change.items() if n])
        if stays:
            self._room[key] = room
        else:
            del self._stays[key]
        return any(n < 0 for n in change.values())

    def _lasts(self, stay: _Stay, now: float) -> bool:
        pod = self._cache.pods.get(stay.pod)
        if pod is None or pod.uid != stay.uid:
            return False
        return pod.alive and not pod.holds and now < stay.until

    def _is_nominated(self, stay: _Stay) -> bool:
        pod = self._cache.pods.get(stay.pod)
        return pod is not None and bool(pod.nominated_to)


def _stay(pod: ObservedPod, node: str, until: float) -> _Stay:
    cluster_uid = pod.member.cluster_uid if pod.member is not None else ""
    return _Stay(pod.key, pod.uid, cluster_uid, node, pod.used, until)


def _on_their_way(view: GangView, pods: Iterable[ObservedPod]) -> Iterator[tuple[ObservedPod, str]]:
    """The pods that take a slot of the view soon, and its node."""
    writes, slots = view.pod_writes, view.reservation.reserved.slots.copy()
    asked = writes.inflight | writes.unsure
    for pod in pods:
        sent = writes.targets.get(pod.uid, "") if pod.uid in asked else ""
        node = pod.settled_on or sent
        if node and pod.alive and not pod.holds and take_slot(slots, slot_of(pod, node)):
            yield pod, node
