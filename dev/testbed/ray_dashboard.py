"""Runs a real Ray with its dashboard, which has the API of jobs, for one RayCluster."""

from __future__ import annotations

import contextlib
import http.client
import json

from testbed.api import Json
from testbed.cluster import Cluster
from testbed.ray_nodes import RayNodes
from testbed.waiting import wait_until

_VERSION = "/api/version"


class RayDashboard(RayNodes):
    """The nodes of Ray of one RayCluster, with the dashboard on a port of loopback."""

    def __init__(self, cluster: Cluster, namespace: str, name: str) -> None:
        self._port = cluster.ports.allocate()
        where = ["--dashboard-host=127.0.0.1", f"--dashboard-port={self._port}"]
        super().__init__(cluster, namespace, name, ["--include-dashboard=true", *where])
        wait_until(self._answers, "Ray's dashboard to answer")

    @property
    def dashboard(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self._port}"

    def job(self, submission: str) -> Json:
        """What Ray itself knows of a job; empty where it knows none of this name."""
        status, answer = self.get(f"/api/jobs/{submission}", self.token)
        found: Json = json.loads(answer) if status == http.HTTPStatus.OK else {}
        return found

    def get(self, path: str, token: str) -> tuple[int, bytes]:
        """Ask the dashboard; returns the status and the answer."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        with contextlib.closing(connection):
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def _answers(self) -> bool:
        try:
            return self.get(_VERSION, self.token)[0] == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
