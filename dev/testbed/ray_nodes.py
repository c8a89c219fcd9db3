"""Runs the nodes of a real Ray for one RayCluster: its head, and the workers whose pods run.

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
from collections.abc import Sequence
from pathlib import Path

from testbed.api import Json
from testbed.closing import Closing
from testbed.cluster import Cluster
from testbed.errors import TestbedError
from testbed.following import DELETED, Follower
from testbed.kubelet.containers import environment
from testbed.processes import Process
from testbed.waiting import wait_until

_HERE = Path(__file__).parent
RAY_PYTHON = _HERE.parents[1] / "out" / "ray-venv" / "bin" / "python"
REMEDY = "`make ray` installs it into out/ray-venv"
RAY = (str(RAY_PYTHON), str(_HERE / "ray_on_loopback.py"))
ENVIRONMENT = {
    # Nothing is reported to Ray's makers.
    "RAY_USAGE_STATS_ENABLED": "0",
    # Version 2 of the autoscaler, as KubeRay's default is.
    "RAY_enable_autoscaler_v2": "1",
    # All of Ray stays on loopback by this, the drivers of jobs too.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    # What Ray calls by name, and the commands of jobs.
    "PATH": f"{RAY_PYTHON.parent}:{os.environ['PATH']}",
}
_STARTED = "Ray runtime started"
_HEAD_GROUP = "headgroup"
_GROUP, _TYPE, _CLUSTER = "ray.io/group", "ray.io/node-type", "ray.io/cluster"
_MODE, _TOKEN = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN"
_STORE_BYTES = 80_000_000
"""Of shared memory for each node; Ray takes no less."""


def missing() -> str:
    """Say that there is no Ray, and how to get it; empty where there is one."""
    return "" if RAY_PYTHON.exists() else f"Ray is not installed: {REMEDY}"


class RayNodes(Closing):
    """The processes of Ray of one RayCluster that has a head pod.

    `head_arguments` are those of `ray start` for the head alone.
    """

    def __init__(
        self, cluster: Cluster, namespace: str, name: str, head_arguments: Sequence[str]
    ) -> None:
        self._cluster, self._namespace, self._name = cluster, namespace, name
        self._address = f"127.0.0.1:{cluster.ports.allocate()}"
        # A socket's path has at most 107 bytes, and Ray adds 70 to this.
        self._folder = tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True)
        self._nodes: dict[str, Process] = {}
        self.token = ""
        """What Ray wants to be told with every request; empty where it wants none."""
        self.head = self._start_head(head_arguments)
        """The name of its pod."""
        path = f"/api/v1/namespaces/{namespace}/pods"
        self._pods = Follower(cluster.api, path, self._on_pod)

    def close(self) -> None:
        """End all processes of Ray and take away their files."""
        self._pods.close()
        for process in self._nodes.values():
            process.kill()
        self._folder.cleanup()

    def process(self, pod: str) -> Process:
        """The process of a pod whose node of Ray has started."""
        return self._nodes[pod]

    def seen(self) -> Json:
        """What Ray sees: the pods of its `running` nodes; `pending` pods and `requested` workers.

        The last two are numbers. A pod that Ray does not run on yet is pending, gated or not.
        """
        found: Json = json.loads(self.ask("seen"))
        return found

    def ask(self, *arguments: str) -> str:
        """Ask Ray by its own client; returns what that prints."""
        command = [str(RAY_PYTHON), str(_HERE / "ray_client.py"), self._address, *arguments]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={**os.environ, **self._authentication()},
        )
        if done.returncode != 0:
            raise TestbedError(f"Ray does not answer {arguments[0]!r}: {done.stderr.strip()}")
        return done.stdout

    # The processes

    def _start_head(self, arguments: Sequence[str]) -> str:
        """Start the head under the name of its pod, and return that when Ray answers."""
        found = wait_until(self._head_pod, f"the head of {self._name} to run")
        pod: str = found["metadata"]["name"]
        self.token = self._token_of(found)
        _, _, port = self._address.partition(":")
        common = ["--head", f"--port={port}", "--num-cpus=0", f"--temp-dir={self._folder.name}"]
        self._start_node(pod, [*common, *arguments])
        wait_until(lambda: pod in self._running(), "Ray's head to answer")
        return pod

    def _start_node(self, pod: str, arguments: Sequence[str], group: str = _HEAD_GROUP) -> None:
        """Start what the container of Ray in a pod would be."""
        argv = [*RAY, "start", "--block", "--node-ip-address=127.0.0.1", *arguments]
        argv += ["--min-worker-port=0", "--max-worker-port=0", "--dashboard-agent-listen-port=0"]
        argv += [f"--object-store-memory={_STORE_BYTES}"]
        named = {"RAY_CLOUD_INSTANCE_ID": pod, "RAY_NODE_TYPE_NAME": group}
        env = {**ENVIRONMENT, **named, **self._authentication()}
        self._nodes[pod] = self._cluster.spawn(f"ray-{pod}", argv, env)

    def _authentication(self) -> dict[str, str]:
        return {_MODE: "token", _TOKEN: self.token} if self.token else {}

    def _token_of(self, pod: Json) -> str:
        """Return the token that KubeRay gives the container of Ray; empty where it gives none."""
        container = pod["spec"]["containers"][0]
        asked = [each for each in container.get("env", ()) if each["name"] == _TOKEN]
        found = environment({"env": asked}, self._cluster.api, self._namespace, {})
        return found.get(_TOKEN, "")

    def _running(self) -> list[str]:
        for process in self._nodes.values():
            process.expect_running()
        with contextlib.suppress(TestbedError, subprocess.TimeoutExpired):
            return list(self.seen()["running"])
        return []

    # What happens on the cluster

    def _head_pod(self) -> Json | None:
        path = f"/api/v1/namespaces/{self._namespace}/pods"
        found = (pod for pod in self._cluster.api.get(path)["items"] if self._is_node(pod, "head"))
        return next(found, None)

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
