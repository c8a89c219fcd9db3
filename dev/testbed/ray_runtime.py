"""Runs a real Ray for one RayCluster: its head, its autoscaler and the workers whose pods run.

kwok runs no containers. Each pod of the RayCluster that kwok calls ready has here the process of
Ray that its container would be, with the name that KubeRay tells it, until the pod is deleted. So
Ray sees nodes where there are running pods, and none for a pod behind a gate.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from testbed.api import Json
from testbed.closing import Closing
from testbed.cluster import Cluster
from testbed.errors import TestbedError
from testbed.following import DELETED, Follower
from testbed.processes import Process
from testbed.waiting import wait_until

_HERE = Path(__file__).parent
RAY_PYTHON = _HERE.parent / "out" / "ray-venv" / "bin" / "python"
REMEDY = "`make ray` installs it into out/ray-venv"
_RAY = (str(RAY_PYTHON), str(_HERE / "ray_on_loopback.py"))
_ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_enable_autoscaler_v2": "1"}
"""Nothing is reported to Ray's makers; version 2 of the autoscaler, as KubeRay's default is."""
_STARTED = "Ray runtime started"
_HEAD_GROUP = "headgroup"
_GROUP, _TYPE, _CLUSTER = "ray.io/group", "ray.io/node-type", "ray.io/cluster"
_STORE_BYTES = 80_000_000
"""Of shared memory for each node; Ray takes no less."""


def missing() -> str:
    """Say that there is no Ray, and how to get it; empty where there is one."""
    return "" if RAY_PYTHON.exists() else f"Ray is not installed: {REMEDY}"


@dataclass(frozen=True)
class Asked:
    """What the spec of the first worker group said from a time on."""

    time: float
    """On this machine's monotonic clock."""
    replicas: int
    deleted: tuple[str, ...]
    """The pods in `scaleStrategy.workersToDelete`."""


class RayRuntime(Closing):
    """The processes of Ray of one RayCluster that has a head pod.

    `env` is added to the environment of the autoscaler, as `autoscalerOptions.env` would add it.
    """

    def __init__(self, cluster: Cluster, namespace: str, name: str, env: dict[str, str]) -> None:
        self._cluster, self._namespace, self._name = cluster, namespace, name
        self._address = f"127.0.0.1:{cluster.ports.allocate()}"
        # A socket's path has at most 107 bytes, and Ray adds 70 to this.
        self._folder = tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True)
        self._nodes: dict[str, Process] = {}
        self.asked: list[Asked] = []
        head = self._start_head()
        self._followers = (
            Follower(cluster.api, f"/api/v1/namespaces/{namespace}/pods", self._on_pod),
            Follower(cluster.api, f"/apis/ray.io/v1/namespaces/{namespace}/rayclusters", self._on),
        )
        self._autoscaler = self._start_autoscaler({**env, "RAY_HEAD_POD_NAME": head})

    def close(self) -> None:
        """End all processes of Ray and take away their files."""
        for follower in self._followers:
            follower.close()
        for process in (self._autoscaler, *self._nodes.values()):
            process.kill()
        self._folder.cleanup()

    def request(self, count: int, **resources: float) -> None:
        """Have the cluster hold so many bundles of resources, instead of what was asked before."""
        self._ask("request", json.dumps([resources] * count))

    def seen(self) -> Json:
        """What Ray sees: the pods of its `running` nodes; `pending` pods and `requested` workers.

        The last two are numbers. A pod that Ray does not run on yet is pending, gated or not.
        """
        found: Json = json.loads(self._ask("seen"))
        return found

    def log(self) -> str:
        """All that the autoscaler has written."""
        return self._autoscaler.log.read_text(errors="replace")

    def expect_running(self) -> None:
        """Raise with the end of its log where the autoscaler has ended."""
        self._autoscaler.expect_running()

    # The processes

    def _start_head(self) -> str:
        """Start the head under the name of its pod, and return that when Ray answers."""
        pod = wait_until(self._head_pod, f"the head of {self._name} to run")
        _, _, port = self._address.partition(":")
        arguments = ["--head", f"--port={port}", "--include-dashboard=false", "--no-monitor"]
        arguments += ["--num-cpus=0", f"--temp-dir={self._folder.name}"]
        self._start_node(pod, arguments)
        wait_until(lambda: pod in self._running(), "Ray's head to answer")
        return pod

    def _start_node(self, pod: str, arguments: list[str], group: str = _HEAD_GROUP) -> None:
        """Start what the container of Ray in a pod would be."""
        argv = [*_RAY, "start", "--block", "--node-ip-address=127.0.0.1", *arguments]
        argv += ["--min-worker-port=0", "--max-worker-port=0", "--dashboard-agent-listen-port=0"]
        argv += [f"--object-store-memory={_STORE_BYTES}"]
        named = {"RAY_CLOUD_INSTANCE_ID": pod, "RAY_NODE_TYPE_NAME": group}
        self._nodes[pod] = self._cluster.spawn(f"ray-{pod}", argv, {**_ENVIRONMENT, **named})

    def _start_autoscaler(self, env: dict[str, str]) -> Process:
        """Start it with the rights that KubeRay gives it: those of the service account it makes."""
        args = ("create", "token", self._name, "-n", self._namespace, "--duration=24h")
        token = Path(self._folder.name) / "token"
        token.write_text(self._cluster.kubectl(*args))
        port = str(self._cluster.site.ports.apiserver)
        connection = {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT_HTTPS": port,
            "KUBERAY_CRD_VER": "v1",
            # For `ray health-check`, which the autoscaler calls: it stays on loopback by this too.
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
            "PATH": f"{RAY_PYTHON.parent}:{os.environ['PATH']}",
            "TESTBED_RAY_HEAD": self._address,
            "TESTBED_RAY_TOKEN": str(token),
            "TESTBED_RAY_CA": str(self._cluster.ca_file),
        }
        argv = [*_RAY, "kuberay-autoscaler"]
        argv += ["--cluster-name", self._name, "--cluster-namespace", self._namespace]
        name = f"ray-autoscaler-{self._name}"
        return self._cluster.spawn(name, argv, {**_ENVIRONMENT, **connection, **env})

    def _ask(self, *arguments: str) -> str:
        command = [str(RAY_PYTHON), str(_HERE / "ray_client.py"), self._address, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        if done.returncode != 0:
            raise TestbedError(f"Ray does not answer {arguments[0]!r}: {done.stderr.strip()}")
        return done.stdout

    def _running(self) -> list[str]:
        with contextlib.suppress(TestbedError, subprocess.TimeoutExpired):
            return list(self.seen()["running"])
        return []

    # What happens on the cluster

    def _head_pod(self) -> str:
        path = f"/api/v1/namespaces/{self._namespace}/pods"
        found = (pod for pod in self._cluster.api.get(path)["items"] if self._is_node(pod, "head"))
        return next((pod["metadata"]["name"] for pod in found), "")

    def _is_node(self, pod: Json, kind: str) -> bool:
        """Whether a pod is one of this RayCluster whose containers would run."""
        labels = pod["metadata"].get("labels", {})
        ours = (labels.get(_CLUSTER), labels.get(_TYPE)) == (self._name, kind)
        return ours and pod["status"].get("phase") == "Running"

    def _on_pod(self, change: str, pod: Json) -> None:
        name = pod["metadata"]["name"]
        if change == DELETED or "deletionTimestamp" in pod["metadata"]:
            if name in self._nodes:
                self._nodes[name].kill()
        elif name not in self._nodes and self._is_node(pod, "worker"):
            arguments = [f"--address={self._address}", "--num-cpus=1"]
            self._start_node(name, arguments, pod["metadata"]["labels"][_GROUP])
            # Of two that start at once in one folder, one hangs.
            wait_until(lambda: _STARTED in self._nodes[name].log.read_text(), f"Ray on {name}")

    def _on(self, _: str, found: Json) -> None:
        """Keep what is asked of the first worker group."""
        if found["metadata"]["name"] != self._name:
            return
        group = found["spec"]["workerGroupSpecs"][0]
        deleted = group.get("scaleStrategy", {}).get("workersToDelete") or ()
        said = group["replicas"], tuple(deleted)
        if not self.asked or (self.asked[-1].replicas, self.asked[-1].deleted) != said:
            self.asked.append(Asked(time.monotonic(), *said))
