"""Reads go over a connection that is kept, and get through where the server has closed it."""

from __future__ import annotations

import contextlib
import gc
import http.server
import select
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from testbed.api import Api, Connections, trust_of
from testbed.errors import TestbedError


class Server(http.server.ThreadingHTTPServer):
    """Counts its connections; it closes each after so many answers, without a word of it."""

    daemon_threads = True

    def __init__(self, trust: trustme.CA, answers: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.accepted = answers, 0
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        trust.issue_cert("127.0.0.1").configure_cert(context)
        self.socket = context.wrap_socket(self.socket, server_side=True)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def setup(self) -> None:
        super().setup()
        self.server.accepted += 1
        self.left = self.server.answers

    def do_GET(self) -> None:
        self.left -= 1
        self.close_connection = self.left == 0
        body = b"{}"
        self.send_response(404 if "missing" in self.path else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def serving(directory: Path, answers: int) -> Iterator[tuple[Server, Api]]:
    trust = trustme.CA()
    ca_file = directory / "ca.crt"
    trust.cert_pem.write_to_path(str(ca_file))
    with Server(trust, answers) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        connections = Connections(server.server_port, ca_file)
        try:
            yield server, Api(server.server_port, "token", ca_file, connections)
        finally:
            connections.close()
            server.shutdown()


def test_reads_share_a_connection(tmp_path: Path) -> None:
    with serving(tmp_path, answers=100) as (server, api):
        assert all(api.get("/one") == {} for _ in range(5))
        assert not api.exists("/missing")
        with pytest.raises(TestbedError, match="GET /missing: 404"):
            api.get("/missing")
        assert server.accepted == 1


def test_a_connection_that_the_server_has_closed_fails_no_read(tmp_path: Path) -> None:
    with serving(tmp_path, answers=1) as (server, api):
        assert all(api.exists("/one") for _ in range(5))
        assert server.accepted == 5


def test_a_session_goes_on_where_the_server_has_closed_its_connection(tmp_path: Path) -> None:
    with serving(tmp_path, answers=1) as (server, api), api.session() as session:
        assert all(session.call("GET", "/one") == {} for _ in range(5))
        assert server.accepted == 5


def test_nothing_is_kept_once_it_is_closed(tmp_path: Path) -> None:
    with serving(tmp_path, answers=100) as (server, api):
        api.connections.close()
        assert all(api.exists("/one") for _ in range(3))
        assert server.accepted == 3


def test_a_connection_that_is_reset_before_tls_is_closed(tmp_path: Path) -> None:
    """An API server that is killed resets what it has not accepted; the test would warn of it."""
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        theirs.close()
        waiting = select.poll()
        waiting.register(ours, select.POLLHUP)
        assert waiting.poll(10_000)
        with pytest.raises(OSError, match=r"Bad file descriptor|reset"):
            trust_of(tmp_path / "ca.crt").wrap_socket(ours, server_hostname="127.0.0.1")
    gc.collect()
