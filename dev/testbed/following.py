"""Follows every change of a collection, in order, in a thread of its own.

By a watch, in a thread of its own. When the connection breaks it goes on from where it stopped.
When the API server no longer knows what has been since (410, a restart), the collection is listed
again: what changed meanwhile is told as if it had changed at once, disappearances first, and what
came and went in between stays unseen.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator

from testbed.api import Api, Json, trust_of
from testbed.closing import Closing
from testbed.errors import TestbedError
from testbed.waiting import WAIT_SECONDS

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"
_BOOKMARK, _ERROR = "BOOKMARK", "ERROR"

Observe = Callable[[str, Json], None]
"""Told the type of a change and the object; called in the follower's thread."""

_RETRY_SECONDS = 0.1
# A watch that is silent for longer is opened again, in case its server died without a word.
_SILENCE_SECONDS = 60.0


class Follower(Closing):
    """Tells `observe` of every object of a collection, and of every change, until it is closed."""

    def __init__(self, api: Api, path: str, observe: Observe) -> None:
        self._api, self._path, self._observe = api, path, observe
        self._known: dict[str, Json] = {}
        self._version = ""
        self.relisting = False
        """Whether what is told now was found by a list: what was in between stays unseen."""
        self._last_error = "no answer yet"
        self._synced, self._closed = threading.Event(), threading.Event()
        self._socket: socket.socket | None = None
        self._thread = threading.Thread(target=self._run, name=f"follow {path}", daemon=True)
        self._thread.start()

    def wait_synced(self, seconds: float = WAIT_SECONDS) -> None:
        """Wait until all that there is has been told once."""
        if not self._synced.wait(seconds):
            raise TestbedError(
                f"waited {seconds:.0f} s in vain to list {self._path}: {self._last_error}"
            )

    def close(self) -> None:
        """End the watch; nothing is told after this returns."""
        self._closed.set()
        if self._socket is not None:
            _wake_reader(self._socket)
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                if not self._version:
                    self._list()
                self._watch()
            except (OSError, http.client.HTTPException, TestbedError) as error:
                self._last_error = str(error)
                self._closed.wait(_RETRY_SECONDS)

    def _list(self) -> None:
        answer = self._api.get(self._path)
        self.relisting = True
        found = {item["metadata"]["uid"]: item for item in answer.get("items") or ()}
        for uid in self._known.keys() - found.keys():
            self._tell(DELETED, self._known[uid])
        for uid, item in found.items():
            if uid not in self._known:
                self._tell(ADDED, item)
            elif _version(item) != _version(self._known[uid]):
                self._tell(MODIFIED, item)
        self._version = _version(answer)
        self.relisting = False
        self._synced.set()

    def _watch(self) -> None:
        """Follow until the stream ends; an error in it makes the next round list again."""
        for line in self._lines():
            change = json.loads(line)
            kind, item = change["type"], change["object"]
            if kind == _ERROR:
                self._version = ""
                return
            self._version = _version(item)
            if kind != _BOOKMARK:
                self._tell(kind, item)

    def _tell(self, kind: str, item: Json) -> None:
        uid = item["metadata"]["uid"]
        if kind == DELETED:
            self._known.pop(uid, None)
        else:
            self._known[uid] = item
        if not self._closed.is_set():
            self._observe(kind, item)

    def _lines(self) -> Iterator[bytes]:
        context = trust_of(self._api.ca_file)
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self._api.port, timeout=_SILENCE_SECONDS, context=context
        )
        try:
            connection.connect()
            self._socket = connection.sock
            # Checked after the socket is set: `close` has either seen the socket, or is seen here.
            if not self._closed.is_set():
                yield from self._answer(connection)
        finally:
            self._socket = None
            connection.close()

    def _answer(self, connection: http.client.HTTPSConnection) -> Iterator[bytes]:
        query = f"watch=1&allowWatchBookmarks=true&resourceVersion={self._version}"
        headers = {"Authorization": f"Bearer {self._api.token}"}
        connection.request("GET", f"{self._path}?{query}", headers=headers)
        response = connection.getresponse()
        if response.status == http.HTTPStatus.GONE:
            self._version = ""
            return
        if response.status != http.HTTPStatus.OK:
            text = response.read().decode(errors="replace")
            raise TestbedError(f"watch of {self._path}: {response.status} {text}")
        while line := response.readline():
            yield line


def _wake_reader(connected: socket.socket) -> None:
    """End the connection below TLS, whose own shutdown must not meet a read in another thread."""
    try:
        socket.socket.shutdown(connected, socket.SHUT_RDWR)
    except OSError:
        return  # it has ended by itself


def _version(item: Json) -> str:
    version: str = item["metadata"]["resourceVersion"]
    return version
