"""Starts Muster's own programs on a testbed cluster.

This is the one place that knows. They run from this checkout with the rights that Muster's
manifests give them and no others, out of the cluster: the API server calls the webhook on
loopback. Only the addresses, the ports and the pace of the election differ from an installation.
"""

from __future__ import annotations

import base64
import math
import sys
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from kube.api.reviewed import HEARD, NAME, RULES
from testbed.api import Json
from testbed.cluster import Cluster
from testbed.errors import TestbedError
from testbed.manifests import DEFAULT, MANIFESTS, apply, around_programs, built, combination
from testbed.options import Options
from testbed.policies import wait_enforced
from testbed.processes import Process
from testbed.waiting import WAIT_SECONDS, wait_until

ROOT = MANIFESTS.parent
BASE = MANIFESTS / "base"
APP_WRAPPER = MANIFESTS / "app-wrapper"
CRDS = tuple(sorted((MANIFESTS / "crds").glob("*.yaml")))
NAMESPACE = "muster-system"
_CONFIGURATIONS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_AS_THEY_ARE = ("--server-side", "--validate=false")
"""Otherwise kubectl has the API server make its schemas, for 1.5 s of CPU on each new cluster. The
tests of installing and of overlays let it."""
REDIS = f"muster-redis.{NAMESPACE}.svc:6379"
"""Where heads with state in Redis are told that it is; nothing listens there."""
ELECTION_PACE = {"LEASE_DURATION": "4", "RENEW_DEADLINE": "3", "RETRY_PERIOD": "0.5"}
"""Seconds; a test that kills leaders must not wait out the 15 s of an installation."""


def with_muster(options: Options | None = None) -> Options:
    """The options with Muster's CRDs added, which must exist before the controller manager."""
    chosen = options or Options()
    return replace(chosen, crds=(*chosen.crds, *CRDS))


def with_app_wrappers(options: Options | None = None) -> Options:
    """The options with the CRDs of Muster and of AppWrapper added, but for that of mcad.ibm.com."""
    chosen = with_muster(options)
    return replace(chosen, crds=(*chosen.crds, *sorted((APP_WRAPPER / "crds").glob("*.yaml"))))


@dataclass
class Muster:
    """The programs of one installation on one cluster."""

    cluster: Cluster
    webhook: Process
    webhook_health: int
    coordinators: list[Process] = field(default_factory=list)
    coordinator_health: list[int] = field(default_factory=list)
    wrappers: list[Process] = field(default_factory=list)
    wrapper_health: list[int] = field(default_factory=list)
    forecaster_health: int = 0

    def start_coordinator(
        self, kubeconfig: Path | None = None, settings: Mapping[str, str] | None = None
    ) -> Process:
        """Start one more replica; `settings` are named without their prefix."""
        number = len(self.coordinators)
        port = self.cluster.ports.allocate()
        own = self.cluster.service_account_kubeconfig(NAMESPACE, "muster-coordinator")
        chosen = {
            "KUBECONFIG": str(kubeconfig or own),
            "IDENTITY": f"coordinator-{number}",
            "LISTEN_PORT": str(port),
            **ELECTION_PACE,
            **(settings or {}),
        }
        process = self.cluster.spawn(
            f"coordinator-{number}",
            [sys.executable, "-m", "coordinator"],
            _environment("MUSTER_COORDINATOR_", chosen),
        )
        self.coordinators.append(process)
        self.coordinator_health.append(port)
        return process

    def start_wrapper(
        self, kubeconfig: Path | None = None, settings: Mapping[str, str] | None = None
    ) -> Process:
        """Start a replica of what creates the objects of AppWrappers, where there are any."""
        number, port = len(self.wrappers), self.cluster.ports.allocate()
        own = self.cluster.service_account_kubeconfig(NAMESPACE, "muster-wrapper")
        name = f"wrapper-{number}"
        chosen = {
            "KUBECONFIG": str(kubeconfig or own),
            "IDENTITY": name,
            "LISTEN_PORT": str(port),
            **ELECTION_PACE,
            **(settings or {}),
        }
        environment = _environment("MUSTER_WRAPPER_", chosen)
        process = self.cluster.spawn(name, [sys.executable, "-m", "wrapper"], environment)
        self.wrappers.append(process)
        self.wrapper_health.append(port)
        _wait_ready(process, port)
        return process

    def start_redis_users(self, settings: Mapping[str, str]) -> Process:
        """Start what makes users of Redis; `settings` say where the servers are."""
        port = self.cluster.ports.allocate()
        chosen = {
            "KUBECONFIG": str(self.cluster.service_account_kubeconfig(NAMESPACE, "muster-redis")),
            "ADDRESS": REDIS,
            "LISTEN_PORT": str(port),
            **ELECTION_PACE,
            **settings,
        }
        environment = _environment("MUSTER_REDIS_", chosen)
        process = self.cluster.spawn(
            "redis-users", [sys.executable, "-m", "headstate"], environment
        )
        _wait_ready(process, port)
        return process

    def start_forecaster(self, settings: Mapping[str, str]) -> Process:
        """Start what tells Gangs their expected starts."""
        process, self.forecaster_health = start_forecaster(self.cluster, settings)
        return process

    def wait_ready(self) -> None:
        """Wait until every program that runs is synced and serves."""
        _wait_ready(self.webhook, self.webhook_health)
        replicas = (*self.coordinators, *self.wrappers)
        ports = (*self.coordinator_health, *self.wrapper_health)
        for process, port in zip(replicas, ports, strict=True):
            if process.running:
                _wait_ready(process, port)

    def leader(self, program: str = "coordinator") -> str:
        """The identity of the replica that holds the Lease; empty while none does."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/muster-{program}"
        if not self.cluster.api.exists(path):
            return ""
        lease = self.cluster.api.get(path)
        return str(lease["spec"].get("holderIdentity") or "")

    def wait_led(self, program: str = "coordinator") -> None:
        """Wait until a replica of the program leads."""
        wait_until(lambda: bool(self.leader(program)), f"a {program} to lead")

    def forecaster_metrics(self) -> str:
        """The metrics page of the forecaster."""
        return _get(self.forecaster_health, "/metrics")

    def metrics(self, number: int = 0) -> str:
        """The metrics page of one coordinator."""
        return _get(self.coordinator_health[number], "/metrics")


def start_muster(
    cluster: Cluster,
    *,
    coordinators: int = 1,
    kubeconfig: Path | None = None,
    settings: Mapping[str, str] | None = None,
    app_wrappers: str = "None",
    components: Sequence[str] = (),
) -> Muster:
    """Apply Muster's manifests and start its programs from this checkout, until all are ready.

    `kubeconfig` replaces that of the coordinators (tests put a proxy in between), `settings` are
    theirs too. Without coordinators, the caller is to start one. `app_wrappers` is the setting of
    the webhook; with it the component for AppWrappers is applied, and so are the `components`.
    """
    wrapping = ["app-wrapper", "wrapped-secrets"] if app_wrappers != "None" else []
    objects = _installed(cluster, [*wrapping, *components])
    rest = (each for each in objects if each["kind"] not in _CONFIGURATIONS)
    apply(cluster, rest, *_AS_THEY_ARE)
    muster = _start_webhook(cluster, app_wrappers, objects)
    wait_enforced(cluster)
    for _ in range(coordinators):
        muster.start_coordinator(kubeconfig, settings)
    muster.wait_ready()
    if coordinators:
        muster.wait_led()
    return muster


def start_with_app_wrappers(cluster: Cluster) -> Muster:
    """Start all programs that AppWrappers take."""
    muster = start_muster(cluster, settings={"APP_WRAPPERS": "true"}, app_wrappers="All")
    muster.start_wrapper()
    return muster


def wait_app_wrappers_trusted(cluster: Cluster) -> None:
    """Wait until AppWrappers that are created from now on are trusted."""
    paths = (each.path(name=NAME) for each in RULES)
    made = [cluster.api.get(path)["metadata"]["creationTimestamp"] for path in paths]
    trusted = max(map(datetime.fromisoformat, made)) + HEARD
    wait_until(lambda: datetime.now(UTC) > trusted, "the rules for AppWrappers to be trusted")


def start_forecaster(cluster: Cluster, settings: Mapping[str, str]) -> tuple[Process, int]:
    """Start what tells Gangs their expected starts, with the rights of the manifests.

    Returns its health port too. It is ready when it has told what there was to tell.
    """
    rbac = ROOT / "manifests" / "forecaster" / "rbac.yaml"
    cluster.kubectl("apply", *_AS_THEY_ARE, "-f", str(rbac))
    own = cluster.service_account_kubeconfig(NAMESPACE, "muster-forecaster")
    port = cluster.ports.allocate()
    chosen = {"KUBECONFIG": str(own), "LISTEN_PORT": str(port), **settings}
    environment = _environment("MUSTER_FORECASTER_", chosen)
    process = cluster.spawn("forecaster", [sys.executable, "-m", "forecaster"], environment)
    _wait_ready(process, port)
    return process, port


def start_dispatcher(cluster: Cluster, name: str, settings: Mapping[str, str]) -> Process:
    """Start a replica of what sends gangs to members, with the rights of the manifests."""
    rbac = ROOT / "manifests" / "dispatcher" / "rbac.yaml"
    cluster.kubectl("apply", *_AS_THEY_ARE, "-f", str(rbac))
    port = cluster.ports.allocate()
    own = cluster.service_account_kubeconfig(NAMESPACE, "muster-dispatcher")
    chosen = {
        "KUBECONFIG": str(own),
        "IDENTITY": name,
        "LISTEN_PORT": str(port),
        **ELECTION_PACE,
        **settings,
    }
    environment = _environment("MUSTER_DISPATCHER_", chosen)
    process = cluster.spawn(name, [sys.executable, "-m", "dispatcher"], environment)
    _wait_ready(process, port)
    return process


@dataclass(frozen=True)
class Extender:
    """A running extender, and how kube-scheduler is to call it."""

    process: Process
    port: int
    health: int
    certificates: Path

    def scheduler_config(self, variant: str = "configuration", **changes: Any) -> dict[str, Any]:
        """A scheduler's configuration of the manifests, pointed at this extender.

        `changes` are to the entry of the extender.
        """
        loaded = _scheduler_manifest(variant)
        (entry,) = loaded["extenders"]
        entry["urlPrefix"] = f"https://127.0.0.1:{self.port}"
        entry["tlsConfig"] = {
            "caFile": str(self.certificates / "ca.crt"),
            "certFile": str(self.certificates / "client.crt"),
            "keyFile": str(self.certificates / "client.key"),
        }
        entry.update(changes)
        return loaded

    def metric(self, name: str) -> float:
        """The sum of a metric of the extender over its labels; nan where it does not answer.

        What equals nothing ends no wait and passes no check, as zero might.
        """
        lines = _get(self.health, "/metrics").splitlines()
        found = (line for line in lines if line.split("{")[0].split(" ")[0] == name)
        return sum(float(line.rsplit(" ", 1)[1]) for line in found) if lines else math.nan

    def wait_ready(self) -> None:
        """Wait until it is synced and serves."""
        _wait_ready(self.process, self.health)


def _scheduler_manifest(variant: str) -> dict[str, Any]:
    """The configuration, which lies in a ConfigMap where other objects are in the file too."""
    path = ROOT / "manifests" / "scheduler" / f"{variant}.yaml"
    found: dict[str, dict[str, Any]] = {
        each["kind"]: each for each in yaml.safe_load_all(path.read_text())
    }
    if "ConfigMap" not in found:
        return found["KubeSchedulerConfiguration"]
    loaded: dict[str, Any] = yaml.safe_load(found["ConfigMap"]["data"]["configuration.yaml"])
    return loaded


def start_extender(
    cluster: Cluster,
    *,
    name: str = "extender",
    module: str = "extender",
    kubeconfig: Path | None = None,
    settings: Mapping[str, str] | None = None,
    certificates: Path | None = None,
) -> Extender:
    """Start an extender with the rights of the manifests; the scheduler is the caller's to start.

    Options(scheduler=False), then `cluster.start_scheduler(extender.scheduler_config())`. A second
    replica shows the `certificates` of the first.
    """
    for path in (BASE / "namespace.yaml", ROOT / "manifests" / "extender" / "rbac.yaml"):
        cluster.kubectl("apply", *_AS_THEY_ARE, "-f", str(path))
    certificates = certificates or _extender_certificates(cluster, name)
    port, health = cluster.ports.allocate(), cluster.ports.allocate()
    own = cluster.service_account_kubeconfig(NAMESPACE, "muster-extender")
    chosen = {
        "KUBECONFIG": str(kubeconfig or own),
        "LISTEN_ADDRESS": "127.0.0.1",
        "LISTEN_PORT": str(port),
        "HEALTH_ADDRESS": "127.0.0.1",
        "HEALTH_PORT": str(health),
        "CERTIFICATE_FILE": str(certificates / "tls.crt"),
        "KEY_FILE": str(certificates / "tls.key"),
        "CLIENT_CA_FILE": str(certificates / "ca.crt"),
        **(settings or {}),
    }
    environment = _environment("MUSTER_EXTENDER_", chosen)
    process = cluster.spawn(name, [sys.executable, "-m", module], environment)
    extender = Extender(process, port, health, certificates)
    extender.wait_ready()
    return extender


def _extender_certificates(cluster: Cluster, name: str) -> Path:
    certificates = cluster.directory / f"{name}-tls"
    _issue(cluster, f"{name}-certs", certificates, "--client", "system:kube-scheduler")
    return certificates


def _issue(cluster: Cluster, name: str, directory: Path, *more: str) -> None:
    """Let our own program make certificates for servers on loopback."""
    command = [sys.executable, "-m", "certs", "issue", "--ip", "127.0.0.1"]
    command += ["--dir", str(directory), *more]
    process = cluster.spawn(name, command, {"PYTHONPATH": str(ROOT)})
    if process.wait(WAIT_SECONDS) != 0:
        raise TestbedError(f"no certificates:\n{process.log_tail()}")


def _installed(cluster: Cluster, components: Sequence[str]) -> list[Json]:
    """What an installation consists of beside the pods of the programs, and the CRDs."""
    directory = cluster.directory / "overlay"
    overlay = combination(directory, list(components)) if components else DEFAULT
    return around_programs(built(cluster, overlay))


def spawn_webhook(
    cluster: Cluster, certificates: Path, port: int, health: int, **more: str
) -> Process:
    """Start a webhook with the files of a folder and more settings, without waiting for it."""
    settings = {
        "KUBECONFIG": str(cluster.service_account_kubeconfig(NAMESPACE, "muster-webhook")),
        "LISTEN_ADDRESS": "127.0.0.1",
        "LISTEN_PORT": str(port),
        "HEALTH_ADDRESS": "127.0.0.1",
        "HEALTH_PORT": str(health),
        "CERTIFICATE_FILE": str(certificates / "tls.crt"),
        "KEY_FILE": str(certificates / "tls.key"),
        **more,
    }
    environment = _environment("MUSTER_WEBHOOK_", settings)
    return cluster.spawn("webhook", [sys.executable, "-m", "webhook"], environment)


def _start_webhook(cluster: Cluster, app_wrappers: str, objects: Iterable[Json]) -> Muster:
    certificates = cluster.directory / "webhook-tls"
    _issue(cluster, "certs", certificates)
    port, health = cluster.ports.allocate(), cluster.ports.allocate()
    more = {"APP_WRAPPERS": app_wrappers, "REDIS_ADDRESS": f"redis://{REDIS}", "DISPATCH": "true"}
    process = spawn_webhook(cluster, certificates, port, health, **more)
    _wait_ready(process, health)
    called = (each for each in objects if each["kind"] in _CONFIGURATIONS)
    found = _on_loopback(called, f"https://127.0.0.1:{port}", certificates / "ca.crt")
    apply(cluster, found, *_AS_THEY_ARE)
    return Muster(cluster, process, health)


def _on_loopback(configurations: Iterable[Json], url: str, ca_file: Path) -> Iterator[Json]:
    """The webhook's configurations, pointed at loopback."""
    bundle = base64.b64encode(ca_file.read_bytes()).decode()
    for configuration in configurations:
        for webhook in configuration["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"{url}{path}", "caBundle": bundle}
        yield configuration


def _environment(prefix: str, settings: Mapping[str, str]) -> dict[str, str]:
    return {**{prefix + name: value for name, value in settings.items()}, "PYTHONPATH": str(ROOT)}


def _wait_ready(process: Process, port: int) -> None:
    def ready() -> bool:
        process.expect_running()
        return _get(port, "/readyz") != ""

    wait_until(ready, f"{process.name} to be ready")


def _get(port: int, path: str) -> str:
    """What a program answers on its health port; empty where it does not say 200."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            text: str = answer.read().decode()
            return text
    except OSError:
        return ""
