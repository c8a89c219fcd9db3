"""Records by watches what happened to every pod and Gang of a namespace."""

from __future__ import annotations

import threading
import time

from testbed.api import Json
from testbed.closing import Closing
from testbed.cluster import Cluster
from testbed.following import Follower
from testbed.history import Finding, Gang, partial_gangs
from tests.faults.ledger import Ledger, gang_change, pod_change


class Chronicle(Closing):
    """Records until it is closed; use it as `with Chronicle(...) as chronicle`."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._lock = threading.Lock()
        self._ledger = Ledger()
        places = (
            (f"/api/v1/namespaces/{namespace}/pods", self._pod),
            (f"/apis/muster.dev/v1alpha1/namespaces/{namespace}/gangs", self._gang),
        )
        self._followers = [Follower(cluster.api, path, observe) for path, observe in places]
        for follower in self._followers:
            follower.wait_synced()

    @property
    def ledger(self) -> Ledger:
        """All changes of pods of gangs, and of Gangs, so far."""
        with self._lock:
            pods = [change for change in self._ledger.pods if change.at.cluster]
            return Ledger(pods, list(self._ledger.gangs))

    def partial_gangs(self, expected: dict[Gang, int], within: float) -> list[Finding]:
        """Find gangs that held room in part for too long, or in vain."""
        events = [change.at for change in self.ledger.pods]
        return partial_gangs(events, expected, time.monotonic(), within)

    def _pod(self, kind: str, pod: Json) -> None:
        change = pod_change(time.monotonic(), kind, pod)
        with self._lock:
            self._ledger.pods.append(change)

    def _gang(self, kind: str, gang: Json) -> None:
        change = gang_change(kind, gang)
        with self._lock:
            self._ledger.gangs.append(change)

    def close(self) -> None:
        for follower in self._followers:
            follower.close()
