"""The metrics of the wrapper. No label carries an AppWrapper: their number is unbounded."""

from collections import Counter as Tally
from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector

from runtime.connections import ConnectionMetrics


class Metrics:
    """The metrics of one replica."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        self.leader = Gauge(
            "muster_wrapper_leader", "1 while this replica leads", registry=registry
        )
        self.app_wrappers = Gauge(
            "muster_wrapper_app_wrappers", "AppWrappers by phase", ["phase"], registry=registry
        )
        self.writes = Counter(
            "muster_wrapper_writes",
            "Writes to the API server: status, items that are created or deleted, Events",
            ["what", "outcome"],
            registry=registry,
        )
        self.refused = Counter(
            "muster_wrapper_items_refused",
            "Creations of items that were refused for good, or put off",
            ["lasts"],
            registry=registry,
        )
        self.waiting = Gauge(
            "muster_wrapper_actions_waiting", "Actions that wait to be sent", registry=registry
        )
        self.synced = Gauge(
            "muster_wrapper_watch_synced",
            "1 when the watch has its first list",
            ["resource"],
            registry=registry,
        )
        self.silence = Gauge(
            "muster_wrapper_watch_silence_seconds",
            "Since the watch last heard",
            ["resource"],
            registry=registry,
        )
        self.connections = ConnectionMetrics("wrapper", registry)

    def count_phases(self, phases: Iterable[str]) -> None:
        """Set how many AppWrappers are in each phase."""
        self.app_wrappers.clear()
        for phase, count in Tally(phases).items():
            self.app_wrappers.labels(phase or "New").set(count)

    def tell_watches(self, watches: Mapping[str, Any], now: float) -> None:
        """Set how the watches are."""
        for name, reflector in watches.items():
            self.synced.labels(name).set(reflector.synced)
            if reflector.last_contact is not None:
                self.silence.labels(name).set(now - reflector.last_contact)
