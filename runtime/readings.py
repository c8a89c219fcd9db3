"""Exports metrics that are computed together, right before a scrape.

Gauges of prometheus_client are set label by label, and labels that are gone have to be cleared
first: a page that another thread writes meanwhile would lack some values. A `Reading` is replaced
as a whole.
"""

from collections.abc import Iterator, Mapping
from typing import Literal

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

Values = Mapping[tuple[str, ...], float]
"""Values of labels, in the order of their names, and what is read for them."""


class Reading(Collector):
    """A gauge, or a counter that something else counts. Of the latter the name has no _total."""

    def __init__(
        self,
        kind: Literal["gauge", "counter"],
        name: str,
        text: str,
        labels: tuple[str, ...],
        registry: CollectorRegistry,
    ) -> None:
        self._type, self._name, self._text, self._labelnames = kind, name, text, labels
        self._values: Values = {}
        registry.register(self)

    def read(self, values: Values) -> None:
        """Take the values of now in place of all that were read before."""
        self._values = values

    def collect(self) -> Iterator[Metric]:
        """Return the metric as prometheus_client wants it."""
        kind = GaugeMetricFamily if self._type == "gauge" else CounterMetricFamily
        family = kind(self._name, self._text, labels=self._labelnames)
        for labels, value in self._values.items():
            family.add_metric(labels, value)
        yield family
