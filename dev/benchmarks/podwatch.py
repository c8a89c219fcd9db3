"""Records when each pod was created, released, bound, Running and gone, from one watch.

The driver shares its cores with all that it measures, so it looks at each event once, decodes the
little that it needs, and never polls.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from testbed.api import Api
from testbed.closing import Closing
from testbed.errors import TestbedError

WATCH_SECONDS = 3600
_SHOWN = 5
_PIECE_BYTES = 1 << 20


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}


class _Gate(msgspec.Struct, frozen=True, gc=False):
    name: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""
    scheduling_gates: list[_Gate] = []


class _Condition(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _Status(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    phase: str = ""
    nominated_node_name: str = ""
    conditions: list[_Condition] = []


class _Pod(msgspec.Struct, frozen=True, gc=False):
    metadata: _Meta
    spec: _Spec = _Spec()
    status: _Status = _Status()


class _Event(msgspec.Struct, frozen=True, gc=False):
    type: str
    object: _Pod


@dataclass
class Seen:
    """What is known of one pod: monotonic times, and why it is where it is."""

    group: str
    created: float
    nominated: float = 0.0
    released: float = 0.0
    bound: float = 0.0
    running: float = 0.0
    gone: float = 0.0
    conditions: list[_Condition] = field(default_factory=list)

    def why(self) -> str:
        """Say how far the pod came and what its conditions say."""
        stage = "bound" if self.bound else "released, not bound" if self.released else "gated"
        said = [f"{c.reason}: {c.message}" for c in self.conditions if c.status != "True"]
        return f"{stage}; {'; '.join(said) or 'no condition says why'}"


class PodWatch(Closing):
    """Follows the pods of one namespace in a thread, from now on."""

    def __init__(self, api: Api, path: str) -> None:
        self.pods: dict[str, Seen] = {}
        self.counts: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._error = ""
        self._closed = False
        self._decoder = msgspec.json.Decoder(_Event)
        self._path = path
        self._headers = headers(api)
        self._connection = connect(api)
        listed = msgspec.json.decode(self._get(path).read(), type=_List)
        self._since = listed.metadata.resource_version
        self._thread = threading.Thread(target=self._follow, name="pod watch", daemon=True)
        self._thread.start()

    def forget(self) -> None:
        """Begin anew, for another run; pods that are still there come back when they change."""
        with self._changed:
            self.pods.clear()
            self.counts.clear()

    def seen(self) -> list[Seen]:
        """What was seen of all pods."""
        with self._changed:
            return list(self.pods.values())

    def of(self, group: str) -> list[Seen]:
        """What was seen of the pods of one RayCluster."""
        with self._changed:
            return [pod for pod in self.pods.values() if pod.group == group]

    def wait_running(self, count: int, seconds: float) -> None:
        """Wait until so many pods have been seen Running."""
        self.wait(lambda: self.counts["running"] >= count, f"{count} pods to be Running", seconds)

    def wait_bound(self, count: int, seconds: float) -> None:
        """Wait until so many pods have been seen bound."""
        self.wait(lambda: self.counts["bound"] >= count, f"{count} pods to be bound", seconds)

    def wait_gone(self, seconds: float) -> None:
        """Wait until every pod that was seen is gone."""
        self.wait(lambda: self.counts["gone"] >= len(self.pods), "all pods to be gone", seconds)

    def wait(self, holds: Callable[[], bool], what: str, seconds: float) -> None:
        """Look at each change until it holds; say which pods are missing when it never does."""
        with self._changed:
            in_time = self._changed.wait_for(lambda: self._error or holds(), seconds)
            if self._error:
                raise TestbedError(f"the watch of pods ended: {self._error}")
            if not in_time:
                raise TestbedError(f"waited {seconds:.0f} s in vain for {what}: {self._missing()}")

    def close(self) -> None:
        """End the watch."""
        self._closed = True
        with contextlib.suppress(OSError):
            if self._connection.sock is not None:
                self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._connection.close()

    def _open(self) -> http.client.HTTPResponse:
        query = f"?watch=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={self._since}"
        return self._get(self._path + query)

    def _get(self, path: str) -> http.client.HTTPResponse:
        self._connection.request("GET", path, headers=self._headers)
        return self._connection.getresponse()

    def _follow(self) -> None:
        try:
            while not self._closed:
                # The API server ends the watch of a late reader; it goes on where it stopped.
                for lines in _lines(self._open()):
                    self._take_all(lines, time.monotonic())
        except (OSError, ValueError, http.client.HTTPException, AttributeError) as error:
            self._end(f"{type(error).__name__}: {error}")

    def _take_all(self, lines: list[bytes], now: float) -> None:
        with self._changed:
            for line in lines:
                self._take(self._decoder.decode(line), now)
            self._changed.notify_all()

    def _end(self, error: str) -> None:
        with self._changed:
            self._error = error
            self._changed.notify_all()

    def _take(self, event: _Event, now: float) -> None:
        pod = event.object
        self._since = pod.metadata.resource_version
        seen = self.pods.get(pod.metadata.name)
        if seen is None:
            if event.type != "ADDED":
                return  # of an earlier run
            group = pod.metadata.labels.get("ray.io/cluster", "")
            seen = self.pods[pod.metadata.name] = Seen(group, now)
        seen.conditions = pod.status.conditions
        for stage in _stages(event):
            if not getattr(seen, stage):
                setattr(seen, stage, now)
                self.counts[stage] += 1

    def _missing(self) -> str:
        late = {name: pod for name, pod in self.pods.items() if not pod.running and not pod.gone}
        told = [f"{name}: {pod.why()}" for name, pod in sorted(late.items())[:_SHOWN]]
        rest = len(late) - len(told)
        seen = f"{len(self.pods)} pods seen, {dict(self.counts)}"
        return "\n  ".join([seen, *told, *([f"and {rest} more"] if rest > 0 else [])])


class _List(msgspec.Struct, frozen=True, gc=False):
    metadata: _Meta = _Meta()


def _lines(answer: http.client.HTTPResponse) -> Iterator[list[bytes]]:
    """Cut an answer into lines, those together that came together."""
    rest = b""
    while piece := answer.read1(_PIECE_BYTES):
        *lines, rest = (rest + piece).split(b"\n")
        if lines:
            yield lines


def _stages(event: _Event) -> Iterable[str]:
    pod = event.object
    if event.type == "DELETED":
        yield "gone"
        return
    if not pod.spec.scheduling_gates:
        yield "released"
    elif pod.status.nominated_node_name:
        yield "nominated"
    if pod.spec.node_name:
        yield "bound"
    if pod.status.phase == "Running":
        yield "running"


def connect(api: Api) -> http.client.HTTPSConnection:
    """Make a connection without a time limit: its readers have limits of their own."""
    context = ssl.create_default_context(cafile=str(api.ca_file))
    return http.client.HTTPSConnection("127.0.0.1", api.port, context=context)


def headers(api: Api) -> dict[str, str]:
    """Say what goes with each request."""
    return {"Authorization": f"Bearer {api.token}", "Content-Type": "application/json"}
