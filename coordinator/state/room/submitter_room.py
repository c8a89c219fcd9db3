"""Reserves room for pods that submit RayJobs, from admission until they are bound.

kube-scheduler chooses the node of such a pod, and other pods without a gate may take the room: then
no reservation is left. No record holds the reservation: a new leader looks for room anew.
"""

from dataclasses import dataclass

from coordinator.cluster.cache import ClusterCache
from coordinator.state.room.reserved_room import ReservedRoom
from kube.codec.observed_pod import ObservedPod
from kube.foreseen.submitter import RUNNING, TO_COME
from kube.objects.ray import RayJob
from scheduling.model.amounts import Requests
from scheduling.model.gang import GangKey
from scheduling.model.holder import Holder
from scheduling.model.placement import Assignment


@dataclass(slots=True)
class _Stay:
    """Room for the submitter of a RayJob; `until` (monotonic seconds) once its Job was made."""

    job: str
    node: str
    requests: Requests
    until: float | None = None


class SubmitterRoom:
    """The room by gang; the sums are in the cache, where decisions read them."""

    def __init__(self, cache: ClusterCache, room: ReservedRoom) -> None:
        self._cache = cache
        self._reserve = room.reserve
        self._stays: dict[GangKey, _Stay] = {}
        self._gangs: dict[Holder, GangKey] = {}
        self._bound: set[GangKey] = set()

    def keep(self, key: GangKey, found: Assignment | None) -> None:
        """Keep the room that was found for the submitter of a gang; nothing where none was."""
        job = self._job_of(key)
        if found is None or job is None:
            return
        self._end(key)
        ((node, _),) = found.nodes
        stay = self._stays[key] = _Stay(job.metadata.name, node, found.requests)
        self._gangs[_holder(key, stay)] = key
        self._reserve(key, [(node, stay.requests, 1)])

    def is_wanted(self, key: GangKey) -> bool:
        """Say whether a gang that has its place has no room for a submitter that is to come."""
        job = self._job_of(key)
        if key in self._stays or key in self._bound or job is None:
            return False
        return job.status.job_deployment_status in TO_COME

    def seen(self, pod: ObservedPod) -> bool:
        """Keep nothing more for a submitter that is bound; say whether room came free."""
        key = self._gangs.get(pod.holder) if self._gangs and pod.node else None
        if key is None or pod.terminating:
            return False
        self._bound.add(key)
        return self._end(key)

    def look(self, key: GangKey, now: float, patience: float) -> bool:
        """Keep nothing more where no submitter comes, or none for long; say if room came free.

        Before its Job is made it may take for ever, and the gang holds its own room as long.
        """
        stay, job = self._stays.get(key), self._job_of(key)
        if stay is None:
            return False
        state = job.status.job_deployment_status if job is not None else None
        if state == RUNNING and stay.until is None:
            stay.until = now + patience
        is_late = stay.until is not None and now >= stay.until
        return (is_late or state not in (*TO_COME, RUNNING)) and self._end(key)

    def give_way(self) -> bool:
        """Keep nothing on nodes that are gone, or that have been filled by others; say if any."""
        over = [key for key, each in self._stays.items() if not self._lasts(each)]
        for key in over:
            self._end(key)
        return bool(over)

    def due_at(self, key: GangKey) -> float | None:
        """Return when time alone ends what is kept for a gang (monotonic seconds)."""
        stay = self._stays.get(key)
        return stay.until if stay is not None else None

    def end(self, key: GangKey) -> bool:
        """Keep nothing for a gang that has no place any more; say whether room came free."""
        self._bound.discard(key)
        return self._end(key)

    def forget(self) -> None:
        """Keep nothing for any gang."""
        for key in list(self._stays):
            self._end(key)
        self._bound.clear()

    def _end(self, key: GangKey) -> bool:
        stay = self._stays.pop(key, None)
        if stay is None:
            return False
        self._gangs.pop(_holder(key, stay), None)
        self._reserve(key, [(stay.node, stay.requests, -1)])
        return True

    def _lasts(self, stay: _Stay) -> bool:
        nodes = self._cache.table.view()
        at, rows = nodes.index.get(stay.node), (nodes.row.get(name) for name, _ in stay.requests)
        return at is not None and all(row is not None and nodes.free[row][at] >= 0 for row in rows)

    def _job_of(self, key: GangKey) -> RayJob | None:
        cluster = self._cache.sources.get(key)
        owner = self._cache.owners.maker_of(cluster) if cluster is not None else None
        return owner if isinstance(owner, RayJob) else None


def _holder(key: GangKey, stay: _Stay) -> Holder:
    """Name the Job that KubeRay makes: it has the name of its RayJob."""
    return Holder("Job", key.namespace, stay.job)
