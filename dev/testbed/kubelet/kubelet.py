"""Runs the containers of Jobs' pods as processes, and answers for the logs of its nodes' pods.

kwok binds no process to a pod: it calls it running. From then on this is its kubelet: the command
of its only container runs with its variables, what it writes is its log, and its end is the pod's.
The cluster's kwok must not end pods of Jobs itself (`STAYING_JOB_STAGES`).
"""

from __future__ import annotations

import http
import json
import threading
from collections.abc import Mapping

from testbed.api import Json
from testbed.closing import Closing
from testbed.cluster import Cluster
from testbed.errors import TestbedError
from testbed.following import DELETED, Follower
from testbed.kubelet import containers
from testbed.kubelet.log_server import LogServer
from testbed.options import FAST_STAGES
from testbed.processes import Process

STAYING_JOB_STAGES = tuple(stage for stage in FAST_STAGES if "complete" not in stage)
"""Pods run at once, and those of Jobs until they are ended."""

_MERGE = "application/merge-patch+json"


class Kubelet(Closing):
    """The kubelet of all nodes that it was given.

    `environment` is what an image would bring along. `addresses` leads names of Services, which
    no resolver knows here, to where their servers are; it may grow.
    """

    def __init__(
        self, cluster: Cluster, environment: Mapping[str, str], addresses: Mapping[str, str]
    ) -> None:
        self._cluster = cluster
        self._environment, self._addresses = environment, addresses
        self._nodes: set[str] = set()
        self._processes: dict[str, Process] = {}
        self._threads: list[threading.Thread] = []
        self._port = cluster.ports.allocate()
        self._logs = LogServer(cluster.site.pki, self._port)
        self._pods = Follower(cluster.api, "/api/v1/pods", self._on_pod)

    def take(self, node: str) -> None:
        """Be the kubelet of this node; the API server asks for logs by the host name."""
        addresses = [{"type": kind, "address": "127.0.0.1"} for kind in ("InternalIP", "Hostname")]
        endpoints = {"kubeletEndpoint": {"Port": self._port}}
        status = {"addresses": addresses, "daemonEndpoints": endpoints}
        self._patch(f"/api/v1/nodes/{node}/status", {"status": status})
        self._nodes.add(node)

    def answer_for(self, namespace: str, pod: str, container: str, process: Process) -> None:
        """Have the log of a container be what a process writes that others have started."""
        self._logs.add(namespace, pod, container, process)

    def process(self, namespace: str, pod: str) -> Process:
        """The process that a pod of a Job runs, or ran."""
        return self._processes[f"{namespace}.{pod}"]

    def close(self) -> None:
        """End what runs."""
        self._pods.close()
        for process in self._processes.values():
            process.kill()
        for thread in self._threads:
            thread.join()
        self._logs.close()

    def _on_pod(self, change: str, pod: Json) -> None:
        meta = pod["metadata"]
        name = f"{meta['namespace']}.{meta['name']}"
        if change == DELETED or "deletionTimestamp" in meta:
            if name in self._processes:
                self._processes[name].kill()
        elif name not in self._processes and self._is_to_run(pod):
            self._processes[name] = self._start(name, pod)

    def _is_to_run(self, pod: Json) -> bool:
        """Whether it is of a Job, on a node of ours, and kwok calls it running."""
        owners = pod["metadata"].get("ownerReferences", ())
        ours = pod["spec"].get("nodeName") in self._nodes and pod["status"]["phase"] == "Running"
        return ours and any(each["kind"] == "Job" for each in owners)

    def _start(self, name: str, pod: Json) -> Process:
        (container,) = pod["spec"]["containers"]
        namespace = pod["metadata"]["namespace"]
        argv = containers.command(container, self._addresses)
        own = containers.environment(container, self._cluster.api, namespace, self._addresses)
        began = containers.now()
        process = self._cluster.spawn(name, argv, {**self._environment, **own})
        self.answer_for(namespace, pod["metadata"]["name"], container["name"], process)
        thread = threading.Thread(target=self._see_end, args=(pod, process, began), daemon=True)
        self._threads.append(thread)
        thread.start()
        return process

    def _see_end(self, pod: Json, process: Process, began: str) -> None:
        """Write the end of a process to its pod, which may be gone by then."""
        code, meta = process.wait(), pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status"
        self._patch(path, {"status": containers.ended(pod, code, began)})

    def _patch(self, path: str, change: Json) -> None:
        with self._cluster.api.session() as session:
            status, answer = session.request("PATCH", path, json.dumps(change).encode(), _MERGE)
        if status not in (http.HTTPStatus.OK, http.HTTPStatus.NOT_FOUND):
            raise TestbedError(f"PATCH {path}: {status} {answer.decode(errors='replace')}")
