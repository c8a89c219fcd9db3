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
from pathlib import Path
from typing import Any

from testbed.errors import TestbedError

Json = dict[str, Any]
_TIMEOUT_SECONDS = 30.0
_JSON = "application/json"


def answers_ok(connection: http.client.HTTPConnection, path: str) -> bool:
    """Tell whether a server is there and says 200."""
    with contextlib.closing(connection):
        try:
            connection.request("GET", path)
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False


class Session:
    """One connection, for one thread."""

    def __init__(self, connection: http.client.HTTPSConnection, token: str) -> None:
        self._connection = connection
        self._token = token

    def request(
        self, method: str, path: str, body: bytes | None = None, content_type: str = _JSON
    ) -> tuple[int, bytes]:
        """Send one request and return the status code and the whole answer."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": content_type}
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        return response.status, response.read()

    def call(
        self, method: str, path: str, body: bytes | None = None, content_type: str = _JSON
    ) -> Json:
        """Send one request and return the object; a refusal is an error that quotes it."""
        status, answer = self.request(method, path, body, content_type)
        if status >= http.HTTPStatus.BAD_REQUEST:
            text = answer.decode(errors="replace")
            raise TestbedError(f"{method} {path}: {status} {text}")
        content: Json = json.loads(answer)
        return content


@dataclass(frozen=True)
class Api:
    """An API server, as one of its users sees it."""

    port: int
    token: str
    ca_file: Path

    @contextlib.contextmanager
    def session(self) -> Iterator[Session]:
        """Open one connection for several requests."""
        with contextlib.closing(self._connect()) as connection:
            yield Session(connection, self.token)

    def get(self, path: str) -> Json:
        """Read one object or list."""
        with self.session() as session:
            return session.call("GET", path)

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
            with self.session() as session:
                return session.request("GET", path)[0] == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False

    def _connect(self) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=str(self.ca_file))
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=_TIMEOUT_SECONDS, context=context
        )
