"""Plays the dashboards of Ray heads: RayJobs run and end, RayServices serve, without a kubelet.

No Ray runs on such nodes, and the names of Services lead nowhere. Go's HTTP client sends what is
meant for other machines to the proxy in its environment: this one answers in place of all
dashboards. A job lives on one head pod, and is lost with it; without a ready head nothing answers.
What is deployed on a head serves at once.
"""

from __future__ import annotations

import contextlib
import http
import json
import threading
import urllib.parse
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol, Self

from kube.objects import names
from testbed.closing import Closing
from tests.controlplane.plot import is_ready, label
from tests.controlplane.rayclusters import Json

JOBS = "/api/jobs/"
SERVE = "/api/serve/applications/"
TOKEN = "X-Ray-Authorization"
"""Where KubeRay sends the token of Ray clusters that want one."""
_ENDED = ("SUCCEEDED", "FAILED", "STOPPED")

Answer = tuple[http.HTTPStatus, Json]


class Plot(Protocol):
    """Where Ray clusters are: a test's plot, or what a watch has seen of a namespace."""

    name: str
    """Of the namespace."""

    def all(self, kind: str) -> list[Json]:
        """All Services, or all Pods."""


class Dashboards(Closing):
    """An HTTP proxy on loopback, the jobs of each head pod by its uid, and the heads that serve."""

    def __init__(self) -> None:
        self._plots: dict[str, Plot] = {}
        self._jobs: dict[tuple[str, str], str] = {}
        self._serving: set[str] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def environment(self) -> Mapping[str, str]:
        """What makes KubeRay come here; a setting of the machine must not tell it otherwise."""
        proxy = f"http://127.0.0.1:{self._server.server_port}"
        return {"HTTP_PROXY": proxy, "NO_PROXY": "127.0.0.1"}

    def open(self, plot: Plot) -> None:
        """Answer for the Ray clusters of a plot from now on."""
        self._plots[plot.name] = plot

    def submit(self, plot: Plot, cluster: str, job_id: str) -> None:
        """Submit a job to the head of a RayCluster, in place of a submitter's container."""
        self._jobs[_job_on(plot, cluster, job_id)] = "RUNNING"

    def runs(self, plot: Plot, cluster: str, job_id: str) -> bool:
        """Whether the head of a RayCluster has this job, and it has not ended."""
        return self._jobs.get(_job_on(plot, cluster, job_id)) == "RUNNING"

    def succeed(self, plot: Plot, cluster: str, job_id: str) -> None:
        """Let a job that was submitted to the head of a RayCluster end well."""
        self._end(plot, cluster, job_id, "SUCCEEDED")

    def fail(self, plot: Plot, cluster: str, job_id: str) -> None:
        """Let such a job fail."""
        self._end(plot, cluster, job_id, "FAILED")

    def _end(self, plot: Plot, cluster: str, job_id: str, status: str) -> None:
        assert self.runs(plot, cluster, job_id)
        self._jobs[_job_on(plot, cluster, job_id)] = status

    def answer(self, method: str, url: str, body: bytes, token: str) -> Answer:  # noqa: ARG002
        """Answer one request to a dashboard; none that is played asks for a token."""
        asked = urllib.parse.urlsplit(url)
        service, namespace = [*(asked.hostname or "").split("."), ""][:2]
        head = self._head_behind(namespace, service)
        if head and asked.path == SERVE:
            return self._served(head, method)
        if not head or not asked.path.startswith(JOBS):
            return http.HTTPStatus.SERVICE_UNAVAILABLE, {}
        job_id = asked.path.removeprefix(JOBS)
        if method == "POST" and not job_id:
            return self._submitted(head, json.loads(body)["submission_id"])
        if method == "POST":
            return self._stopped(head, job_id.removesuffix("/stop"))
        return self._told(head, job_id)

    def _head_behind(self, namespace: str, service: str) -> str:
        """The head that a Service leads to; empty where there is none, or none that is ready."""
        plot = self._plots.get(namespace)
        found = [] if plot is None else plot.all("Service")
        chosen = [each for each in found if each["metadata"]["name"] == service]
        return _head(plot, chosen[0]["spec"]["selector"]) if plot is not None and chosen else ""

    def _served(self, head: str, method: str) -> Answer:
        self._serving |= {head} if method == "PUT" else set()
        runs = {"app": {"name": "app", "status": "RUNNING", "deployments": {}}}
        return http.HTTPStatus.OK, {"applications": runs if head in self._serving else {}}

    def _submitted(self, head: str, job_id: str) -> Answer:
        self._jobs.setdefault((head, job_id), "RUNNING")
        return http.HTTPStatus.OK, {"job_id": job_id, "submission_id": job_id}

    def _stopped(self, head: str, job_id: str) -> Answer:
        status = self._jobs.get((head, job_id))
        if status is None:
            return http.HTTPStatus.NOT_FOUND, {}
        self._jobs[head, job_id] = status if status in _ENDED else "STOPPED"
        return http.HTTPStatus.OK, {"stopped": True}

    def _told(self, head: str, job_id: str) -> Answer:
        status = self._jobs.get((head, job_id))
        if status is None:
            return http.HTTPStatus.NOT_FOUND, {}
        return http.HTTPStatus.OK, {"job_id": job_id, "submission_id": job_id, "status": status}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _job_on(plot: Plot, cluster: str, job_id: str) -> tuple[str, str]:
    head = _head(plot, {names.RAY_CLUSTER: cluster})
    assert head, f"no head of {cluster} is ready"
    return head, job_id


def _head(plot: Plot, selector: Mapping[str, str]) -> str:
    """The uid of the head pod with these labels that is ready; empty where there is none."""
    wanted = {**selector, names.RAY_NODE_TYPE: "head"}
    for pod in plot.all("Pod"):
        leaves = "deletionTimestamp" in pod["metadata"]
        if is_ready(pod) and not leaves and all(label(pod, key) == wanted[key] for key in wanted):
            return str(pod["metadata"]["uid"])
    return ""


def _handler(dashboards: Dashboards) -> type[BaseHTTPRequestHandler]:
    """Make the class whose objects take one request each."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            token = self.headers.get(TOKEN, "")
            status, content = dashboards.answer(self.command, self.path, body, token)
            sent = json.dumps(content).encode() if status == http.HTTPStatus.OK else b"no answer"
            self.send_response(status)
            self.send_header("Content-Length", str(len(sent)))
            with contextlib.suppress(ConnectionError):  # whoever asked may not wait any more
                self.end_headers()
                self.wfile.write(sent)

        do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - named by the library

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as overridden
            """Say nothing."""

    return Handler
