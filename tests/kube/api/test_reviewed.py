"""Notes are trusted only on AppWrappers that are younger than both rules."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from aiohttp import web
from pytest_aiohttp import AiohttpServer

from kube.api.client import Client
from kube.api.credentials import open_access
from kube.api.errors import Garbled
from kube.api.reviewed import HEARD, reviewed_since

BASE = "/apis/admissionregistration.k8s.io/v1"
EARLY, LATE = "2026-01-02T03:00:00Z", "2026-01-02T04:00:00Z"


async def since(server: AiohttpServer, made: dict[str, str]) -> datetime | None:
    async def answer(request: web.Request) -> web.Response:
        stamp = made.get(request.match_info["plural"])
        if stamp is None:
            return web.json_response({"code": 404, "reason": "NotFound"}, status=404)
        return web.json_response({"metadata": {"creationTimestamp": stamp}})

    application = web.Application()
    application.router.add_get(f"{BASE}/{{plural}}/muster-app-wrapper", answer)
    running = await server(application)
    async with Client(open_access(str(running.make_url("")))) as client:
        return await reviewed_since(client)


@pytest.mark.parametrize(("mutating", "validating"), [(EARLY, LATE), (LATE, EARLY)])
async def test_the_younger_rule_counts_and_the_time_until_all_have_heard_of_it(
    aiohttp_server: AiohttpServer, mutating: str, validating: str
) -> None:
    made = {
        "mutatingwebhookconfigurations": mutating,
        "validatingwebhookconfigurations": validating,
    }
    assert await since(aiohttp_server, made) == datetime(2026, 1, 2, 4, tzinfo=UTC) + HEARD


@pytest.mark.parametrize("there", ["mutating", "validating"])
async def test_one_rule_is_none(aiohttp_server: AiohttpServer, there: str) -> None:
    assert await since(aiohttp_server, {f"{there}webhookconfigurations": EARLY}) is None


async def test_a_time_that_cannot_be_read_is_an_error(aiohttp_server: AiohttpServer) -> None:
    made = {
        "mutatingwebhookconfigurations": "soon",
        "validatingwebhookconfigurations": EARLY,
    }
    with pytest.raises(Garbled, match="creationTimestamp is 'soon'"):
        await since(aiohttp_server, made)
