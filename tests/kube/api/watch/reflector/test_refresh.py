"""A refresh of the reflector's store."""

import asyncio

import pytest
from aiohttp import web

from kube.api.backoff import Backoff
from kube.api.client import Client
from kube.api.errors import Timeout
from kube.api.watch.events import (
    Changed,
)
from kube.api.watch.pace import Pace
from kube.api.watch.reflector import wait_synced
from tests.kube.api.watch.reflector.watched import PATIENCE, watching
from tests.kube.fake_api import (
    INITIAL_END,
    FakeApi,
    bookmark,
    eventually,
    hangs,
    says,
    streams,
)

# --- refresh --------------------------------------------------------------------------------


async def test_after_a_refresh_the_store_is_as_new_as_the_call(
    either: FakeApi, client: Client
) -> None:
    async with watching(client) as running:
        for number in range(20):
            # The watch would bring it too, so only a list in the call's own time proves it.
            either.put("pods", "a", value=number)
            lists = running.reflector.counters.relists
            await running.reflector.refresh(PATIENCE)
            assert running.has(a=number)()
            assert running.reflector.counters.relists > lists
        assert running.reflector.counters.failures == 0, "to be asked is no failure"


async def test_a_refresh_does_not_roll_back_what_the_watch_brings_meanwhile(
    either: FakeApi, client: Client
) -> None:
    async with watching(client) as running:

        async def churn() -> None:
            for number in range(1, 200):
                either.put("pods", "a", value=number)
                await asyncio.sleep(0)

        async def refresh() -> None:
            for _ in range(10):
                await running.reflector.refresh(PATIENCE)

        await asyncio.gather(churn(), refresh(), refresh())
        await eventually(running.has(a=199))
        told = [event.obj.value for event in running.mirror.events if isinstance(event, Changed)]
    assert told == sorted(set(told)), "values only ever grow"


async def test_a_list_under_way_does_not_count_for_a_later_refresh(
    either: FakeApi, client: Client
) -> None:
    """The list was answered before the call, and reaches us after it."""
    held = asyncio.Event()
    verb = "watch" if either.watch_list else "list"
    either.put("pods", "a", value=1)
    async with watching(client) as running:
        await eventually(lambda: either.seen[-1].verb == "watch")
        old = {"metadata": {"resourceVersion": "50"}, "items": []}

        async def late(request: web.Request) -> web.StreamResponse | None:
            await held.wait()
            if either.watch_list:
                return await streams(bookmark(50, INITIAL_END))(request)
            return web.json_response(old)

        either.fail(verb, late)
        before = either.count(verb)
        first = asyncio.create_task(running.reflector.refresh(PATIENCE))
        await eventually(lambda: either.count(verb) == before + 1)
        second = asyncio.create_task(running.reflector.refresh(PATIENCE))
        await asyncio.sleep(0.01)
        assert not second.done()
        held.set()
        await first
        await second
        assert running.has(a=1)()


async def test_a_refresh_wakes_a_reflector_that_pauses(fake: FakeApi, client: Client) -> None:
    fake.always["watch"] = says(500)
    pace = Pace(backoff=Backoff(initial=60, maximum=60, jitter=0))
    async with watching(client, pace=pace, sync=False) as running:
        await eventually(lambda: running.reflector.counters.failures == 1)
        fake.always.clear()
        await running.reflector.refresh(PATIENCE)
        assert running.reflector.synced


async def test_a_refresh_that_gets_no_list_times_out(fake: FakeApi, client: Client) -> None:
    never = asyncio.Event()
    async with watching(client) as running:
        fake.always["watch"] = hangs(never)
        with pytest.raises(Timeout):
            await running.reflector.refresh(0.05)
        never.set()
        fake.always.clear()
        fake.put("pods", "a", value=1)
        await eventually(running.has(a=1))


async def test_to_wait_for_a_sync_that_does_not_come_times_out(
    fake: FakeApi, client: Client
) -> None:
    fake.always["watch"] = says(500)
    async with watching(client, sync=False) as running:
        with pytest.raises(Timeout):
            await wait_synced(running.reflector, timeout=0.05)
