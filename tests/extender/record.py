"""Records what a real kube-scheduler sends to an extender. This writes `bodies/` anew.

`python -m tests.extender.record 1.35.4` asks the scheduler of that version on a cluster of the same
version. `--scheduler PATH` takes another program on the cluster, for a version of which the testbed
has no cluster: `python -m tests.extender.record 1.34.9 --scheduler PATH`.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import click

from testbed.cluster import Cluster
from testbed.components import SCHEDULER
from testbed.nodes import NodeSpec, copies
from testbed.options import Options
from testbed.recipes import KUBERNETES, chosen_kubernetes
from testbed.waiting import wait_until
from tests.extender.worlds import GPU, Json

BODIES = Path(__file__).parent / "bodies"
NODES = 2
GPUS = 8
HIGH = "rec-high"

Heard = dict[str, bytes]
"""The first body that came to each verb."""


class Listener(ThreadingHTTPServer):
    """An extender that passes everything and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.heard: Heard = {}

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Listener

    def do_POST(self) -> None:
        verb = self.path.strip("/")
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.heard.setdefault(verb, body)
        answer = json.dumps(_yes(verb, json.loads(body))).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _yes(verb: str, asked: Json) -> Any:
    if verb == "filter":
        return {"Nodes": asked["Nodes"], "NodeNames": asked["NodeNames"]}
    if verb == "prioritize":
        return []
    return {"NodeNameToMetaVictims": asked["NodeNameToMetaVictims"] or _meta(asked)}


def _meta(asked: Json) -> Json:
    return {
        name: {"Pods": [{"UID": pod["metadata"]["uid"]} for pod in each["Pods"]]}
        for name, each in asked["NodeNameToVictims"].items()
    }


@contextlib.contextmanager
def listening() -> Iterator[Listener]:
    """Listen until the end of the block."""
    with Listener() as listener:
        thread = threading.Thread(target=listener.serve_forever, daemon=True)
        thread.start()
        yield listener
        listener.shutdown()
        thread.join()


def record(cluster: Cluster, program: Path | None, *, cached: bool) -> Heard:
    """Ask a scheduler to place pods on two nodes and then to evict them for a larger one."""
    with listening() as listener:
        _start_scheduler(cluster, program, listener.url, cached)
        namespace = "rec" if cached else "rec-whole"
        cluster.create_namespace(namespace)
        for number in range(NODES):
            _create(cluster, namespace, _pod(f"small-{number}", GPUS // 2 + 1))
        wait_until(lambda: _bound(cluster, namespace) == NODES, "the small pods to be bound")
        _create(cluster, namespace, _pod("big", GPUS, priorityClassName=HIGH))
        wait_until(lambda: "preempt" in listener.heard, "the question about victims")
        cluster.process(SCHEDULER).kill()
        cluster.kubectl("delete", "pods", "--all", "-n", namespace, "--force", "--grace-period=0")
        return listener.heard


def _start_scheduler(cluster: Cluster, program: Path | None, url: str, cached: bool) -> None:
    verbs = {f"{verb}Verb": verb for verb in ("filter", "prioritize", "preempt")}
    extender = {"urlPrefix": url, "weight": 1, "nodeCacheCapable": cached, **verbs}
    cluster.start_scheduler({"extenders": [extender]}, program=program)


def _create(cluster: Cluster, namespace: str, found: Json) -> None:
    cluster.api.create(f"/api/v1/namespaces/{namespace}/pods", found)


def _pod(name: str, gpus: int, **spec: Any) -> Json:
    requests = {"cpu": "1", GPU: str(gpus)}
    resources = {"requests": requests, "limits": {GPU: str(gpus)}}
    container = {"name": "c", "image": "x", "resources": resources}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def _bound(cluster: Cluster, namespace: str) -> int:
    pods = cluster.api.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
    return sum("nodeName" in each["spec"] for each in pods)


@click.command()
@click.argument("version")
@click.option("--scheduler", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def main(version: str, scheduler: Path | None) -> None:
    """Write the bodies of one version."""
    kubernetes = version if version in KUBERNETES else chosen_kubernetes()
    options = Options(kubernetes=kubernetes, kuberay=False, scheduler=False)
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster.start(Path(folder) / "root", options) as cluster,
    ):
        cluster.add_nodes(copies(NodeSpec("rec", gpus=GPUS), NODES))
        cluster.create_priority_class({"name": HIGH}, 1000)
        by_name = record(cluster, scheduler, cached=True)
        whole = record(cluster, scheduler, cached=False)
    written = {
        "names": by_name["filter"],
        "victims": by_name["preempt"],
        "nodes": whole["filter"],
        "whole-victims": whole["preempt"],
    }
    for kind, body in written.items():
        (BODIES / f"{kind}-{version}.json").write_bytes(body)


if __name__ == "__main__":
    main()
