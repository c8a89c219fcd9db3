"""Says which nominations are left of a RayCluster that is gone, or is another one by now.

Pods may outlast their RayCluster: the garbage collector takes its time, and
`kubectl delete --cascade=orphan` leaves them. Their gate stays on, so they never start, while
kube-scheduler keeps the room to which they are nominated. They have no view.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from coordinator.gang.pods.nominating import Nominating, most_in_flight
from kube.codec.observed_pod import ObservedPod

LEFT_DELAY = 1.0
"""Seconds for which nominations are left to the garbage collector, which mostly needs less.

The RayCluster may also be one that the watch has not told of yet.
"""


@dataclass(slots=True)
class Left:
    """Pods without their RayCluster, seen as such `since` (monotonic), and the writes to them."""

    since: float
    writes: Nominating = field(default_factory=Nominating)

    def due(self, pods: Iterable[ObservedPod], now: float) -> list[ObservedPod]:
        """Note the writes that are made now; return their pods.

        A failed one is made again after a time, and no more than some are under way at once.
        """
        left = sorted((pod for pod in pods if pod.nominated_to), key=lambda pod: pod.name)
        self.writes.next_at = None
        if now < self.since + LEFT_DELAY:
            self.writes.due_by(self.since + LEFT_DELAY)
            return []
        most, self.writes.resumes_at = most_in_flight(len(left)), 0
        self.writes.forget_pods({pod.uid for pod in left} | self.writes.inflight.keys())
        return [pod for pod in left if self._begin(pod.uid, most, now)]

    def _begin(self, uid: str, most: int, now: float) -> bool:
        if uid in self.writes.inflight or not self.writes.may_write(uid, "", most, now):
            return False
        self.writes.ask(uid, "", now)
        return True


def are_left(left: Left | None, pods: Iterable[ObservedPod]) -> bool:
    """Whether such pods are nominated, or a write to them is under way."""
    return (left is not None and bool(left.writes.inflight)) or any(p.nominated_to for p in pods)
