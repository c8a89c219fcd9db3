"""cert-manager itself issues and renews the webhook's certificate, and no pod is refused.

Its controllers and its injector run beside a cluster whose API server calls the webhook on
loopback, so the certificate is for that address too. The test brings the files from the Secret to
the webhook, as a kubelet does.
"""

from __future__ import annotations

import base64
import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509

from kube.objects import names
from testbed.build import build
from testbed.cluster import Cluster
from testbed.errors import TestbedError
from testbed.manifests import MANIFESTS, apply, around_programs, built
from testbed.muster import NAMESPACE, spawn_webhook, with_muster
from testbed.options import Options
from testbed.processes import Process
from testbed.recipes import CERT_MANAGER
from testbed.waiting import wait_until
from tests.controlplane.plot import gates
from tests.controlplane.rayclusters import Json, gang, group

pytestmark = [pytest.mark.controlplane, pytest.mark.long, pytest.mark.timeout(3600)]

SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/muster-webhook-tls"
AUTHORITY = f"/api/v1/namespaces/{NAMESPACE}/secrets/muster-ca"
CERTIFICATES = f"/apis/cert-manager.io/v1/namespaces/{NAMESPACE}/certificates"
CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/muster-webhook"
FILES = ("tls.crt", "tls.key", "ca.crt")
PEOPLE = "people"
POLL = "0.2"
"""Seconds between two looks of the webhook at its files; an installation's are more."""


@dataclass
class Load:
    """Creates a pod of a gang again and again, for nothing but the answer."""

    cluster: Cluster
    owner: Json
    answered: int = 0
    wrong: list[str] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self._over.is_set():
            try:
                found = gates(ask(self.cluster, self.owner))
            except (TestbedError, OSError) as error:
                self.wrong.append(str(error))
            else:
                self.answered += 1
                self.wrong += [] if found == [names.GATE] else [f"gates: {found}"]

    @contextlib.contextmanager
    def going(self) -> Iterator[None]:
        thread = threading.Thread(target=self.run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()


def ask(cluster: Cluster, owner: Json) -> Json:
    """A worker of the RayCluster as the API server would take it in, over a new connection."""
    metadata = {
        "name": "asked",
        "labels": {names.RAY_NODE_TYPE: "worker", names.RAY_GROUP: "workers"},
        "ownerReferences": [owner],
    }
    spec = {"containers": [{"name": "main", "image": "none"}]}
    path = f"/api/v1/namespaces/{PEOPLE}/pods?dryRun=All"
    return cluster.api.create(path, {"metadata": metadata, "spec": spec})


@dataclass
class Site:
    """The cluster, cert-manager, the webhook, and the folder with the webhook's files."""

    cluster: Cluster
    folder: Path
    webhook: Process
    health: int

    def secret(self) -> dict[str, bytes]:
        """The files in the Secret; empty before it is whole."""
        if not self.cluster.api.exists(SECRET):
            return {}
        data = self.cluster.api.get(SECRET).get("data") or {}
        return {name: base64.b64decode(data[name]) for name in FILES if data.get(name)}

    def authority(self) -> bytes:
        """The certificate that signs; empty while it is replaced."""
        if not self.cluster.api.exists(AUTHORITY):
            return b""
        data = self.cluster.api.get(AUTHORITY).get("data") or {}
        return base64.b64decode(data.get("tls.crt", ""))

    def bundle(self) -> bytes:
        """What the API server trusts when it calls the webhook."""
        (called, *_) = self.cluster.api.get(CONFIGURATION)["webhooks"]
        return base64.b64decode(called["clientConfig"].get("caBundle", ""))

    def renew(self, certificate: str) -> None:
        """Ask cert-manager for another one now, as its own command does."""
        condition = {
            "type": "Issuing",
            "status": "True",
            "reason": "ManuallyTriggered",
            "message": "asked for by a test",
            "lastTransitionTime": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        }
        path = f"{CERTIFICATES}/{certificate}/status"
        found = self.cluster.api.get(f"{CERTIFICATES}/{certificate}")
        kept = [e for e in found["status"]["conditions"] if e["type"] != "Issuing"]
        change = {"status": {"conditions": [*kept, condition]}}
        merge(self.cluster, path, change)

    def bring(self) -> None:
        """Bring the files to the webhook, each whole."""
        for name, content in self.secret().items():
            new = self.folder / f".{name}"
            new.write_bytes(content)
            new.rename(self.folder / name)


def merge(cluster: Cluster, path: str, change: Json) -> None:
    with cluster.api.session() as session:
        body = json.dumps(change).encode()
        session.call("PATCH", path, body, "application/merge-patch+json")


def on_loopback(objects: list[Json], port: int) -> Iterator[Json]:
    """The overlay's objects, with the webhook where it is here."""
    for each in objects:
        if (each["kind"], each["metadata"]["name"]) == ("Certificate", "muster-webhook"):
            each["spec"]["ipAddresses"] = ["127.0.0.1"]
        if each["kind"].endswith("WebhookConfiguration"):
            for called in each["webhooks"]:
                path = called["clientConfig"]["service"]["path"]
                called["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}"}
        yield each


def start_cert_manager(cluster: Cluster) -> None:
    made = build((CERT_MANAGER,), print)
    (folder,) = made.folders.values()
    cluster.create_crds(*sorted((folder / "assets" / "deploy" / "crds").glob("*.yaml")))
    program = str(made.program("cert-manager"))
    cluster.spawn("cert-manager", [program, f"--connection={cluster.kubeconfig}"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The overlay of cert-manager, and what it asks of cert-manager done once."""
    folder = tmp_path_factory.mktemp("cert-manager")
    options = with_muster(Options(kwok=False, scheduler=False))
    with Cluster.start(folder / "root", options) as cluster:
        start_cert_manager(cluster)
        port, health = cluster.ports.allocate(), cluster.ports.allocate()
        objects = around_programs(built(cluster, MANIFESTS / "overlays" / "cert-manager"))
        apply(cluster, on_loopback(objects, port))
        files = folder / "tls"
        files.mkdir()
        site = Site(cluster, files, cluster.process("cert-manager"), health)
        wait_until(lambda: len(site.secret()) == len(FILES), "cert-manager to issue")
        site.bring()
        more = {"CERTIFICATE_POLL_SECONDS": POLL}
        site.webhook = spawn_webhook(cluster, files, port, health, **more)
        yield site


@pytest.fixture(scope="module")
def owner(site: Site) -> Json:
    """A RayCluster, as what its pods name as their owner."""
    cluster = site.cluster
    cluster.create_namespace(PEOPLE)
    path = f"/apis/{names.RAY_API_VERSION}/namespaces/{PEOPLE}/rayclusters"
    made = cluster.api.create(path, gang("train", group()))
    owner = {
        "apiVersion": names.RAY_API_VERSION,
        "kind": "RayCluster",
        "name": "train",
        "uid": made["metadata"]["uid"],
        "controller": True,
    }

    wait_until(
        lambda: answer(site, owner) == [names.GATE],
        "pods of the gang to be gated",
        seen=lambda: answer(site, owner),
    )
    return owner


def answer(site: Site, owner: Json) -> list[str] | str:
    """The gates of a worker, or why there is none."""
    site.webhook.expect_running()
    try:
        return gates(ask(site.cluster, owner))
    except TestbedError as error:
        return str(error)


def served(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificates(pem)[0]


def test_the_authority_signed_what_is_served_and_fills_ca_bundle(site: Site, owner: Json) -> None:
    held = site.secret()
    assert served(held["tls.crt"]).issuer == served(held["ca.crt"]).subject
    assert site.bundle() == held["ca.crt"]


def test_no_pod_is_refused_while_the_certificate_is_replaced(site: Site, owner: Json) -> None:
    load = Load(site.cluster, owner)
    before = site.secret()
    with load.going():
        site.renew("muster-webhook")
        wait_until(
            lambda: site.secret().get("tls.crt") not in (None, before["tls.crt"]),
            "the webhook's certificate to be replaced",
        )
        site.bring()
        answered = load.answered
        wait_until(lambda: load.wrong or load.answered > answered + 20, "more pods to be asked for")
    after = site.secret()
    assert load.wrong == []
    assert served(after["tls.crt"]).serial_number != served(before["tls.crt"]).serial_number
    assert site.bundle() == after["ca.crt"] == before["ca.crt"]


def test_a_renewed_authority_is_trusted_once_the_certificate_is_issued_anew(
    site: Site, owner: Json
) -> None:
    """Its key stays, so what it signed before stays good, and no pod is refused meanwhile."""
    load = Load(site.cluster, owner)
    authority, before = site.authority(), site.secret()
    with load.going():
        site.renew("muster-ca")
        wait_until(lambda: site.authority() not in (b"", authority), "a new authority")
        site.renew("muster-webhook")
        wait_until(
            lambda: site.secret().get("tls.crt") not in (None, before["tls.crt"]),
            "the webhook's certificate to be replaced",
        )
        site.bring()
        wait_until(lambda: site.authority() in site.bundle(), "caBundle to have the new authority")
        answered = load.answered
        wait_until(lambda: load.wrong or load.answered > answered + 20, "more pods to be asked for")
    assert load.wrong == []
    assert site.secret()["ca.crt"] == site.authority() != before["ca.crt"]
    assert before["ca.crt"] in site.bundle(), "the old one is trusted beside the new"
