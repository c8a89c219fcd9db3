"""Records what happened to every pod by a watch, not by polling.

with Recorder(cluster) as recorder:
    ...
    assert not recorder.partial_gangs({("namespace", "ray-cluster"): 5})
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from testbed import history
from testbed.api import Json
from testbed.closing import Closing
from testbed.cluster import Cluster
from testbed.errors import TestbedError
from testbed.following import DELETED, Follower
from testbed.history import START_SECONDS, Finding, Gang, PodEvent
from testbed.waiting import WAIT_SECONDS

T = TypeVar("T")


class Recorder(Closing):
    """Keeps every event of every pod from now on, and checks the history.

    `changed` is held while an event is added and notified after it; a caller that passes its own
    condition can wait for pods and for something else at once.
    """

    def __init__(self, cluster: Cluster, changed: threading.Condition | None = None) -> None:
        self.changed = changed or threading.Condition()
        self._events: list[PodEvent] = []
        self._pods: dict[str, PodEvent] = {}
        self._follower = Follower(cluster.api, "/api/v1/pods", self._record)
        self._follower.wait_synced()

    @property
    def events(self) -> list[PodEvent]:
        """All events so far, in the order in which they were seen."""
        with self.changed:
            return list(self._events)

    @property
    def pods(self) -> list[PodEvent]:
        """The last event of every pod that is there, oldest pod first."""
        with self.changed:
            return list(self._pods.values())

    def pods_of(self, gang: Gang) -> list[PodEvent]:
        """The last event of every pod of a gang that is there."""
        return [pod for pod in self.pods if pod.gang == gang]

    def wait_until(
        self, condition: Callable[[], T | None], what: str, seconds: float = WAIT_SECONDS
    ) -> T:
        """Look at each change until the answer is true; say what never came."""
        with self.changed:
            answer = self.changed.wait_for(condition, seconds)
        if not answer:
            raise TestbedError(f"waited {seconds:.0f} s in vain for {what}")
        return answer

    def partial_gangs(
        self, expected: Mapping[Gang, int], within: float = START_SECONDS
    ) -> list[Finding]:
        """Find gangs that held room in part: `history.partial_gangs` defines it."""
        return history.partial_gangs(self.events, expected, time.monotonic(), within)

    def overlaps(self, rivals: Collection[Gang]) -> list[Finding]:
        """Find rivals that held room at the same time: `history.overlaps` defines it."""
        return history.overlaps(self.events, rivals)

    def close(self) -> None:
        """End the watch; what was seen stays."""
        self._follower.close()

    def _record(self, kind: str, pod: Json) -> None:
        event = history.pod_event(time.monotonic(), kind, pod)
        with self.changed:
            self._events.append(event)
            if kind == DELETED:
                self._pods.pop(event.uid, None)
            else:
                self._pods[event.uid] = event
            self.changed.notify_all()
