"""The arguments of each program of the control plane on loopback."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed.build import Artifacts
from testbed.credentials import Pki
from testbed.options import Options

ETCD = "etcd"
API_SERVER = "kube-apiserver"
CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
KWOK = "kwok"
KUBERAY = "ray-operator"

# A slow client would be what a test measures: none of them is to wait for its own rate limit.
_UNLIMITED = ("--kube-api-qps=5000", "--kube-api-burst=10000")
_KWOK_PARALLELISM = 16


@dataclass(frozen=True)
class Ports:
    """Where each program listens on 127.0.0.1."""

    etcd: int
    etcd_peer: int
    apiserver: int
    controller_manager: int
    scheduler: int
    kwok: int
    kuberay_metrics: int
    kuberay_health: int


@dataclass(frozen=True)
class Site:
    """Where a cluster's files and ports are."""

    root: Path
    ports: Ports
    programs: Artifacts

    @property
    def pki(self) -> Pki:
        """The certificates."""
        return Pki(self.root / "pki")

    @property
    def logs(self) -> Path:
        """One file for each program."""
        return self.root / ".logs"

    @property
    def etcd_data(self) -> Path:
        """All state of the cluster."""
        return self.root / "etcd"

    @property
    def tokens(self) -> Path:
        """The API server's list of static tokens."""
        return self.root / "pki" / "tokens.csv"

    @property
    def server(self) -> str:
        """The API server's address."""
        return f"https://127.0.0.1:{self.ports.apiserver}"

    def kubeconfig(self, name: str) -> Path:
        """How one identity connects."""
        return self.root / f"{name}.kubeconfig"


def etcd(site: Site) -> list[str]:
    """Keep the state without ever syncing to disk: it is thrown away with the cluster."""
    client = f"http://127.0.0.1:{site.ports.etcd}"
    peer = f"http://127.0.0.1:{site.ports.etcd_peer}"
    return [
        str(site.programs.program(ETCD)),
        f"--data-dir={site.etcd_data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        f"--quota-backend-bytes={8 << 30}",
        "--unsafe-no-fsync",
        # A member that is alone need not wait a second for others before it elects itself.
        "--heartbeat-interval=20",
        "--election-timeout=200",
        "--log-level=warn",
    ]


def apiserver(site: Site, options: Options) -> list[str]:
    """Serve the API with RBAC and the default admission plugins."""
    pki = site.pki
    return [
        str(site.programs.program(API_SERVER)),
        f"--etcd-servers=http://127.0.0.1:{site.ports.etcd}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={site.ports.apiserver}",
        # Loopback is no address that pods could be given for the `kubernetes` service.
        "--endpoint-reconciler-type=none",
        f"--tls-cert-file={pki.certificate}",
        f"--tls-private-key-file={pki.key}",
        f"--client-ca-file={pki.ca}",
        f"--token-auth-file={site.tokens}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki.service_accounts}",
        f"--service-account-signing-key-file={pki.service_accounts}",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--allow-privileged=true",
        *_gates(options),
        *options.apiserver_args,
    ]


def controller_manager(site: Site, options: Options) -> list[str]:
    """Run all controllers under one identity that may do everything."""
    return [
        str(site.programs.program(CONTROLLER_MANAGER)),
        f"--kubeconfig={site.kubeconfig(CONTROLLER_MANAGER)}",
        *_serving(site, site.ports.controller_manager),
        "--leader-elect=false",
        # This one tells kubelets how long to cache Secrets: an annotation on every node, changed on
        # all of them whenever the cluster grows by some. Here it is half the cost of adding nodes.
        "--controllers=*,-ttl-controller",
        f"--root-ca-file={site.pki.ca}",
        f"--service-account-private-key-file={site.pki.service_accounts}",
        f"--node-monitor-grace-period={options.node_lease_seconds + 10}s",
        *_UNLIMITED,
        *_gates(options),
        *options.controller_manager_args,
    ]


def scheduler(site: Site, options: Options, configuration: Mapping[str, object]) -> list[str]:
    """Run the stock scheduler with a complete configuration."""
    path = site.root / "scheduler.json"
    path.write_text(json.dumps(configuration, indent=2))
    program = str(site.programs.program(SCHEDULER))
    serving = _serving(site, site.ports.scheduler)
    return [program, f"--config={path}", *serving, *_gates(options)]


def _gates(options: Options) -> list[str]:
    return [f"--feature-gates={options.feature_gates}"] if options.feature_gates else []


def kwok(site: Site, options: Options) -> list[str]:
    """Play the kubelet of every node, by the stages of the options."""
    settings = site.root / "kwok.json"
    parallelism = {
        "podPlayStageParallelism": _KWOK_PARALLELISM,
        "nodePlayStageParallelism": _KWOK_PARALLELISM,
        "nodeLeaseParallelism": _KWOK_PARALLELISM,
    }
    kind = {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration"}
    settings.write_text(json.dumps({**kind, "options": parallelism}))
    stages = (site.programs.stages / name for name in options.kwok_stages)
    return [
        str(site.programs.program(KWOK)),
        f"--kubeconfig={site.kubeconfig(KWOK)}",
        *(f"--config={path}" for path in (settings, *stages)),
        f"--server-address=127.0.0.1:{site.ports.kwok}",
        "--manage-all-nodes=true",
        # Room for an address for each of many thousand pods.
        "--cidr=10.128.0.0/12",
        f"--node-lease-duration-seconds={options.node_lease_seconds}",
    ]


def kuberay(site: Site, options: Options) -> list[str]:
    """Run KubeRay's operator with its own defaults; the kubeconfig comes by environment."""
    return [
        str(site.programs.program(KUBERAY)),
        "--enable-leader-election=false",
        f"--metrics-addr=127.0.0.1:{site.ports.kuberay_metrics}",
        f"--health-probe-bind-address=127.0.0.1:{site.ports.kuberay_health}",
        *options.kuberay_args,
    ]


def _serving(site: Site, port: int) -> list[str]:
    return [
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={site.pki.certificate}",
        f"--tls-private-key-file={site.pki.key}",
    ]
