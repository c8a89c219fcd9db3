"""The metrics of the extender. No label carries a pod, node or gang."""

from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector

from runtime.connections import ConnectionMetrics

VERBS = ("filter", "prioritize", "preempt")
RESULTS = ("answered", "refused", "unready", "failed")

# From a tenth of the aim for the median up to beyond the scheduler's own time limit.
_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.25, 1.0, 2.5)


class Metrics:
    """The counters of one extender. The children are looked up once, not at each call."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        calls = Counter(
            "muster_extender_calls",
            "Calls: answered, refused (no question, or not from the scheduler), unready (not synced"
            " or the watch silent), failed (a bug)",
            ["verb", "result"],
            registry=registry,
        )
        seconds = Histogram(
            "muster_extender_seconds",
            "Time from the first byte of a call's body asked for to the answer made",
            ["verb"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self.calls = {(v, r): calls.labels(v, r) for v in VERBS for r in RESULTS}
        self.seconds = {verb: seconds.labels(verb) for verb in VERBS}
        self.reserved_for_gangs = Counter(
            "muster_extender_pods_refused",
            "Filter calls in which a pod got no node because room is reserved",
            registry=registry,
        )
        self.wakes = Counter(
            "muster_extender_wakes",
            "Writes that made kube-scheduler try refused pods again",
            registry=registry,
        )
        self.certificate_refusals = Counter(
            "muster_extender_certificate_refusals",
            "Pairs of certificate and key that were not taken into use",
            registry=registry,
        )
        self.certificate_expires = Gauge(
            "muster_extender_certificate_expiry_timestamp_seconds",
            "When the certificate in use expires, in seconds since 1970; 0 without one",
            registry=registry,
        )
        self.caller_expires = Gauge(
            "muster_extender_caller_certificate_expiry_timestamp_seconds",
            "When the certificate ends that the scheduler showed in its last call, in seconds since"
            " 1970; 0 without a call for an hour",
            registry=registry,
        )
        self.connections = ConnectionMetrics("extender", registry)

    def watch(self, gauges: Mapping[str, tuple[str, Callable[[], float]]]) -> None:
        """Ask these at each scrape."""
        for name, (text, value) in gauges.items():
            gauge = Gauge(f"muster_extender_{name}", text, registry=self.registry)
            gauge.set_function(value)
