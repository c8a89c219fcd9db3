"""Sets up the same control plane with Muster and without.

Without means that the webhook is not registered and that none of Muster's programs runs: the
stock cluster pays for nothing of it. What is left of Muster then are its CRDs.
"""

from __future__ import annotations

import contextlib
import http.client
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from coordinator.gang.nominations import Guard
from coordinator.settings import Settings
from testbed import muster
from testbed.api import Json
from testbed.cluster import Cluster
from testbed.errors import TestbedError
from testbed.nodes import NodeSpec, copies
from testbed.options import Options
from testbed.policies import apply_policies, lift_policies, wait_enforced
from testbed.waiting import wait_until

_WEBHOOK = "muster-webhook"
_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_NODE_LEASE_SECONDS = 400  # so that a thousand nodes do not renew leases all the time
# As an installation has it; the testbed's own pace loses leaders on a crowded machine.
LEASE = {"LEASE_DURATION": "15", "RENEW_DEADLINE": "10", "RETRY_PERIOD": "2"}
_PROBE = {
    "metadata": {"name": "probe", "labels": {"ray.io/node-type": "head"}},
    "spec": {"containers": [{"name": "probe", "image": "probe"}]},
}

DEFAULT_GUARD: Guard = Settings.model_fields["guard"].default


class Plane:
    """A control plane, and Muster on it when it is switched on."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._muster: muster.Muster | None = None
        self._configuration: Json = {}
        self._tracks = False
        self._guard = DEFAULT_GUARD
        self._enforced = True
        self.on = False

    @property
    def muster(self) -> muster.Muster:
        """Muster's programs; only after it was switched on once."""
        assert self._muster is not None, "switch Muster on first"
        return self._muster

    @property
    def webhook_ca(self) -> Path:
        """The certificate authority of the webhook; its certificate and key lie beside it."""
        return self.cluster.directory / "webhook-tls" / "ca.crt"

    @property
    def webhook_port(self) -> int:
        """Where the webhook listens."""
        url = self._configuration["webhooks"][0]["clientConfig"]["url"]
        return int(urlsplit(url).port or 0)

    def switch(self, *, on: bool) -> None:
        """Have Muster run, or leave nothing of it that works."""
        if on and not self.on:
            self._start()
        elif self.on and not on:
            self._stop()
        self.on = on

    def lead(self, *, on: bool) -> None:
        """Have the coordinator run or not, while the webhook goes on gating."""
        for program in self.muster.coordinators:
            if on and not program.running:
                program.restart()
                self.muster.wait_ready()
                self.muster.wait_led()
            elif not on:
                program.stop()

    def guard(self, guard: Guard) -> None:
        """Have the coordinator, which runs, keep others out of reserved room in this way."""
        if guard is self._guard:
            return
        self._guard = guard
        for program in self.muster.coordinators:
            program.restart({"MUSTER_COORDINATOR_GUARD": guard})
        self.muster.wait_ready()
        self.muster.wait_led()

    def enforce(self, *, on: bool) -> None:
        """Have Muster's admission policies in force or not, while it runs."""
        if on == self._enforced:
            return
        self._enforced = on
        self.lead(on=False)  # it would see what is created to find out
        if on:
            apply_policies(self.cluster)
            wait_enforced(self.cluster)
        else:
            lift_policies(self.cluster)
        self.lead(on=True)

    def track_field_owners(self, *, on: bool) -> None:
        """Have the webhook leave the field owners of the pods that it gates, or remove them."""
        if on == self._tracks:
            return
        self._tracks = on
        self.muster.webhook.restart({"MUSTER_WEBHOOK_TRACK_FIELD_OWNERS": str(on).lower()})
        self.muster.wait_ready()
        wait_until(self._is_called, "the API server to call the webhook")

    def _start(self) -> None:
        if self._muster is None:
            self._muster = muster.start_muster(self.cluster, settings=LEASE)
            found = self.cluster.api.get(f"{_CONFIGURATIONS}/{_WEBHOOK}")
            self._configuration = {
                "metadata": {"name": _WEBHOOK},
                "webhooks": found["webhooks"],
            }
        else:
            apply_policies(self.cluster)
            wait_enforced(self.cluster)
            self._enforced = True
            for program in (self._muster.webhook, *self._muster.coordinators):
                program.restart()
            self._muster.wait_ready()
            self._muster.wait_led()
            self.cluster.api.create(_CONFIGURATIONS, self._configuration)
        wait_until(self._is_called, "the API server to call the webhook")

    def _stop(self) -> None:
        with self.cluster.api.session() as session:
            session.call("DELETE", f"{_CONFIGURATIONS}/{_WEBHOOK}")
        wait_until(lambda: not self._is_called(), "the API server to forget the webhook")
        for program in (*self.muster.coordinators, self.muster.webhook):
            program.stop()
        if self._enforced:
            lift_policies(self.cluster)

    def _is_called(self) -> bool:
        """Whether the creation of a Ray pod, tried without effect, reaches the webhook."""
        before = self._reviews()
        path = "/api/v1/namespaces/default/pods?dryRun=All"
        self.cluster.api.create(path, _PROBE)
        return self._reviews() > before

    def _reviews(self) -> float:
        told = page(self.muster.webhook_health, "/metrics")
        lines = (line for line in told.splitlines() if line.startswith("muster_webhook_"))
        reviews = (line for line in lines if "reviews_total" in line)
        return sum(float(line.rsplit(" ", 1)[1]) for line in reviews)


@contextlib.contextmanager
def plane(nodes: int, *, options: Options | None = None) -> Iterator[Plane]:
    """A control plane with this many nodes of 8 GPUs; logs stay when something went wrong."""
    directory = Path(tempfile.mkdtemp(prefix="muster-bench-"))
    chosen = muster.with_muster(options or usual_options())
    with Cluster.start(directory / "cluster", chosen) as cluster:
        cluster.add_nodes(copies(NodeSpec("node", cpus=96, memory="768Gi", gpus=8), nodes))
        try:
            yield Plane(cluster)
        except BaseException as error:
            error.add_note(f"The logs are in {cluster.logs}")
            raise
    shutil.rmtree(directory, ignore_errors=True)


def usual_options(**changes: object) -> Options:
    """KubeRay with ten reconcilers, as the neighbours were measured."""
    usual: dict[str, object] = {
        "kuberay_args": ("--reconcile-concurrency=10",),
        "node_lease_seconds": _NODE_LEASE_SECONDS,
    }
    return Options(**{**usual, **changes})  # type: ignore[arg-type]


def page(port: int, path: str) -> str:
    """What a program answers on its health port."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    with contextlib.closing(connection):
        connection.request("GET", path)
        answer = connection.getresponse()
        if answer.status != http.HTTPStatus.OK:
            raise TestbedError(f"port {port}{path}: {answer.status}")
        return answer.read().decode()
