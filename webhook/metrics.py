"""The metrics of the webhook."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector

from runtime.connections import ConnectionMetrics

REVIEW_RESULTS = (
    "gated",
    "held",
    "noted",
    "protected",
    "sent_away",
    "untouched",
    "denied",
    "refused",
    "failed",
)
LOOKUP_SOURCES = ("cache", "get", "error")

# From a tenth of the aim for the median up to beyond the API server's own time limit.
_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0, 2.5, 10.0)


class Metrics:
    """The counters of one webhook. The children are looked up once, not at each review."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        reviews = Counter(
            "muster_webhook_reviews",
            "Reviews answered: gated, held (RayClusters), noted (AppWrappers), protected (state of"
            " heads in Redis), sent_away (to other clusters), untouched, denied (not allowed, or"
            " could not find out), refused (no review), failed (a bug)",
            ["result"],
            registry=registry,
        )
        lookups = Counter(
            "muster_webhook_lookups",
            "RayClusters, namespaces and AppWrappers looked up: in the cache, by a GET, or in vain",
            ["source"],
            registry=registry,
        )
        self.reviews = {result: reviews.labels(result) for result in REVIEW_RESULTS}
        self.lookups = {source: lookups.labels(source) for source in LOOKUP_SOURCES}
        self.seconds = Histogram(
            "muster_webhook_review_seconds",
            "Time from the first byte of a review's body asked for to the answer made",
            buckets=_BUCKETS,
            registry=registry,
        )
        self._synced = Gauge(
            "muster_webhook_cache_synced",
            "1 when the caches of RayClusters, namespaces and AppWrappers are complete",
            registry=registry,
        )
        self.certificate_expires = Gauge(
            "muster_webhook_certificate_expiry_timestamp_seconds",
            "When the certificate in use expires, in seconds since 1970; 0 without one",
            registry=registry,
        )
        self.certificate_refusals = Counter(
            "muster_webhook_certificate_refusals",
            "Pairs of certificate and key that were not taken into use",
            registry=registry,
        )
        self.connections = ConnectionMetrics("webhook", registry)

    def watch_sync(self, synced: Callable[[], bool]) -> None:
        """Ask at each scrape whether the caches are complete."""
        self._synced.set_function(lambda: float(synced()))
