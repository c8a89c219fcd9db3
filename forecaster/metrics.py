"""The metrics of the forecaster. No label carries a gang: their number is unbounded."""

from collections import Counter as Tally
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector

from forecaster.telling import Started
from kube.objects.expected_start import BASES
from runtime.connections import ConnectionMetrics

_RATIOS = (0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 1, 2, 5)


class Metrics:
    """The metrics of the program."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        self.rounds = Counter(
            "muster_forecaster_rounds", "Rounds by how they ended", ["outcome"], registry=registry
        )
        self.round_cpu = Gauge(
            "muster_forecaster_round_cpu_seconds", "CPU of the last round", registry=registry
        )
        self.gangs = Gauge(
            "muster_forecaster_gangs",
            "Waiting gangs by what their estimate is based on",
            ["basis"],
            registry=registry,
        )
        self.writes = Counter(
            "muster_forecaster_writes", "Writes to Gangs", ["outcome"], registry=registry
        )
        self.starts = Counter(
            "muster_forecaster_starts",
            "Gangs that started, by where in the range that they were told first",
            ["told"],
            registry=registry,
        )
        self.error = Histogram(
            "muster_forecaster_error_ratio",
            "How far the first estimate was off once the gang started, as a share of the wait",
            buckets=_RATIOS,
            registry=registry,
        )
        self.connections = ConnectionMetrics("forecaster", registry)

    def count_gangs(self, bases: Iterable[str]) -> None:
        """Set how many gangs there are of each basis."""
        found = Tally(bases)
        for each in BASES:
            self.gangs.labels(each).set(found[each])

    def count_start(self, started: Started) -> None:
        """Take in what a gang was told that started."""
        self.starts.labels(started.told).inc()
        if started.error is not None:
            self.error.observe(started.error)
