"""Runs a real Ray with its autoscaler for one RayCluster."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

from testbed.api import Json
from testbed.cluster import Cluster
from testbed.following import Follower
from testbed.processes import Process
from testbed.ray_nodes import ENVIRONMENT, RAY, RayNodes

_WITHOUT_DASHBOARD = ("--include-dashboard=false", "--no-monitor")


@dataclass(frozen=True)
class Asked:
    """What the spec of the first worker group said from a time on."""

    time: float
    """On this machine's monotonic clock."""
    replicas: int
    deleted: tuple[str, ...]
    """The pods in `scaleStrategy.workersToDelete`."""


class RayRuntime(RayNodes):
    """The nodes of Ray of one RayCluster, and the autoscaler beside its head.

    `env` is added to the environment of the autoscaler, as `autoscalerOptions.env` would add it.
    """

    def __init__(self, cluster: Cluster, namespace: str, name: str, env: dict[str, str]) -> None:
        super().__init__(cluster, namespace, name, _WITHOUT_DASHBOARD)
        self.asked: list[Asked] = []
        path = f"/apis/ray.io/v1/namespaces/{namespace}/rayclusters"
        self._clusters = Follower(cluster.api, path, self._on_cluster)
        self._autoscaler = self._start_autoscaler({**env, "RAY_HEAD_POD_NAME": self.head})

    def close(self) -> None:
        """End all processes of Ray and take away their files."""
        self._clusters.close()
        self._autoscaler.kill()
        super().close()

    def request(self, count: int, **resources: float) -> None:
        """Have the cluster hold so many bundles of resources, instead of what was asked before."""
        self.ask("request", json.dumps([resources] * count))

    def log(self) -> str:
        """All that the autoscaler has written."""
        return self._autoscaler.log.read_text(errors="replace")

    def expect_running(self) -> None:
        """Raise with the end of its log where the autoscaler has ended."""
        self._autoscaler.expect_running()

    def _start_autoscaler(self, env: dict[str, str]) -> Process:
        """Start it with the rights that KubeRay gives it: those of the service account it makes."""
        args = ("create", "token", self._name, "-n", self._namespace, "--duration=24h")
        token = Path(self._folder.name) / "token"
        token.write_text(self._cluster.kubectl(*args))
        connection = {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT_HTTPS": str(self._cluster.site.ports.apiserver),
            "KUBERAY_CRD_VER": "v1",
            "TESTBED_RAY_HEAD": self._address,
            "TESTBED_RAY_TOKEN": str(token),
            "TESTBED_RAY_CA": str(self._cluster.ca_file),
        }
        argv = [*RAY, "kuberay-autoscaler"]
        argv += ["--cluster-name", self._name, "--cluster-namespace", self._namespace]
        name = f"ray-autoscaler-{self._name}"
        return self._cluster.spawn(name, argv, {**ENVIRONMENT, **connection, **env})

    def _on_cluster(self, _: str, found: Json) -> None:
        """Keep what is asked of the first worker group."""
        if found["metadata"]["name"] != self._name:
            return
        group = found["spec"]["workerGroupSpecs"][0]
        deleted = group.get("scaleStrategy", {}).get("workersToDelete") or ()
        said = group["replicas"], tuple(deleted)
        if not self.asked or (self.asked[-1].replicas, self.asked[-1].deleted) != said:
            self.asked.append(Asked(time.monotonic(), *said))
