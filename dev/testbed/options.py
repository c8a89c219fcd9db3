"""The options of a testbed cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from testbed.errors import TestbedError
from testbed.recipes import chosen_kuberay, chosen_kubernetes

SchedulerConfig = Mapping[str, Any]

FAST_STAGES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
)
"""Pods run at once, and those of Jobs end at once."""

WITHOUT_WATCH_LIST = ("--feature-gates=WatchList=false",)
"""An API server lists what is to be watched, as those of 1.31 and 1.33 do; newer ones stream it."""

SLOW_JOB_STAGES = (
    *(s for s in FAST_STAGES if "complete" not in s),
    "pod/general/pod-complete.yaml",
)
"""The same, but pods of Jobs end after the time that `lasting` notes on them, or 1 to 5 s."""


def lasting(seconds: float) -> dict[str, str]:
    """Return the annotations of a pod of a Job that is to run for so long."""
    names = ("delay", "jitter-delay")
    return {f"pod-complete.stage.kwok.x-k8s.io/{name}": f"{seconds:g}s" for name in names}


@dataclass(frozen=True)
class Options:
    """What a cluster consists of; the default is everything, as a stock cluster has it."""

    kubernetes: str = field(default_factory=chosen_kubernetes)
    """Its version, of those in `testbed.recipes`; MUSTER_TESTBED_KUBERNETES sets the default."""
    kuberay: bool = True
    kuberay_version: str = field(default_factory=chosen_kuberay)
    """One of those in `testbed.recipes`; MUSTER_TESTBED_KUBERAY sets the default."""
    kuberay_args: tuple[str, ...] = ()
    """Flags of the operator, such as --reconcile-concurrency=10 or --feature-gates=..."""
    kuberay_env: Mapping[str, str] = field(default_factory=dict)
    """Further variables of the operator, such as the proxy by which it is to reach dashboards."""
    kwok: bool = True
    kwok_stages: tuple[str, ...] = FAST_STAGES
    """What becomes of nodes and pods, as files of kwok's own; see `SLOW_JOB_STAGES`."""
    scheduler: bool = True
    scheduler_config: SchedulerConfig | Path | None = None
    """A KubeSchedulerConfiguration; the API server and the credentials are filled in."""
    apiserver_args: tuple[str, ...] = ()
    controller_manager_args: tuple[str, ...] = ()
    feature_gates: str = ""
    """Gates of API server, controller manager and kube-scheduler, such as "GenericWorkload=true";
    a kube-scheduler that is started later has them too."""
    crds: tuple[Path, ...] = ()
    """Further CRDs, one to a file, there before the controller manager starts. It looks for new
    kinds every 30 s only, and until then does not collect what a deleted owner leaves."""
    users: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: {"muster": (), "tenant": ()}
    )
    """Further users with their groups; they may do nothing but what RBAC objects grant them."""
    refusals_expected: bool = False
    """Whether rights are taken from Muster's accounts here on purpose. Where not, a request of
    theirs that RBAC refuses fails the run of the tests (`tests/rights_plugin.py`)."""
    node_lease_seconds: int = 200
    """How long a node may be silent. A kubelet's 40 would be too short for kwok on a machine that
    is busy for long. Raise it for thousands of nodes: each renews its lease four times in it."""


def scheduler_configuration(
    given: SchedulerConfig | Path | None, kubeconfig: Path
) -> Mapping[str, object]:
    """Complete a KubeSchedulerConfiguration with the connection; no election unless it says so."""
    loaded = yaml.safe_load(given.read_text()) if isinstance(given, Path) else dict(given or {})
    if not isinstance(loaded, dict):
        raise TestbedError(f"not a KubeSchedulerConfiguration: {given}")
    connection = {"kubeconfig": str(kubeconfig), "qps": 5000, "burst": 10000}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        **loaded,
        "clientConnection": connection,
    }
