"""The present state of gangs and pods from the watches, and waits for changes of it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from testbed.api import Json
from testbed.closing import Closing
from testbed.cluster import Cluster
from testbed.following import DELETED, Follower
from testbed.history import Gang, PodEvent
from testbed.recorder import Recorder
from testbed.waiting import WAIT_SECONDS

T = TypeVar("T")

_GANGS = "/apis/muster.dev/v1alpha1/gangs"


@dataclass(frozen=True)
class GangState:
    """What a Gang object says."""

    phase: str = ""
    position: int | None = None
    ready: str = ""
    reason: str = ""
    message: str = ""
    expected: str = ""
    """When it is expected to start; empty where nothing told it."""
    evicted: str = ""
    """Why it was stopped; empty where it was not, or is admitted again."""


@dataclass(frozen=True)
class Row:
    """One Ray cluster, or one pod of none, as people are shown it."""

    gang: Gang
    state: GangState | None
    """None for what is no gang."""
    gated: int = 0
    pending: int = 0
    running: int = 0
    going: int = 0


class World(Closing):
    """The state of one cluster; `wait_until` looks at it after each change."""

    def __init__(self, cluster: Cluster) -> None:
        self._changed = threading.Condition()
        self._gangs: dict[Gang, GangState] = {}
        self.recorder = Recorder(cluster, self._changed)
        self._follower = Follower(cluster.api, _GANGS, self._note_gang)
        self._follower.wait_synced()

    def wait_until(
        self, condition: Callable[[], T | None], what: str, seconds: float = WAIT_SECONDS
    ) -> T:
        """Look at each change until the answer is true; say what never came."""
        return self.recorder.wait_until(condition, what, seconds)

    def wait_for_change(self, seen: object, seconds: float) -> None:
        """Wait until the rows differ from those seen, but not for ever."""
        with self._changed:
            self._changed.wait_for(lambda: self.rows() != seen, seconds)

    def state(self, gang: Gang) -> GangState:
        """What the Gang object says, nothing where there is none."""
        with self._changed:
            return self._gangs.get(gang, GangState())

    def is_whole(self, gang: Gang, size: int) -> bool:
        """Tell whether all pods run, and Muster says so too."""
        running = sum(is_running(pod) for pod in self.recorder.pods_of(gang))
        return running == size and self.state(gang).phase == "Running"

    def rows(self) -> list[Row]:
        """Everything that people are shown, in order of appearance."""
        with self._changed:
            pods: dict[Gang, list[PodEvent]] = {gang: [] for gang in self._gangs}
            for pod in self.recorder.pods:
                gang = (pod.namespace, pod.cluster or pod.name)
                pods.setdefault(gang, []).append(pod)
            return [_row(gang, self._gangs.get(gang), own) for gang, own in pods.items()]

    def close(self) -> None:
        """End both watches."""
        self.recorder.close()
        self._follower.close()

    def _note_gang(self, kind: str, item: Json) -> None:
        gang = (item["metadata"]["namespace"], _shown_name(item["metadata"]["name"]))
        with self._changed:
            if kind == DELETED:
                self._gangs.pop(gang, None)
            else:
                self._gangs[gang] = _gang_state(item)
            self._changed.notify_all()


def is_running(pod: PodEvent) -> bool:
    """Tell whether a pod runs and is to go on."""
    return pod.phase == "Running" and not pod.deleting


def _shown_name(gang: str) -> str:
    """The gang of an AppWrapper goes by its name, which the Ray cluster in it has too."""
    return gang.removeprefix("appwrapper.")


def _gang_state(item: Json) -> GangState:
    status = item.get("status") or {}
    return GangState(
        phase=status.get("phase", ""),
        position=status.get("position"),
        ready=status.get("ready", ""),
        reason=status.get("reason", ""),
        message=status.get("message", ""),
        expected=(status.get("expectedStart") or {}).get("time", ""),
        evicted=_evicted(status),
    )


def _evicted(status: Json) -> str:
    for condition in status.get("conditions") or ():
        if condition["type"] == "Evicted" and condition["status"] == "True":
            return str(condition["message"])
    return ""


def _row(gang: Gang, state: GangState | None, pods: list[PodEvent]) -> Row:
    counts = Counter(_stage(pod) for pod in pods)
    return Row(gang, state, counts["gated"], counts["pending"], counts["running"], counts["going"])


def _stage(pod: PodEvent) -> str:
    if pod.deleting:
        return "going"
    if is_running(pod):
        return "running"
    return "gated" if pod.gates else "pending"
