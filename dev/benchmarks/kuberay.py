"""Reads from KubeRay's own metrics how often it reconciles RayClusters, and for how long."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from benchmarks.plane import page
from testbed.cluster import Cluster

_SAMPLE = re.compile(
    r"^controller_runtime_reconcile_(total|time_seconds_sum)"
    r'\{controller="raycluster"[^}]*\} (\S+)$',
    re.MULTILINE,
)


@dataclass(frozen=True)
class Reconciles:
    """How many there were, and the seconds that they took."""

    count: float
    seconds: float

    @classmethod
    def read(cls, metrics: str) -> Self:
        """Read them off the operator's metrics page; its restarts begin at nothing."""
        sums = {"total": 0.0, "time_seconds_sum": 0.0}
        for name, value in _SAMPLE.findall(metrics):
            sums[name] += float(value)
        return cls(sums["total"], sums["time_seconds_sum"])

    @classmethod
    def so_far(cls, cluster: Cluster) -> Self:
        """Ask the operator of a cluster."""
        return cls.read(page(cluster.site.ports.kuberay_metrics, "/metrics"))

    def since(self, before: Reconciles) -> Reconciles:
        """What came after an earlier look."""
        return Reconciles(self.count - before.count, self.seconds - before.seconds)
