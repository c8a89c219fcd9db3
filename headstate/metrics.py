"""The metrics of the program. No label carries a RayCluster: their number is unbounded."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector

from headstate.plan import ServerState, lags
from runtime.connections import ConnectionMetrics

WRITES = ("user", "secret", "removal", "event", "service", "report")


class Metrics:
    """The metrics of one replica."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        self.leader = Gauge("muster_redis_leader", "1 while this replica leads", registry=registry)
        self.has_primary = Gauge(
            "muster_redis_has_primary",
            "1 while more than half of the Sentinels name a primary, and it answers",
            registry=registry,
        )
        self.answers = self._by_server("answers", "1 while the server answers")
        self.memory = self._by_server("memory_bytes", "Memory in use")
        self.limit = self._by_server("memory_limit_bytes", "Its maxmemory; 0 without")
        self.lag = self._by_server("lag_bytes", "How far a replica is behind its primary")
        self.clusters = Gauge("muster_redis_clusters", "RayClusters with a user", registry=registry)
        self.waiting = Gauge(
            "muster_redis_clusters_waiting",
            "RayClusters whose Secret is not written yet",
            registry=registry,
        )
        self.largest = Gauge(
            "muster_redis_largest_cluster_bytes",
            "Memory that the keys of the RayCluster with most of them take",
            registry=registry,
        )
        self.over_limit = Gauge(
            "muster_redis_clusters_over_limit",
            "RayClusters whose keys take more than the limit, and may add none",
            registry=registry,
        )
        writes = Counter(
            "muster_redis_writes",
            "Writes: users and removals on servers; Secrets, Events, Service and report",
            ["what", "outcome"],
            registry=registry,
        )
        self._writes = {
            (what, outcome): writes.labels(what, outcome)
            for what in WRITES
            for outcome in ("done", "failed")
        }
        self.connections = ConnectionMetrics("redis", registry)

    def count(self, what: str, *, done: bool, times: int = 1) -> None:
        """Count writes."""
        self._writes[what, "done" if done else "failed"].inc(times)

    def tell_servers(self, servers: Mapping[str, ServerState | None], primary: str | None) -> None:
        """Set what the servers said of themselves."""
        self.has_primary.set(servers.get(primary or "") is not None)
        for gauge in (self.memory, self.limit, self.lag):
            gauge.clear()
        for name, state in servers.items():
            self.answers.labels(name).set(state is not None)
            if state is not None:
                self.memory.labels(name).set(state.memory)
                self.limit.labels(name).set(state.limit)
        for name, behind in lags(servers, primary).items():
            self.lag.labels(name).set(behind)

    def _by_server(self, name: str, text: str) -> Gauge:
        return Gauge(f"muster_redis_{name}", text, ["server"], registry=self.registry)
