"""The kubelet of the testbed: logs as a kubelet serves them, commands and variables, ends."""

from __future__ import annotations

import base64
import http.client
import os
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from testbed.api import Api
from testbed.credentials import Pki
from testbed.errors import TestbedError
from testbed.kubelet import containers
from testbed.kubelet.log_server import LogServer
from testbed.ports import PortAllocator
from testbed.processes import Process, Watchdog
from testbed.waiting import WAIT_SECONDS, wait_until

LINES = """
import pathlib, sys, time
print("one\\ntwo", flush=True)
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.01)
print("three")
"""


class Server:
    """A server with the log of one process, which ends when the file `go` is there."""

    def __init__(self, folder: Path, guard: Watchdog) -> None:
        self.go, pki, ports = folder / "go", Pki(folder / "pki"), PortAllocator()
        pki.write()
        argv = [sys.executable, "-c", LINES, str(self.go)]
        self.process = Process("lines", argv, os.environ, folder / "lines.log", guard)
        wait_until(lambda: "two" in self.process.log_tail(), "two lines")
        self.port = ports.allocate()
        self.server = LogServer(pki, self.port)
        self.server.add("team", "pod", "main", self.process)
        self.trust = ssl.create_default_context(cafile=str(pki.ca))
        ports.close()

    def ask(self, query: str = "", container: str = "main") -> http.client.HTTPResponse:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=WAIT_SECONDS, context=self.trust
        )
        connection.request("GET", f"/containerLogs/team/pod/{container}?{query}")
        return connection.getresponse()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    guard = Watchdog()
    found = Server(tmp_path, guard)
    yield found
    found.process.kill()
    found.server.close()
    guard.close()


def test_a_log_is_sent_whole_or_its_last_lines(server: Server) -> None:
    assert server.ask("stream=All").read() == b"one\ntwo\n"
    assert server.ask("tailLines=1").read() == b"two\n"
    assert server.ask("tailLines=0").read() == b""
    assert server.ask("tailLines=9").read() == b"one\ntwo\n"


def test_a_log_is_followed_until_its_process_ends(server: Server) -> None:
    answer = server.ask("follow=true&tailLines=1")
    assert answer.readline() == b"two\n"
    server.go.touch()
    assert answer.read() == b"three\n"
    assert server.process.wait() == 0


def test_a_log_that_is_not_there_is_refused_as_a_kubelet_does(server: Server) -> None:
    for query, container, said in (
        ("", "other", b"is waiting to start"),
        ("previous=true", "main", b"previous terminated container"),
    ):
        answer = server.ask(query, container)
        assert (answer.status, said in answer.read()) == (400, True)


class Secrets:
    """An API server that has one Secret."""

    def get(self, path: str) -> dict[str, Any]:
        assert path == "/api/v1/namespaces/team/secrets/train"
        return {"data": {"auth_token": base64.b64encode(b"t0ken").decode()}}


def test_names_of_services_are_led_elsewhere_and_secrets_are_read() -> None:
    addresses = {"head.team.svc:8265": "127.0.0.1:9"}
    secret = {"secretKeyRef": {"name": "train", "key": "auth_token"}}
    container = {
        "name": "main",
        "command": ["sh", "-c"],
        "args": ["ask http://head.team.svc:8265/"],
        "env": [
            {"name": "WHERE", "value": "head.team.svc:8265"},
            {"name": "TOKEN", "valueFrom": secret},
            {"name": "NONE"},
        ],
    }
    assert containers.command(container, addresses) == ["sh", "-c", "ask http://127.0.0.1:9/"]
    api = cast("Api", Secrets())
    assert containers.environment(container, api, "team", addresses) == {
        "WHERE": "127.0.0.1:9",
        "TOKEN": "t0ken",
        "NONE": "",
    }
    with pytest.raises(TestbedError, match="container bare has no command"):
        containers.command({"name": "bare"}, {})
    field = {"name": "F", "valueFrom": {"fieldRef": {}}}
    with pytest.raises(TestbedError, match="variable F: only those of Secrets"):
        containers.environment({"env": [field]}, api, "team", {})


@pytest.mark.parametrize(
    ("code", "phase", "written", "reason"),
    [(0, "Succeeded", 0, "Completed"), (3, "Failed", 3, "Error"), (-9, "Failed", 137, "Error")],
)
def test_a_pod_ends_as_its_container(code: int, phase: str, written: int, reason: str) -> None:
    status = containers.ended({"spec": {"containers": [{"name": "main"}]}}, code, "then")
    (found,) = status["containerStatuses"]
    terminated = found["state"]["terminated"]
    assert (status["phase"], terminated["exitCode"], terminated["reason"]) == (
        phase,
        written,
        reason,
    )
