"""Kinds are found in what the API server serves, with two requests, however many are asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from pytest_aiohttp import AiohttpServer

from kube.api.client import Client
from kube.api.credentials import open_access
from kube.api.errors import Garbled, ServerError
from kube.api.kinds import Kind, Kinds

Json = dict[str, Any]
ALL = ["create", "delete", "get", "list"]


def resource(plural: str, kind: str, scope: str = "Namespaced", *verbs: str) -> Json:
    said = {"group": "", "version": "", "kind": kind}
    return {"resource": plural, "responseKind": said, "scope": scope, "verbs": list(verbs or ALL)}


def group(name: str, version: str, *resources: Json) -> Json:
    return {"metadata": {"name": name}, "versions": [{"version": version, "resources": resources}]}


class Server:
    """Answers discovery with what it holds, and counts."""

    def __init__(self) -> None:
        self.core = [group("", "v1", resource("pods", "Pod"), resource("nodes", "Node", "Cluster"))]
        self.groups = [group("apps", "v1", resource("deployments", "Deployment"))]
        self.kind = "APIGroupDiscoveryList"
        self.broken = False
        self.asked = 0

    def application(self) -> web.Application:
        application = web.Application()
        application.router.add_get("/api", self._answer)
        application.router.add_get("/apis", self._answer)
        return application

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked += 1
        assert "as=APIGroupDiscoveryList" in request.headers["Accept"]
        items = self.core if request.path == "/api" else self.groups
        return web.json_response(
            {"kind": self.kind, "items": items}, status=500 if self.broken else 200
        )


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
async def client(server: Server, aiohttp_server: AiohttpServer) -> AsyncIterator[Client]:
    running = await aiohttp_server(server.application())
    async with Client(open_access(str(running.make_url("")))) as client:
        yield client


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_a_kind_is_found_in_its_group_and_version(client: Client) -> None:
    kinds = Kinds(client)
    found = await kinds.find(Kind("apps/v1", "Deployment"))
    assert found is not None
    assert found.resource.path("ns") == "/apis/apps/v1/namespaces/ns/deployments"
    assert found.verbs == {*ALL}
    pod = await kinds.find(Kind("v1", "Pod"))
    assert pod is not None
    assert pod.resource.path("ns") == "/api/v1/namespaces/ns/pods"
    node = await kinds.find(Kind("v1", "Node"))
    assert node is not None
    assert not node.resource.namespaced
    assert await kinds.find(Kind("apps/v2", "Deployment")) is None


async def test_unknown_kinds_cost_no_more_requests_than_one_every_few_seconds(
    client: Client, server: Server
) -> None:
    clock = Clock()
    kinds = Kinds(client, every=2.0, clock=clock)
    for number in range(50):
        assert await kinds.find(Kind(f"made-up-{number}/v1", "Odd")) is None
    assert server.asked == 2
    server.groups.append(group("new.dev", "v1", resource("odds", "Odd")))
    assert await kinds.find(Kind("new.dev/v1", "Odd")) is None
    clock.now += 2.0
    assert await kinds.find(Kind("new.dev/v1", "Odd")) is not None
    assert server.asked == 4


async def test_those_that_ask_at_once_share_one_reading(client: Client, server: Server) -> None:
    kinds = Kinds(client)
    asked = [kinds.find(Kind("apps/v1", "Deployment")) for _ in range(20)]
    assert None not in await asyncio.gather(*asked)
    assert server.asked == 2


async def test_of_two_resources_of_a_kind_the_one_that_can_do_more_is_meant(
    client: Client, server: Server
) -> None:
    both = resource("made", "Odd"), resource("processed", "Odd", "Namespaced", "create")
    server.groups = [group("a.dev", "v1", *both), group("b.dev", "v1", *reversed(both))]
    kinds = Kinds(client)
    for name in ("a.dev", "b.dev"):
        found = await kinds.find(Kind(f"{name}/v1", "Odd"))
        assert found is not None
        assert found.resource.plural == "made"


async def test_what_cannot_be_read_is_an_error_and_no_missing_kind(
    client: Client, server: Server
) -> None:
    kinds = Kinds(client)
    server.broken = True
    with pytest.raises(ServerError):
        await kinds.find(Kind("apps/v1", "Deployment"))
    server.broken, server.kind = False, "APIGroupList"
    with pytest.raises(Garbled, match="APIGroupDiscoveryList was asked for"):
        await kinds.find(Kind("apps/v1", "Deployment"))
    server.kind = "APIGroupDiscoveryList"
    assert await kinds.find(Kind("apps/v1", "Deployment")) is not None
