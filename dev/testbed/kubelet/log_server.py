"""Serves the logs of containers to the API server over HTTPS, as a kubelet does."""

from __future__ import annotations

import contextlib
import http
import ssl
import threading
import urllib.parse
from collections import deque
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from testbed.closing import Closing
from testbed.credentials import Pki
from testbed.processes import Process

_PATH = "/containerLogs/"
_PIECE = 65_536
_LOOK_SECONDS = 0.05
"""Between two looks for what a process that runs has written."""


class LogServer(Closing):
    """Answers for the containers that were added, each with the process that plays it."""

    def __init__(self, pki: Pki, port: int) -> None:
        self._containers: dict[str, Process] = {}
        self._closed = threading.Event()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pki.certificate, pki.key)
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self._server.daemon_threads = True
        # The handshake is for the thread of a request: one that stalls keeps no other waiting.
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def add(self, namespace: str, pod: str, container: str, process: Process) -> None:
        """Answer for a container with what a process writes."""
        self._containers[f"{_PATH}{namespace}/{pod}/{container}"] = process

    def find(self, path: str) -> Process | None:
        """Return the process behind a path of the kubelet; None where there is none."""
        return self._containers.get(path)

    def pieces(self, process: Process, tail: int | None, *, follow: bool) -> Iterator[bytes]:
        """Yield what a process has written, from some lines before the end on; or as it writes."""
        with process.log.open("rb") as log:
            log.seek(_begin(process.log, tail))
            while True:
                # Asked first: what it wrote before its end is read after it.
                goes_on = follow and process.running and not self._closed.is_set()
                while piece := log.read(_PIECE):
                    yield piece
                if not goes_on:
                    return
                self._closed.wait(_LOOK_SECONDS)

    def close(self) -> None:
        """End it, and all logs that are followed."""
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _begin(log: Path, tail: int | None) -> int:
    """Return where the last lines of a file begin."""
    if tail is None:
        return 0
    with log.open("rb") as lines:
        last = deque(lines, maxlen=tail)
        return lines.tell() - sum(map(len, last))


def _handler(server: LogServer) -> type[BaseHTTPRequestHandler]:
    """Make the class whose objects take one request each."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urllib.parse.urlsplit(self.path)
            query = dict(urllib.parse.parse_qsl(asked.query))
            process = server.find(asked.path)
            if process is None:
                self._refuse(http.HTTPStatus.BAD_REQUEST, "container is waiting to start")
            elif query.get("previous") == "true":
                self._refuse(http.HTTPStatus.BAD_REQUEST, "previous terminated container not found")
            else:
                self._send(process, query)

        def _refuse(self, status: http.HTTPStatus, text: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def _send(self, process: Process, query: dict[str, str]) -> None:
            """Send the log, whose end is that of the connection."""
            self.send_response(http.HTTPStatus.OK)
            self.send_header("Content-Type", "text/plain")
            self.end_headers()
            tail = int(query["tailLines"]) if "tailLines" in query else None
            follow = query.get("follow") == "true"
            with contextlib.suppress(ConnectionError, ssl.SSLError):  # whoever asked has gone
                for piece in server.pieces(process, tail, follow=follow):
                    self.wfile.write(piece)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as overridden
            """Say nothing."""

    return Handler
