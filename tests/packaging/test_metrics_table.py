"""docs/metrics.md names every metric, with its type and its labels, and no other."""

import re
from collections.abc import Iterator
from typing import cast

from prometheus_client import REGISTRY, CollectorRegistry

import certs.metrics
import coordinator.metrics
import dispatcher.metrics
import extender.metrics
import forecaster.metrics
import headstate.metrics
import webhook.metrics
import wrapper.metrics
from extender.memory.in_flight import InFlightPods
from extender.serve import _watch_gauges
from extender.unscheduled_pods import UnscheduledPods
from extender.watches import Watches
from kube.api.client import Client
from tests.metrics import Family, families
from tests.packaging.tree import ROOT

ROW = re.compile(r"^\| `(muster_\w+)` \| (\w+) \|([^|]*)\| [^|]+ \|$", re.MULTILINE)

PROGRAMS = (
    *("coordinator", "webhook", "wrapper", "redis", "dispatcher", "forecaster", "extender"),
    "certs",
)
"""Whose connections share a row."""


def registries() -> Iterator[CollectorRegistry]:
    """Those of all programs."""
    assert coordinator.metrics.LEADER
    yield REGISTRY
    yield webhook.metrics.Metrics().registry
    yield wrapper.metrics.Metrics().registry
    yield headstate.metrics.Metrics().registry
    yield forecaster.metrics.Metrics().registry
    yield dispatcher.metrics.Metrics().registry
    yield certs.metrics.Metrics("muster-webhook-tls").registry
    found = extender.metrics.Metrics()
    in_flight_pods, unscheduled = InFlightPods(settle=0.0, keep=30.0, limit=1), UnscheduledPods()
    watches = Watches(cast(Client, None), in_flight_pods, unscheduled, silence=90.0)
    _watch_gauges(found, watches, in_flight_pods, unscheduled)
    yield found.registry


def documented() -> dict[str, Family]:
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    rows = [
        (name.replace("PROGRAM", program), kind, re.findall(r"`(\w+)`", labels))
        for name, kind, labels in ROW.findall(text)
        for program in (PROGRAMS if "PROGRAM" in name else ("",))
    ]
    return {name: Family(name, kind, tuple(labels)) for name, kind, labels in rows}


def test_the_table_of_metrics_is_complete_and_right() -> None:
    served = {name: each for registry in registries() for name, each in families(registry).items()}
    assert documented() == served
