"""A small blocking client of an API server, with the standard library only.

Muster's own client is what is being tested, so the testbed does not lean on it.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from testbed.errors import TestbedError

Json = dict[str, Any]
_TIMEOUT_SECONDS = 120.0
"""The API server answers the deletion of a collection after the last object of it is deleted."""
_JSON = "application/json"


def answers_ok(connection: http.client.HTTPConnection, path: str) -> bool:
    """Tell whether a server is there and says 200."""
    with contextlib.closing(connection):
        try:
            connection.request("GET", path)
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False


class _ClosedWhenReset(ssl.SSLSocket):
    """Closes itself where the server resets the connection between TCP and TLS.

    Python 3.11 asks then whether the socket is connected, raises, and leaves it to the collector.
    """

    def getpeername(self) -> Any:
        """Return the other side's address; raise OSError, and be closed, where there is none."""
        try:
            return super().getpeername()
        except OSError:
            self.close()
            raise


def trust_of(ca_file: Path) -> ssl.SSLContext:
    """Return what connects to servers whose certificates this authority has signed."""
    context = ssl.create_default_context(cafile=str(ca_file))
    context.sslsocket_class = _ClosedWhenReset
    return context


class Session:
    """One connection, for one thread."""

    def __init__(
        self, connection: http.client.HTTPSConnection, token: str, impersonated: str = ""
    ) -> None:
        self._connection = connection
        self._user = {"Authorization": f"Bearer {token}"}
        if impersonated:
            self._user["Impersonate-User"] = impersonated

    def request(
        self, method: str, path: str, body: bytes | None = None, content_type: str = _JSON
    ) -> tuple[int, bytes]:
        """Send one request and return the status code and the whole answer.

        Once more where the server has closed the connection meanwhile, as it does when idle.
        """
        try:
            return self._answer(method, path, body, content_type)
        except (ConnectionError, ssl.SSLEOFError):
            self._connection.close()
            return self._answer(method, path, body, content_type)

    def _answer(
        self, method: str, path: str, body: bytes | None, content_type: str
    ) -> tuple[int, bytes]:
        headers = {**self._user, "Content-Type": content_type}
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        return response.status, response.read()

    def call(
        self, method: str, path: str, body: bytes | None = None, content_type: str = _JSON
    ) -> Json:
        """Send one request and return the object; a refusal is an error that quotes it."""
        return _content(method, path, *self.request(method, path, body, content_type))


class Connections:
    """Connections to an API server, of which those for reading are kept for the next read.

    A wait asks thirty times a second, and a handshake costs both sides more than the answer.
    """

    def __init__(self, port: int, ca_file: Path) -> None:
        self._port = port
        self._ca_file = ca_file
        self._idle: list[http.client.HTTPSConnection] = []
        self._is_closed = False

    def new(self) -> http.client.HTTPSConnection:
        """Return a connection that is the caller's to close."""
        return http.client.HTTPSConnection(
            "127.0.0.1", self._port, timeout=_TIMEOUT_SECONDS, context=self._context
        )

    @contextlib.contextmanager
    def kept(self) -> Iterator[http.client.HTTPSConnection]:
        """Lend a connection to one thread; after an error it is not used again."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self.new()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        if self._is_closed:
            self.close()

    def close(self) -> None:
        """Close those that are kept, and keep none from here on."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()

    @cached_property
    def _context(self) -> ssl.SSLContext:
        return trust_of(self._ca_file)


@dataclass(frozen=True)
class Api:
    """An API server, as one of its users sees it."""

    port: int
    token: str
    ca_file: Path
    connections: Connections
    impersonated: str = ""
    """The user in the name of which requests are made, where that is another one."""

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        """Open one connection for several requests."""
        with contextlib.closing(self.connections.new()) as connection:
            yield Session(connection, self.token, self.impersonated)

    def get(self, path: str) -> Json:
        """Read one object or list."""
        return _content("GET", path, *self._read(path))

    def create(self, path: str, content: Json) -> Json:
        """Create one object in the collection `path`."""
        with self.session() as session:
            return session.call("POST", path, json.dumps(content).encode())

    def would_create(self, path: str, content: Json) -> bool:
        """Tell whether such an object would be taken into the collection `path`; it is not."""
        with self.session() as session:
            body = json.dumps(content).encode()
            return (
                session.request("POST", f"{path}?dryRun=All", body)[0] < http.HTTPStatus.BAD_REQUEST
            )

    def apply(self, path: str, manifest: bytes) -> Json:
        """Apply one YAML or JSON document on the server's side, as it stands."""
        with self.session() as session:
            query = "?fieldManager=testbed&force=true"
            return session.call("PATCH", path + query, manifest, "application/apply-patch+yaml")

    def exists(self, path: str) -> bool:
        """Tell whether there is such an object; errors of the connection count as no."""
        try:
            return self._read(path)[0] == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False

    def _read(self, path: str) -> tuple[int, bytes]:
        """Read on a connection that is kept, or on a new one where the server has closed it."""
        try:
            with self.connections.kept() as connection:
                return Session(connection, self.token, self.impersonated).request("GET", path)
        except (ConnectionError, ssl.SSLError):
            with self.session() as session:
                return session.request("GET", path)


def _content(method: str, path: str, status: int, answer: bytes) -> Json:
    """Return the object of an answer; a refusal is an error that quotes it."""
    if status >= http.HTTPStatus.BAD_REQUEST:
        text = answer.decode(errors="replace")
        raise TestbedError(f"{method} {path}: {status} {text}")
    content: Json = json.loads(answer)
    return content
