"""Plays the API servers of many members in this process, each with a coordinator that answers.

A server keeps GangOffers, RayClusters and Leases, as far as the dispatcher asks for them. Its nodes
are full until `offer` is called: then the offer that was asked first has room.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from typing import Any

import trustme
import yaml
from aiohttp import web

from kube.api.watch.intake import INITIAL_END

Json = dict[str, Any]

BOOKMARK_EVERY = 30.0
"""Seconds; API servers send one each minute."""

REFUSAL = "0 of 3 workers fit: each needs 8 nvidia.com/gpu on one node; 0 are free"
_KINDS = {
    ("muster.dev", "v1alpha1"): ("GangOffer",),
    ("ray.io", "v1"): ("RayCluster", "RayJob", "RayService"),
}
_STATES = {"GangOffer": {"phase": "Asked", "reason": "InsufficientResources", "message": REFUSAL}}


class MemberServer:
    """One member."""

    def __init__(self, name: str, authority: trustme.CA) -> None:
        self.name, self._authority = name, authority
        self.port = 0
        self.offered: dict[str, float] = {}
        """When each offer was given room, by its name; `time.monotonic`."""
        self.accepted: dict[str, float] = {}
        self._objects: dict[tuple[str, str], Json] = {}
        self._watchers: list[tuple[str, asyncio.Queue[Json]]] = []
        self._versions = count(1)

    def kubeconfig(self) -> bytes:
        """One that the dispatcher takes."""
        trusted = base64.b64encode(self._authority.cert_pem.bytes()).decode()
        server = f"https://127.0.0.1:{self.port}"
        cluster = {"server": server, "certificate-authority-data": trusted}
        whole = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "c", "user": {"token": "t"}}],
        }
        return yaml.safe_dump(whole).encode()

    @property
    def asked(self) -> dict[str, str]:
        """The offers that wait for room, the oldest first: by name the uid of what they are for."""
        return {
            name: each["spec"]["uid"]
            for (plural, name), each in self._objects.items()
            if plural == "gangoffers" and each["status"]["phase"] == "Asked"
        }

    def offer(self, name: str) -> None:
        """Have room for it."""
        self.offered[name] = time.monotonic()
        found = self._objects["gangoffers", name]
        self._put("gangoffers", {**found, "status": {"phase": "Offered"}})

    def is_answered(self, name: str) -> bool:
        """Whether an offer was accepted, or withdrawn."""
        return name in self.accepted or ("gangoffers", name) not in self._objects

    # ---- as an API server

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        parts = request.path.strip("/").split("/")
        plural, name = _place(parts)
        if "watch" in request.query:
            return await self._watch(request, plural)
        if request.method == "POST":
            return self._create(plural, await request.json())
        if request.method == "GET":
            return self._get(request.path, plural, name)
        found = self._objects.get((plural, name))
        if found is None:
            return _missing(name)
        if request.method == "DELETE":
            self._remove(plural, found)
            return web.json_response({"kind": "Status", "status": "Success"})
        return web.json_response(self._patched(plural, found, await request.json()))

    def _get(self, path: str, plural: str, name: str) -> web.Response:
        if name == "kube-system":
            return web.json_response({"metadata": {"uid": f"uid-{self.name}"}})
        if path in ("/api", "/apis"):
            items = list(_groups()) if path == "/apis" else []
            return web.json_response({"kind": "APIGroupDiscoveryList", "items": items})
        if path == "/version":
            return web.json_response({"gitVersion": "v1.37.2"})
        if not name:
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})
        found = self._objects.get((plural, name))
        return web.json_response(found) if found else _missing(name)

    def _create(self, plural: str, body: Json) -> web.Response:
        name = body["metadata"]["name"]
        if (plural, name) in self._objects:
            said = {"reason": "AlreadyExists", "message": name, "code": 409}
            return web.json_response(said, status=409)
        body["metadata"]["uid"] = f"{plural}-{self.name}-{next(self._versions)}"
        body["metadata"]["creationTimestamp"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        status = _STATES.get(body.get("kind", ""), {})
        return web.json_response(self._put(plural, {**body, "status": status}), status=201)

    def _patched(self, plural: str, found: Json, patch: Any) -> Json:
        """Take an acceptance; whatever else is changed has no effect here."""
        changed = {each["path"]: each.get("value") for each in patch if isinstance(each, dict)}
        if plural == "gangoffers" and "/spec/acceptedBy" in changed:
            self.accepted[found["metadata"]["name"]] = time.monotonic()
            spec = {**found["spec"], "acceptedBy": changed["/spec/acceptedBy"]}
            found = {**found, "spec": spec, "status": {"phase": "Started"}}
        return self._put(plural, found)

    def _put(self, plural: str, body: Json) -> Json:
        metadata = {**body["metadata"], "resourceVersion": str(next(self._versions))}
        found = {**body, "metadata": metadata}
        key = (plural, metadata["name"])
        self._tell(plural, "MODIFIED" if key in self._objects else "ADDED", found)
        self._objects[key] = found
        return found

    def _remove(self, plural: str, found: Json) -> None:
        del self._objects[plural, found["metadata"]["name"]]
        self._tell(plural, "DELETED", found)

    def _tell(self, plural: str, kind: str, found: Json) -> None:
        for wanted, queue in self._watchers:
            if wanted == plural:
                queue.put_nowait({"type": kind, "object": found})

    async def _watch(self, request: web.Request, plural: str) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        queue: asyncio.Queue[Json] = asyncio.Queue()
        for (kept, _), found in self._objects.items():
            if kept == plural:
                queue.put_nowait({"type": "ADDED", "object": found})
        queue.put_nowait(self._bookmark({INITIAL_END: "true"}))
        watcher = (plural, queue)
        self._watchers.append(watcher)
        try:
            while True:
                event = await self._next(queue)
                await response.write(json.dumps(event).encode() + b"\n")
        except ConnectionResetError:
            return response
        finally:
            self._watchers.remove(watcher)

    async def _next(self, queue: asyncio.Queue[Json]) -> Json:
        """Wait for a change; say in between that there was none: a silent watch counts as dead."""
        try:
            async with asyncio.timeout(BOOKMARK_EVERY):
                return await queue.get()
        except TimeoutError:
            return self._bookmark({})

    def _bookmark(self, annotations: dict[str, str]) -> Json:
        meta = {"resourceVersion": str(next(self._versions)), "annotations": annotations}
        return {"type": "BOOKMARK", "object": {"metadata": meta}}


def _place(parts: list[str]) -> tuple[str, str]:
    """The resource in its plural, and the name of an object; empty where a path has none."""
    if "namespaces" not in parts:
        return parts[-1], ""
    rest = parts[parts.index("namespaces") + 2 :]
    if not rest:
        return "namespaces", parts[-1]
    return rest[0], rest[1] if len(rest) > 1 else ""


def _missing(name: str) -> web.Response:
    return web.json_response({"reason": "NotFound", "message": name, "code": 404}, status=404)


def _groups() -> Iterable[Json]:
    for (group, version), kinds in _KINDS.items():
        resources = [
            {
                "resource": f"{kind.lower()}s",
                "responseKind": {"kind": kind},
                "scope": "Namespaced",
                "verbs": ["list"],
            }
            for kind in kinds
        ]
        yield {
            "metadata": {"name": group},
            "versions": [{"version": version, "resources": resources}],
        }


@asynccontextmanager
async def serving(names: Iterable[str]) -> AsyncIterator[list[MemberServer]]:
    """Serve members over TLS on loopback, each on a port of its own."""
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    async with AsyncExitStack() as stack:
        found = []
        for name in names:
            server = MemberServer(name, authority)
            await _listen(server, context, stack)
            found.append(server)
        yield found


async def _listen(server: MemberServer, context: ssl.SSLContext, stack: AsyncExitStack) -> None:
    application = web.Application()
    application.router.add_route("*", "/{tail:.*}", server.answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    server.port = runner.addresses[0][1]
