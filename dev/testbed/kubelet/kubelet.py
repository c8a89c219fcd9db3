"""Runs the containers of Jobs' pods as processes, and answers for logs of the pods of a namespace.

kwok binds no process to a pod: it calls it running. From then on this is its kubelet: the command
of its only container runs with its variables, what it writes is its log, and its end is the pod's.
The cluster's kwok must not end pods of Jobs itself (`STAYING_JOB_STAGES`).
"""

from __future__ import annotations

import http
import json
import threading
from collections.abc import Iterable, Mapping

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
"""Pods run at once, and those of Jobs until somebody ends them."""

_MERGE = "application/merge-patch+json"


class Kubelet(Closing):
    """The kubelet of some nodes, for the pods of one namespace.

    `environment` is what an image would bring along. `addresses` leads names of Services, which
    are known to nobody here, to where their servers are.
    """

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        nodes: Iterable[str],
        environment: Mapping[str, str],
        addresses: Mapping[str, str],
    ) -> None:
        self._cluster, self._namespace = cluster, namespace
        self._environment, self._addresses = environment, addresses
        self._processes: dict[str, Process] = {}
        self._threads: list[threading.Thread] = []
        port = cluster.ports.allocate()
        self._logs = LogServer(cluster.site.pki, port)
        for node in nodes:
            self._register(node, port)
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._pods = Follower(cluster.api, self._path, self._on_pod)

    def answer_for(self, pod: str, container: str, process: Process) -> None:
        """Have the log of a container be what a process writes that others have started."""
        self._logs.add(self._namespace, pod, container, process)

    def process(self, pod: str) -> Process:
        """The process that a pod of a Job runs, or ran."""
        return self._processes[pod]

    def close(self) -> None:
        """End what runs."""
        self._pods.close()
        for process in self._processes.values():
            process.kill()
        for thread in self._threads:
            thread.join()
        self._logs.close()

    def _register(self, node: str, port: int) -> None:
        """Tell the API server where the logs of a node's pods are: it asks by the host name."""
        addresses = [{"type": kind, "address": "127.0.0.1"} for kind in ("InternalIP", "Hostname")]
        endpoints = {"kubeletEndpoint": {"Port": port}}
        status = {"addresses": addresses, "daemonEndpoints": endpoints}
        self._patch(f"/api/v1/nodes/{node}/status", {"status": status})

    def _on_pod(self, change: str, pod: Json) -> None:
        name = pod["metadata"]["name"]
        if change == DELETED or "deletionTimestamp" in pod["metadata"]:
            if name in self._processes:
                self._processes[name].kill()
        elif name not in self._processes and _is_to_run(pod):
            self._start(pod)

    def _start(self, pod: Json) -> None:
        meta, (container,) = pod["metadata"], pod["spec"]["containers"]
        argv = containers.command(container, self._addresses)
        own = containers.environment(container, self._cluster.api, self._namespace, self._addresses)
        began = containers.now()
        process = self._cluster.spawn(meta["name"], argv, {**self._environment, **own})
        self._processes[meta["name"]] = process
        self.answer_for(meta["name"], container["name"], process)
        thread = threading.Thread(target=self._see_end, args=(pod, process, began), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _see_end(self, pod: Json, process: Process, began: str) -> None:
        """Write the end of a process to its pod, which may be gone by then."""
        code = process.wait()
        status = containers.ended(pod, code, began)
        self._patch(f"{self._path}/{pod['metadata']['name']}/status", {"status": status})

    def _patch(self, path: str, change: Json) -> None:
        with self._cluster.api.session() as session:
            status, answer = session.request("PATCH", path, json.dumps(change).encode(), _MERGE)
        if status not in (http.HTTPStatus.OK, http.HTTPStatus.NOT_FOUND):
            raise TestbedError(f"PATCH {path}: {status} {answer.decode(errors='replace')}")


def _is_to_run(pod: Json) -> bool:
    """Whether it is of a Job, and kwok calls it running."""
    owners = pod["metadata"].get("ownerReferences", ())
    return pod["status"].get("phase") == "Running" and any(each["kind"] == "Job" for each in owners)
