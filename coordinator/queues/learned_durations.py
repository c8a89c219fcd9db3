"""Learns from ended gangs how long gangs run, by queue and namespace; for forecasts alone.

The times live as long as a term: the next leader goes on with those in the queue's status. Gangs
that end while no replica leads teach nothing, nor do gangs that were stopped for others.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from coordinator.queues.durations import Durations, seconds_of, step_of
from kube.codec.queues.learned_durations import Times, read_durations
from kube.objects.queues.learned_durations import MOST_NAMESPACES
from kube.objects.queues.queue import GangQueue
from scheduling.diagnosis.amount_texts import lasting
from scheduling.model.gang import GangKey

LEAST = 5
"""So many must have ended before anything is told by them."""

Status = Mapping[str, Any]


class Run(NamedTuple):
    """A gang that runs: the uid of its object, its queue, and since when in seconds since 1970."""

    uid: str
    queue: str
    began: float


class Learned(NamedTuple):
    """What ended, and of which namespace it was; "" where it was of the whole queue."""

    durations: Durations
    namespace: str


@dataclass(slots=True)
class QueueDurations:
    """What ended of one queue, by namespace; beyond 200 of them those with the fewest are one."""

    namespaces: dict[str, Durations] = field(default_factory=dict)
    rest: Durations = field(default_factory=Durations)
    fault: str = ""

    @classmethod
    def recorded(cls, found: GangQueue) -> "QueueDurations":
        """Return what the status of a queue says."""
        said = read_durations(found.status.learned_durations)
        named = {name: _durations(times) for name, times in said.namespaces.items()}
        return cls(named, _durations(said.rest), said.fault)

    def learn(self, namespace: str, seconds: float) -> None:
        """Take in that a gang of a namespace ended after so long."""
        self.namespaces[namespace] = self._of(namespace).with_one(seconds)
        while len(self.namespaces) > MOST_NAMESPACES:
            others = (name for name in self.namespaces if name != namespace)
            fewest = min(others, key=lambda name: (self.namespaces[name].ended, name))
            self.rest = self.rest.and_of(self.namespaces.pop(fewest)).bounded()

    def of(self, namespace: str) -> Learned | None:
        """Return what tells how long a gang of a namespace runs; None where too few ended."""
        if self._of(namespace).ended >= LEAST:
            return Learned(self._of(namespace), namespace)
        whole = self.rest
        for each in self.namespaces.values():
            whole = whole.and_of(each)
        return Learned(whole, "") if whole.ended >= LEAST else None

    def status(self) -> Status | None:
        """Return what is written of it; None where nothing ended."""
        named = [_written(name, each) for name, each in sorted(self.namespaces.items())]
        rest = {"rest": _seconds(self.rest)} if self.rest.counts else {}
        found = ({"namespaces": named} if named else {}) | rest
        return found or None

    def _of(self, namespace: str) -> Durations:
        return self.namespaces.get(namespace, Durations())


class DurationLedger:
    """What was learned of all queues in this term, and which gangs run."""

    def __init__(self) -> None:
        self._queues: dict[str, QueueDurations] = {}
        self._runs: dict[GangKey, Run] = {}

    def forget_term(self) -> None:
        """Drop all: other leaders go on with it."""
        self._queues.clear()
        self._runs.clear()

    def forget(self, queue: str) -> None:
        """Drop what was learned of a queue that is gone."""
        self._queues.pop(queue, None)

    def follow(self, key: GangKey, run: Run | None) -> Run | None:
        """Take in that a gang runs, or does no more; return the run that is over now."""
        before = self._runs.pop(key, None)
        if run is not None:
            self._runs[key] = run
        return before if before is not None and (run is None or run.uid != before.uid) else None

    def of(self, found: GangQueue) -> QueueDurations:
        """Return what was learned of a queue; at first what its status says."""
        name = found.metadata.name
        if name not in self._queues:
            self._queues[name] = QueueDurations.recorded(found)
        return self._queues[name]


def _durations(times: Times) -> Durations:
    found = Durations()
    for seconds, count in times.items():
        found = found.and_of(Durations({step_of(seconds): count}))
    return found.bounded()


def _written(namespace: str, found: Durations) -> Status:
    typical = lasting(found.quantile(0.5) or 0.0)
    said = {"name": namespace, "ended": found.ended, "typical": typical}
    return said | {"seconds": _seconds(found)}


def _seconds(found: Durations) -> dict[str, int]:
    return {str(seconds_of(step)): count for step, count in sorted(found.counts.items())}
