"""Notes are trusted only on AppWrappers that are younger than both rules."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from aiohttp import web
from pytest_aiohttp import AiohttpServer

from kube.api.client import Client
from kube.api.credentials import open_access
from kube.api.errors import Garbled
from kube.api.reviewed import HEARD, SharedReview, reviewed_since

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


async def test_all_that_ask_at_one_time_share_an_answer_begun_after_they_asked(
    aiohttp_server: AiohttpServer,
) -> None:
    stamps = iter([EARLY, EARLY, LATE, LATE])
    begun, may_answer = asyncio.Event(), asyncio.Event()

    async def answer(_: web.Request) -> web.Response:
        stamp = next(stamps)
        begun.set()
        await may_answer.wait()
        return web.json_response({"metadata": {"creationTimestamp": stamp}})

    application = web.Application()
    application.router.add_get(f"{BASE}/{{plural}}/muster-app-wrapper", answer)
    running = await aiohttp_server(application)
    async with Client(open_access(str(running.make_url("")))) as client:
        shared = SharedReview(client)
        first = asyncio.create_task(shared.since())
        await begun.wait()
        later = [asyncio.create_task(shared.since()) for _ in range(3)]
        await asyncio.sleep(0)
        may_answer.set()
        assert await first == datetime(2026, 1, 2, 3, tzinfo=UTC) + HEARD
        assert {await each for each in later} == {datetime(2026, 1, 2, 4, tzinfo=UTC) + HEARD}
    assert next(stamps, None) is None


async def test_after_an_error_the_next_reads_for_itself(
    aiohttp_server: AiohttpServer,
) -> None:
    stamps = iter(["soon", EARLY, EARLY])

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"metadata": {"creationTimestamp": next(stamps)}})

    application = web.Application()
    application.router.add_get(f"{BASE}/{{plural}}/muster-app-wrapper", answer)
    running = await aiohttp_server(application)
    async with Client(open_access(str(running.make_url("")))) as client:
        shared = SharedReview(client)
        found = await asyncio.gather(shared.since(), shared.since(), return_exceptions=True)
    assert isinstance(found[0], Garbled)
    assert found[1] == datetime(2026, 1, 2, 3, tzinfo=UTC) + HEARD
