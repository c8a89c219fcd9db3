"""An HTTP server in the place of an API server, and a kubeconfig that leads to it."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

Handler = Callable[[web.Request], Awaitable[web.Response]]


@asynccontextmanager
async def reached_by_kubeconfig(
    handle: Handler, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[None]:
    """Serve all requests; the context `here` is in namespace `team`, and `bare` in none."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    async with TestServer(app, host="127.0.0.1") as server:
        path = directory / "config"
        path.write_text(json.dumps(kubeconfig(f"http://127.0.0.1:{server.port}")))
        monkeypatch.setenv("KUBECONFIG", str(path))
        yield


def kubeconfig(address: str) -> dict[str, object]:
    """Return a kubeconfig with two contexts of one server."""
    bare = {"cluster": "c", "user": "u"}
    return {
        "clusters": [{"name": "c", "cluster": {"server": address}}],
        "contexts": [
            {"name": "here", "context": {**bare, "namespace": "team"}},
            {"name": "bare", "context": bare},
        ],
        "users": [{"name": "u", "user": {}}],
        "current-context": "here",
    }


def refusal(code: int, reason: str, message: str) -> web.Response:
    """A Status in the place of an answer."""
    body = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return web.json_response(body, status=code)
