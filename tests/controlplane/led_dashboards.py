"""Leads what KubeRay asks of the dashboard of a RayCluster to a real one on loopback."""

from __future__ import annotations

import contextlib
import http.client
import json
import urllib.parse

from tests.controlplane.dashboards import TOKEN, Answer, Dashboards

SECONDS = 10.0
"""KubeRay itself waits for two."""


class LedDashboards(Dashboards):
    """The dashboards that are played, but for those that are led to real ones."""

    def __init__(self) -> None:
        super().__init__()
        self.led: dict[str, str] = {}
        """Where what is for a host of the cluster's network is passed on to, as host and port."""

    def answer(self, method: str, url: str, body: bytes, token: str) -> Answer:
        """Answer one request to a dashboard."""
        asked = urllib.parse.urlsplit(url)
        address = self.led.get(asked.netloc)
        if address is None:
            return super().answer(method, url, body, token)
        path = urllib.parse.urlunsplit(("", "", asked.path, asked.query, ""))
        try:
            return _passed_on(address, method, path, body, token)
        except (OSError, http.client.HTTPException):
            return http.HTTPStatus.SERVICE_UNAVAILABLE, {}


def _passed_on(address: str, method: str, path: str, body: bytes, token: str) -> Answer:
    headers = {"Content-Type": "application/json", **({TOKEN: token} if token else {})}
    connection = http.client.HTTPConnection(address, timeout=SECONDS)
    with contextlib.closing(connection):
        connection.request(method, path, body, headers)
        answered = connection.getresponse()
        said = answered.read()
    status = http.HTTPStatus(answered.status)
    return status, json.loads(said) if status == http.HTTPStatus.OK else {}
