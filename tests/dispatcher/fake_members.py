"""API servers of members that answer from the test's process, and may hang or change."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import trustme
import yaml
from aiohttp import web

from kube.api.watch.intake import INITIAL_END

CA = trustme.CA()
LEAF = CA.issue_cert("127.0.0.1")
Json = dict[str, Any]


@dataclass
class FakeServer:
    """A server with a kube-system of its own, no objects, and Secrets."""

    uid: str
    kinds: tuple[tuple[str, str, str], ...] = (
        ("muster.dev", "v1alpha1", "GangOffer"),
        ("ray.io", "v1", "RayCluster"),
        ("ray.io", "v1", "RayJob"),
        ("ray.io", "v1", "RayService"),
    )
    secrets: dict[str, bytes] = field(default_factory=dict)
    statuses: dict[str, Json] = field(default_factory=dict)
    """What was written of MemberClusters."""
    hangs: bool = False
    port: int = 0

    def kubeconfig(self, **user: Any) -> bytes:
        """One that the dispatcher takes, unless its user says more."""
        authority = base64.b64encode(CA.cert_pem.bytes()).decode()
        cluster = {
            "server": f"https://127.0.0.1:{self.port}",
            "certificate-authority-data": authority,
        }
        whole = {
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "c", "user": {"token": "t", **user}}],
        }
        return yaml.safe_dump(whole).encode()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        while self.hangs:  # noqa: ASYNC110 - a test sets it
            await asyncio.sleep(0.02)
        path = request.path
        if "watch" in request.query:
            return await self._watch(request)
        if request.method == "PATCH":
            self.statuses[path.split("/")[-2]] = (await request.json())["status"]
            return web.json_response({})
        return web.json_response(self._read(path))

    def _read(self, path: str) -> Json:
        name = path.rpartition("/")[2]
        if name == "kube-system":
            return {"metadata": {"uid": self.uid}}
        if "/secrets/" in path:
            data = {"kubeconfig": base64.b64encode(self.secrets[name]).decode()}
            return {"data": data}
        if name in ("api", "apis"):
            return {"kind": "APIGroupDiscoveryList", "items": list(self._groups(name))}
        return {"gitVersion": "v1.37.0", "metadata": {"resourceVersion": "1"}, "items": []}

    def _groups(self, root: str) -> Iterator[Json]:
        for group, version, kind in self.kinds if root == "apis" else ():
            plural = f"{kind.lower()}s"
            resource = {
                "resource": plural,
                "responseKind": {"kind": kind},
                "scope": "Namespaced",
                "verbs": ["list"],
            }
            versions = [{"version": version, "resources": [resource]}]
            yield {"metadata": {"name": group}, "versions": versions}

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        """End the list at once, and tell nothing more."""
        response = web.StreamResponse()
        await response.prepare(request)
        meta = {"resourceVersion": "1", "annotations": {INITIAL_END: "true"}}
        bookmark = {"type": "BOOKMARK", "object": {"metadata": meta}}
        await response.write(json.dumps(bookmark).encode() + b"\n")
        await asyncio.sleep(3600)
        return response


@contextlib.asynccontextmanager
async def serving(server: FakeServer) -> AsyncIterator[FakeServer]:
    """Serve over TLS on loopback."""
    application = web.Application()
    application.router.add_route("*", "/{tail:.*}", server.answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    LEAF.configure_cert(context)
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        server.hangs = False
        await runner.cleanup()
