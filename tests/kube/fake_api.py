"""An API server in memory that keeps the promises a client relies on, and breaks them on demand.

It has one counter of resource versions, paged lists, watches with history, bookmarks, WatchList,
compaction, preconditions and merge patches. A fault is a coroutine that is given the request
before the server looks at it: it answers in its own way, or returns None to let it pass.
"""

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

Object = dict[str, Any]
Key = tuple[str, str, str]
Fault = Callable[[web.Request], Awaitable[web.StreamResponse | None]]

INITIAL_END = {"k8s.io/initial-events-end": "true"}
WATCH_LIST_OFF = (
    'sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the "WatchList"'
    " feature gate is enabled"
)


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it came in."""

    verb: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    at: float


@dataclass(slots=True)
class FakeApi:
    """The server's state; tests change it by `put`, `remove`, `compact` and the fault lists."""

    version: int = 100
    watch_list: bool = True
    bookmark_every: float = 0.0
    objects: dict[Key, Object] = field(default_factory=dict)
    history: list[tuple[int, str, str, Object]] = field(default_factory=list)
    compacted: int = 0
    seen: list[Seen] = field(default_factory=list)
    once: dict[str, list[Fault]] = field(default_factory=lambda: defaultdict(list))
    always: dict[str, Fault] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    connections: int = 0
    url: str = ""

    def put(self, plural: str, name: str, namespace: str = "ns", **fields: Any) -> Object:
        """Create or change an object; a `uid` given makes it another one of that name."""
        key = (plural, namespace, name)
        old = self.objects.get(key)
        uid = fields.pop("uid", old["metadata"]["uid"] if old else f"uid-{self.version + 1}")
        metadata = {"name": name, "namespace": namespace, "uid": uid}
        if not namespace:
            del metadata["namespace"]
        obj = {"metadata": metadata, **fields}
        self._store(plural, key, obj, "MODIFIED" if old else "ADDED")
        return obj

    def remove(self, plural: str, name: str, namespace: str = "ns") -> None:
        """Delete an object."""
        key = (plural, namespace, name)
        obj = self.objects.pop(key)
        self._store(plural, None, json.loads(json.dumps(obj)), "DELETED")

    def compact(self) -> None:
        """Forget the history: what watches from before now ends in 410."""
        self.version += 1
        self.compacted = self.version
        self.history.clear()
        self.wake()

    def wake(self) -> None:
        """Let the open watches look again."""
        self.news.set()
        self.news = asyncio.Event()

    def end_watches(self) -> None:
        """End every open watch in good order, as a server does when its time is up."""
        self.connections += 1
        self.wake()

    def count(self, verb: str) -> int:
        """Return how many requests of this verb came."""
        return sum(seen.verb == verb for seen in self.seen)

    def fail(self, verb: str, *faults: Fault) -> None:
        """Give the next requests of this verb one fault each."""
        self.once[verb].extend(faults)

    def _store(self, plural: str, key: Key | None, obj: Object, kind: str) -> None:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        if key is not None:
            self.objects[key] = obj
        self.history.append((self.version, plural, kind, json.loads(json.dumps(obj))))
        self.wake()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        plural, namespace, name = _target(request.path)
        verb = _verb(request, name)
        body = await request.read()
        self.seen.append(
            Seen(
                verb,
                request.path,
                dict(request.query),
                dict(request.headers),
                body,
                time.monotonic(),
            )
        )
        fault = self.once[verb].pop(0) if self.once[verb] else self.always.get(verb)
        if fault is not None and (answer := await fault(request)) is not None:
            return answer
        match verb:
            case "list":
                return self._list(request, plural, namespace)
            case "watch":
                return await self._watch(request, plural, namespace)
            case "get":
                return self._get(plural, namespace, name)
            case _:
                return self._write(verb, (plural, namespace, name), json.loads(body or b"{}"))

    def _write(self, verb: str, key: Key, body: Any) -> web.Response:
        match verb:
            case "create":
                return self._create(key[0], key[1], body)
            case "patch":
                return self._patch(*key, body)
            case _:
                return self._delete(*key, body)

    def _matching(self, plural: str, namespace: str) -> list[Object]:
        return [
            obj
            for (kind, place, _), obj in sorted(self.objects.items())
            if kind == plural and namespace in ("", place)
        ]

    def _list(self, request: web.Request, plural: str, namespace: str) -> web.Response:
        items = self._matching(plural, namespace)
        version, start = self.version, 0
        if token := request.query.get("continue"):
            version, start = (int(part) for part in token.split("&"))
            if version < self.compacted:
                return status(410, "Expired", "The provided continue parameter is too old")
        end = start + int(request.query.get("limit", "1000000"))
        more = {"continue": f"{version}&{end}"} if end < len(items) else {}
        metadata = {"resourceVersion": str(version), **more}
        return web.json_response({"metadata": metadata, "items": items[start:end]})

    async def _watch(self, request: web.Request, plural: str, namespace: str) -> web.StreamResponse:
        initial = request.query.get("sendInitialEvents") == "true"
        if initial and not self.watch_list:
            return status(422, "Invalid", WATCH_LIST_OFF)
        since = self.version if initial else int(request.query["resourceVersion"])
        if since < self.compacted:
            return status(410, "Expired", f"too old resource version: {since}")
        answer = await started(request)
        if initial:
            for obj in self._matching(plural, namespace):
                await answer.write(line("ADDED", obj))
            await answer.write(bookmark(since, INITIAL_END))
        await self._follow(answer, plural, namespace, since)
        return answer

    async def _follow(
        self, answer: web.StreamResponse, plural: str, namespace: str, since: int
    ) -> None:
        connection = self.connections
        while connection == self.connections:
            news = self.news
            if since < self.compacted:
                await answer.write(line("ERROR", failure(410, "Expired", "too old")))
                return
            for version, kind_of, kind, obj in list(self.history):
                place = obj["metadata"].get("namespace", "")
                if version > since and kind_of == plural and namespace in ("", place):
                    await answer.write(line(kind, obj))
                    since = version
            try:
                await asyncio.wait_for(news.wait(), self.bookmark_every or None)
            except TimeoutError:
                await answer.write(bookmark(self.version))

    def _get(self, plural: str, namespace: str, name: str) -> web.Response:
        obj = self.objects.get((plural, namespace, name))
        return missing(name) if obj is None else web.json_response(obj)

    def _create(self, plural: str, namespace: str, obj: Object) -> web.Response:
        name = obj["metadata"]["name"]
        if (plural, namespace, name) in self.objects:
            return status(409, "AlreadyExists", f"{name} already exists")
        rest = {key: value for key, value in obj.items() if key != "metadata"}
        return web.json_response(self.put(plural, name, namespace, **rest), status=201)

    def _patch(self, plural: str, namespace: str, name: str, changes: Any) -> web.Response:
        key = (plural, namespace, name)
        obj = self.objects.get(key)
        if obj is None:
            return missing(name)
        if isinstance(changes, list):
            return web.json_response(obj)
        expected = changes.get("metadata", {}).get("resourceVersion")
        if expected not in (None, obj["metadata"]["resourceVersion"]):
            return status(409, "Conflict", "the object has been modified")
        merged = _merge(obj, changes)
        self._store(plural, key, merged, "MODIFIED")
        return web.json_response(merged)

    def _delete(self, plural: str, namespace: str, name: str, options: Object) -> web.Response:
        obj = self.objects.get((plural, namespace, name))
        if obj is None:
            return missing(name)
        uid = options.get("preconditions", {}).get("uid")
        if uid not in (None, obj["metadata"]["uid"]):
            return status(409, "Conflict", "the UID in the precondition does not match")
        self.remove(plural, name, namespace)
        return web.json_response(failure(200, "", ""))


def _merge(old: Any, changes: Any) -> Any:
    if not isinstance(changes, dict):
        return changes
    merged = dict(old) if isinstance(old, dict) else {}
    for key, value in changes.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge(merged.get(key), value)
    return merged


def _target(path: str) -> tuple[str, str, str]:
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2:
        namespace, parts = parts[1], parts[2:]
    return parts[0], namespace, parts[1] if len(parts) > 1 else ""


def _verb(request: web.Request, name: str) -> str:
    if request.method == "GET" and not name:
        return "watch" if request.query.get("watch") else "list"
    verbs = {"GET": "get", "POST": "create", "PATCH": "patch", "DELETE": "delete"}
    return verbs[request.method]


def line(kind: str, obj: Object) -> bytes:
    """Return a watch event as it travels."""
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def bookmark(version: int, annotations: dict[str, str] | None = None) -> bytes:
    """Return a bookmark with the odd empty object that real ones carry."""
    metadata = {"resourceVersion": str(version), "creationTimestamp": None}
    extra = {"annotations": annotations} if annotations else {}
    obj = {"metadata": {**metadata, **extra}, "spec": {"containers": None}, "status": {}}
    return line("BOOKMARK", obj)


def failure(code: int, reason: str, message: str) -> Object:
    """Return a Status object."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "code": code,
        "reason": reason,
        "message": message,
    }


def status(code: int, reason: str, message: str, **headers: str) -> web.Response:
    """Return a Status as an HTTP answer."""
    return web.json_response(failure(code, reason, message), status=code, headers=headers)


def missing(name: str) -> web.Response:
    """Return the answer for an object that is not there."""
    return status(404, "NotFound", f'"{name}" not found')


async def started(request: web.Request) -> web.StreamResponse:
    """Begin a stream, as a watch does before its first event."""
    answer = web.StreamResponse(headers={"Content-Type": "application/json"})
    await answer.prepare(request)
    return answer


def says(code: int, reason: str = "", message: str = "", **headers: str) -> Fault:
    """Answer with an error."""

    async def fault(_: web.Request) -> web.StreamResponse:
        return status(code, reason, message, **headers)

    return fault


def streams(*pieces: bytes, then: asyncio.Event | None = None) -> Fault:
    """Answer 200 with these bytes, wait for `then`, and end the stream in good order."""

    async def fault(request: web.Request) -> web.StreamResponse:
        answer = await started(request)
        for piece in pieces:
            await answer.write(piece)
        if then is not None:
            await then.wait()
        return answer

    return fault


def hangs(until: asyncio.Event) -> Fault:
    """Say nothing before `until`, then go on as if nothing had been."""

    async def fault(_: web.Request) -> None:
        await until.wait()

    return fault


async def resets(request: web.Request) -> web.StreamResponse:
    """Cut the connection without an answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def passes(_: web.Request) -> None:
    """Do nothing: a place in a row of faults that is none."""


@asynccontextmanager
async def serving(fake: FakeApi) -> AsyncIterator[FakeApi]:
    """Serve on a free port of the loopback interface."""
    app = web.Application(client_max_size=16 << 20)
    app.router.add_route("*", "/{path:.*}", fake.handle)
    server = TestServer(app)
    # Handlers end with their client, as a test that leaves a watch open expects.
    await server.start_server(shutdown_timeout=0.1)
    fake.url = str(server.make_url("")).rstrip("/")
    try:
        yield fake
    finally:
        fake.end_watches()
        await server.close()


async def eventually(holds: Callable[[], object], within: float = 60.0) -> None:
    """Wait until a condition holds; the poll is fast, so no test waits longer than it must."""
    async with asyncio.timeout(within):
        while not holds():  # noqa: ASYNC110  (the condition is a plain attribute of the code)
            await asyncio.sleep(0.002)
