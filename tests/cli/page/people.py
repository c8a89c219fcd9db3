"""An API server that knows people by their tokens, and the page in front of it."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.test_utils import BaseTestServer, TestServer

from cli.page.feed import Feed
from cli.page.on_laptop import laptop_page
from cli.page.safety.callers import ByToken
from cli.page.safety.guards import WRITE, only_our_writes
from cli.page.server import application
from kube.api.client import Client
from kube.api.credentials import open_access
from tests.cli.api_server import refusal
from tests.cli.page.reports import status
from tests.cli.write.cluster import Double

Json = dict[str, Any]

ADA, BEN = "ada-token", "ben-token"
SECRET = "of-this-start"
NONE: Mapping[str, str] = MappingProxyType({})


class People(Double):
    """The cluster; `users` may do all but what `denied` says: a token, and a part of a request."""

    def __init__(self) -> None:
        super().__init__()
        self.users = {ADA: "ada", BEN: "ben"}
        self.denied: list[tuple[str, str]] = []
        self.heard: list[tuple[str, str, dict[str, str]]] = []
        self.anonymous = ""
        """Who asks without a token: on a laptop the kubeconfig says it otherwise."""

    async def handle(self, request: web.Request) -> web.Response:
        self.heard.append((request.method, request.raw_path, dict(request.headers)))
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        user = self.users.get(token, self.anonymous)
        if not user:
            return refusal(401, "Unauthorized", "Unauthorized")
        if request.path.endswith("selfsubjectreviews"):
            return web.json_response({"status": {"userInfo": {"username": user, "groups": ["g"]}}})
        what = f"{request.method} {request.path}"
        if any(each == token and part in what for each, part in self.denied):
            plural = request.path.split("/")[6]
            said = f'User "{user}" cannot patch resource "{plural}" in API group "ray.io" in the'
            return refusal(403, "Forbidden", f'{plural} is forbidden: {said} namespace "team"')
        return await super().handle(request)


class Tab:
    """A tab with the page, which sends what its scripts send."""

    def __init__(self, http: aiohttp.ClientSession, origin: str, headers: dict[str, str]) -> None:
        self.http = http
        self.origin = origin
        self.headers = headers

    async def get(self, path: str, headers: Mapping[str, str] = NONE) -> tuple[int, Any]:
        async with self.http.get(path, headers={**self.headers, **headers}) as answer:
            return answer.status, json.loads(await answer.read())

    async def post(
        self, path: str, body: Json | None = None, headers: Mapping[str, str] = NONE
    ) -> tuple[int, Any]:
        """Send a change; a header that is empty is left out."""
        ours = {"Origin": self.origin, WRITE: "1", "Content-Type": "application/json"}
        both = {**ours, **self.headers, **headers}
        sent = {key: value for key, value in both.items() if value}
        data = json.dumps(body or {})
        async with self.http.post(path, data=data, headers=sent) as answer:
            return answer.status, json.loads(await answer.read())

    async def agreed(self, path: str, **body: Any) -> tuple[int, Any]:
        """Ask what would be done, and agree to it."""
        status, told = await self.post(path, body)
        assert status == 200, told
        return await self.post(path, {**body, "agreed": told["asks"]})


@asynccontextmanager
async def in_cluster(people: People) -> AsyncIterator[tuple[BaseTestServer, str]]:
    """The page in the cluster, without TLS; gives its server and its origin."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", people.handle)
    async with TestServer(app, host="127.0.0.1") as server:
        callers = ByToken(f"http://127.0.0.1:{server.port}", None, 5.0)
        page = application(callers, [only_our_writes("http", "")], None)
        async with TestServer(page, host="127.0.0.1") as found:
            yield found, f"http://127.0.0.1:{found.port}"


@asynccontextmanager
async def on_laptop(people: People) -> AsyncIterator[tuple[BaseTestServer, str]]:
    """The page of a laptop, whose person the API server calls ada."""
    people.anonymous = "ada"
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", people.handle)
    async with (
        TestServer(app, host="127.0.0.1") as server,
        Client(open_access(f"http://127.0.0.1:{server.port}")) as client,
    ):
        feed = Feed(_no_report, 3600)
        async with TestServer(laptop_page(client, "team", SECRET, feed), host="127.0.0.1") as found:
            yield found, f"http://127.0.0.1:{found.port}"


async def _no_report() -> Any:
    return status()


@asynccontextmanager
async def tab(origin: str, token: str = "", secret: str = "") -> AsyncIterator[Tab]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    headers |= {WRITE: secret} if secret else {}
    async with aiohttp.ClientSession(origin) as http:
        yield Tab(http, origin, headers)
