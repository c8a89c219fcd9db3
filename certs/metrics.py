"""The metrics of the program that keeps certificates."""

from __future__ import annotations

from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector

from certs.chain import expires_at
from certs.held import Held
from certs.keeper import Look
from certs.plan import Step
from certs.rolling import foreign
from runtime.connections import ConnectionMetrics


class Metrics:
    """The metrics of one replica, which keeps one Secret."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self.registry = registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        self.leader = Gauge("muster_certs_leader", "1 while this replica leads", registry=registry)
        self.steps = Counter(
            "muster_certs_steps",
            "Steps taken in making and replacing certificates",
            ["step"],
            registry=registry,
        )
        self.failures = Counter(
            "muster_certs_failures",
            "Looks that ended in a fault; it is tried again after 5 s",
            registry=registry,
        )
        self.refused = Gauge(
            "muster_certs_refused_configurations",
            "Configurations of webhooks that could not be read or written",
            registry=registry,
        )
        self.looked = self._moment("looked", "When a look last ended without a fault")
        self.next_step = self._moment("next_step", "When the next step is due")
        self.restart_by = self._moment(
            "scheduler_restart_by",
            "When a kube-scheduler that was not started with the new files loses the extender; 0"
            " where there are no new files",
        )
        self.expires = self._moment(
            "expiry",
            "When a certificate in the Secret ends: server, client, authority",
            "certificate",
        )
        self.foreign = Gauge(
            "muster_certs_foreign_authorities",
            "Authorities in caBundle that muster-certs did not make",
            registry=registry,
        )
        self.connections = ConnectionMetrics("certs", registry)

    def _moment(self, name: str, text: str, *labels: str) -> Gauge:
        title = f"muster_certs_{name}_timestamp_seconds"
        said = f"{text}, in seconds since 1970"
        return Gauge(title, said, ["secret", *labels], registry=self.registry)

    def count_step(self, step: Step) -> None:
        """Count a step that was taken."""
        self.steps.labels(step.value).inc()

    def tell(
        self,
        look: Look,
        authority: str,
        restart_by: datetime | None,
        now: datetime,
        *,
        well: bool,
    ) -> None:
        """Set the findings of a check; without a fault where all is well."""
        until, held = look.plan.until, look.seen.held
        self.next_step.labels(self._secret).set(0 if until is None else until.timestamp())
        self.restart_by.labels(self._secret).set(
            0 if restart_by is None else restart_by.timestamp()
        )
        if held is not None:
            self._tell_ends(held)
            self.foreign.set(sum(foreign(each, held, authority) for each in look.seen.bundles))
        if well:
            self.looked.labels(self._secret).set(now.timestamp())

    def _tell_ends(self, held: Held) -> None:
        found = {
            "server": None if held.served is None else held.served.certificate,
            "client": None if held.client is None else held.client.certificate,
            "authority": held.authorities[-1] if held.authorities else None,
        }
        for name, certificate in found.items():
            if certificate is not None:
                self.expires.labels(self._secret, name).set(expires_at(certificate).timestamp())
