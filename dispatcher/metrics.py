"""The metrics of the dispatcher. No label carries a gang: their number is unbounded."""

from collections import Counter as Tally
from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector

from dispatcher.known import Known
from runtime.connections import ConnectionMetrics
from runtime.readings import Reading


class Metrics:
    """The metrics of one replica."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        self.leader = Gauge(
            "muster_dispatcher_leader", "1 while this replica leads", registry=registry
        )
        self.writes = Counter(
            "muster_dispatcher_writes",
            "Writes, by cluster (that of the dispatcher has no name)",
            ["cluster", "what", "outcome"],
            registry=registry,
        )
        self._connected = self._reading("member_connected", "1 while a member answers", "cluster")
        self._silence = self._reading(
            "member_silence_ratio",
            "Time since a member was heard of, as a share of that after which its gangs are lost",
            "cluster",
        )
        self._gangs = self._reading(
            "gangs",
            "Gangs by phase of their dispatch, and by cluster where one is on record",
            *("cluster", "phase"),
        )
        self.synced = Gauge(
            "muster_dispatcher_watch_synced",
            "1 when the watch of the manager has its first list",
            ["resource"],
            registry=registry,
        )
        self.connections = ConnectionMetrics("dispatcher", registry)

    def _reading(self, name: str, text: str, *labels: str) -> Reading:
        return Reading("gauge", f"muster_dispatcher_{name}", text, labels, self.registry)

    def tell(self, known: Known, now: float) -> None:
        """Set how members are, and how far gangs are."""
        self._connected.read({(name,): float(each.up) for name, each in known.members.items()})
        self._silence.read({(name,): share for name, share in known.silences(now)})
        records = (view.dispatch for view in known.views.values())
        found = Tally((each.cluster, each.phase) for each in records if each is not None)
        self._gangs.read({key: float(count) for key, count in found.items()})

    def tell_watches(self, watches: Mapping[str, Any]) -> None:
        """Set how the watches are."""
        for name, reflector in watches.items():
            self.synced.labels(name).set(reflector.synced)
