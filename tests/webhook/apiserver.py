"""A stand-in for the API server: RayClusters and namespaces to be read."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from tests.webhook.samples import CLUSTER

METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
Reply = Callable[[web.Request], Awaitable[web.StreamResponse]]


def found(uid: str = CLUSTER.uid, **metadata: Any) -> Reply:
    """Answer with an object."""

    async def reply(request: web.Request) -> web.StreamResponse:
        assert request.headers["Accept"] == METADATA_ONLY
        name = request.match_info["name"]
        return web.json_response({"metadata": {"name": name, "uid": uid, **metadata}})

    return reply


def status(code: int, reason: str = "") -> Reply:
    """Answer with a failure, as the API server words it."""

    async def reply(request: web.Request) -> web.StreamResponse:
        body = {"kind": "Status", "code": code, "reason": reason, "message": f"{code} it is"}
        return web.json_response(body, status=code)

    return reply


async def unknown_path(request: web.Request) -> web.StreamResponse:
    """Answer as for a resource that the API server does not know."""
    return web.Response(status=404, text="404 page not found\n")


async def rubbish(request: web.Request) -> web.StreamResponse:
    """Answer with what no API server says."""
    return web.Response(text="<html>")


async def for_ever(request: web.Request) -> web.StreamResponse:
    """Do not answer."""
    await asyncio.Event().wait()
    raise AssertionError


class Held:
    """A reply that waits until it is let go."""

    def __init__(self, reply: Reply) -> None:
        self.go = asyncio.Event()
        self._reply = reply

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        await self.go.wait()
        return await self._reply(request)


class FakeApiServer:
    """Answers GETs as it is told, and counts them."""

    def __init__(self) -> None:
        self.cluster: Reply = status(404, "NotFound")
        self.namespace: Reply = found(uid="ns")
        self.asked: Counter[str] = Counter()
        self._changed = asyncio.Condition()

    def application(self) -> web.Application:
        application = web.Application()
        rays = "/apis/ray.io/v1/namespaces/{namespace}/rayclusters/{name}"
        application.router.add_get(rays, self._cluster)
        application.router.add_get("/api/v1/namespaces/{name}", self._namespace)
        return application

    async def _cluster(self, request: web.Request) -> web.StreamResponse:
        await self._count(request.path)
        return await self.cluster(request)

    async def _namespace(self, request: web.Request) -> web.StreamResponse:
        await self._count(request.path)
        return await self.namespace(request)

    async def until_asked(self, times: int) -> None:
        """Wait until this many GETs have come."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.asked.total() >= times)

    async def _count(self, path: str) -> None:
        self.asked[path] += 1
        async with self._changed:
            self._changed.notify_all()
