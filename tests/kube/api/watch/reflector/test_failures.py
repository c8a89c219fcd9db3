"""The reflector when the server fails, forgets or refuses."""

import asyncio
import itertools

from aiohttp import web

from kube.api.backoff import Backoff
from kube.api.client import Client
from kube.api.watch.events import (
    Synced,
)
from kube.api.watch.pace import Pace
from kube.api.watch.reflector import wait_synced
from tests.kube.api.watch.reflector.watched import PATIENCE, watching
from tests.kube.fake_api import (
    INITIAL_END,
    FakeApi,
    bookmark,
    eventually,
    failure,
    line,
    passes,
    resets,
    says,
    started,
    status,
    streams,
)


async def test_a_line_that_is_no_event_is_a_failure(fake: FakeApi, client: Client) -> None:
    fake.put("pods", "a", value=1)
    fake.fail("watch", passes, streams(b"<html>oops</html>\n"), streams(b'{"type": "NEWS"}\n'))
    async with watching(client) as running:
        fake.end_watches()
        await eventually(lambda: running.reflector.counters.failures >= 2)
        fake.put("pods", "b", value=1)
        await eventually(running.has(a=1, b=1))
        assert running.reflector.counters.relists == 1


# --- a server that misbehaves ---------------------------------------------------------------


async def test_errors_for_ever_are_no_hot_loop(fake: FakeApi, client: Client) -> None:
    fake.always["watch"] = says(500, "InternalError")
    fake.always["list"] = says(500, "InternalError")
    pace = Pace(backoff=Backoff(initial=0.01, maximum=10, jitter=0))
    async with watching(client, pace=pace, sync=False) as running:
        await eventually(lambda: running.reflector.counters.failures >= 5)
        begun = [seen.at for seen in fake.seen]
        gaps = [later - sooner for sooner, later in itertools.pairwise(begun)]
        assert all(gap >= 0.01 * 2**n for n, gap in enumerate(gaps))
        assert not running.reflector.synced


async def test_a_watch_closed_at_once_for_ever_is_no_hot_loop(
    fake: FakeApi, client: Client
) -> None:
    fake.watch_list = False
    fake.put("pods", "a", value=1)
    pace = Pace(backoff=Backoff(initial=0.01, maximum=10, jitter=0))
    fake.always["watch"] = streams()
    fake.fail("watch", passes)  # the question for WatchList, answered with no
    async with watching(client, pace=pace) as running:
        await eventually(lambda: running.reflector.counters.failures >= 5)
        begun = [seen.at for seen in fake.seen if "resourceVersion" in seen.query]
        gaps = [later - sooner for sooner, later in itertools.pairwise(begun)]
        assert all(gap >= 0.01 * 2**n for n, gap in enumerate(gaps))
        assert running.reflector.counters.relists == 1, "it goes on from where it was"


async def test_an_initial_stream_cut_short_takes_nothing_over(
    fake: FakeApi, client: Client
) -> None:
    fake.put("pods", "a", value=1)
    half = {"metadata": {"name": "x", "namespace": "ns", "uid": "x", "resourceVersion": "9"}}
    fake.fail("watch", streams(line("ADDED", half), bookmark(50)), says(500))
    async with watching(client) as running:
        assert running.has(a=1)()
        assert running.mirror.deleted == []
        assert len(running.mirror.batches) == 1


async def test_only_the_marked_bookmark_ends_the_initial_list(
    fake: FakeApi, client: Client
) -> None:
    first, second = asyncio.Event(), asyncio.Event()
    obj = {"metadata": {"name": "a", "namespace": "ns", "uid": "u", "resourceVersion": "9"}}

    async def slow(request: web.Request) -> web.StreamResponse:
        answer = await started(request)
        await answer.write(line("ADDED", obj) + bookmark(50))
        await first.wait()
        await answer.write(bookmark(51, INITIAL_END))
        await second.wait()
        return answer

    fake.fail("watch", slow)
    async with watching(client, sync=False) as running:
        await eventually(lambda: running.reflector.last_contact is not None)
        await asyncio.sleep(0.02)
        assert not running.reflector.synced
        assert running.reflector.store == {}
        first.set()
        await wait_synced(running.reflector, timeout=PATIENCE)
        assert list(running.reflector.store) == [("ns", "a")]
        second.set()


async def test_a_deletion_missed_is_told_after_a_410_in_the_stream(
    either: FakeApi, client: Client
) -> None:
    either.put("pods", "a", value=1)
    either.put("pods", "b", value=1)
    async with watching(client) as running:
        await eventually(lambda: either.seen[-1].verb == "watch")
        # Deleted and forgotten before the open watch could be told.
        either.objects.pop(("pods", "ns", "a"))
        either.compact()
        await eventually(running.has(b=1))
        assert running.mirror.deleted == ["a"]
        assert running.reflector.counters.relists == 2


async def test_a_deletion_missed_is_told_after_a_410_status(
    either: FakeApi, client: Client
) -> None:
    either.put("pods", "a", value=1)
    either.put("pods", "b", value=1)
    async with watching(client) as running:
        await eventually(lambda: either.seen[-1].verb == "watch")
        either.fail("watch", says(410, "Expired"))
        either.objects.pop(("pods", "ns", "a"))
        either.end_watches()
        await eventually(running.has(b=1))
        assert running.mirror.deleted == ["a"]


async def test_gone_for_ever_is_no_hot_loop(fake: FakeApi, client: Client) -> None:
    fake.watch_list = False
    fake.put("pods", "a", value=1)

    async def too_old(request: web.Request) -> web.StreamResponse | None:
        if "resourceVersion" not in request.query:
            return None
        return status(410, "Expired", "too old")

    fake.always["watch"] = too_old
    pace = Pace(backoff=Backoff(initial=0.01, maximum=10, jitter=0))
    async with watching(client, pace=pace) as running:
        await eventually(lambda: fake.count("list") >= 5)
        begun = [seen.at for seen in fake.seen if seen.verb == "list"]
        gaps = [later - sooner for sooner, later in itertools.pairwise(begun)]
        assert all(gap >= 0.01 * 2**n for n, gap in enumerate(gaps))
        told = [event for event in running.mirror.events if not isinstance(event, Synced)]
        assert len(told) == 1, "a list that brings nothing new tells nothing"


async def test_a_position_from_a_lost_future_begins_anew(either: FakeApi, client: Client) -> None:
    either.put("pods", "a", value=1)
    async with watching(client) as running:
        await eventually(lambda: either.seen[-1].verb == "watch")
        too_large = failure(504, "Timeout", "Too large resource version: 900, current: 100")
        either.fail("watch", streams(line("ERROR", too_large)))
        either.end_watches()
        await eventually(lambda: running.reflector.counters.relists == 2)


async def test_another_error_in_the_stream_goes_on_from_the_same_place(
    either: FakeApi, client: Client
) -> None:
    either.put("pods", "a", value=1)
    async with watching(client) as running:
        await eventually(lambda: either.seen[-1].verb == "watch")
        either.fail("watch", streams(line("ERROR", failure(500, "InternalError", "etcd"))))
        either.end_watches()
        either.put("pods", "b", value=1)
        await eventually(running.has(a=1, b=1))
        assert running.reflector.counters.relists == 1


async def test_a_list_that_fails_first_is_asked_again(either: FakeApi, client: Client) -> None:
    either.put("pods", "a", value=1)
    either.fail("watch", *([says(500)] * 3 if either.watch_list else []))
    either.fail("list", says(500), resets, says(429, "TooManyRequests"))
    async with watching(client) as running:
        assert running.has(a=1)()


async def test_the_wait_that_the_server_asks_for_is_kept(fake: FakeApi, client: Client) -> None:
    fake.fail("watch", says(429, "TooManyRequests", "", **{"Retry-After": "1"}))
    async with watching(client):
        first, second = (seen.at for seen in fake.seen)
        assert second - first >= 1


async def test_a_continue_token_that_expires_begins_the_list_anew(
    fake: FakeApi, client: Client
) -> None:
    fake.watch_list = False
    for number in range(600):
        fake.put("pods", f"p{number:03}")

    async def compact(_: web.Request) -> None:
        fake.remove("pods", "p000")
        fake.compact()

    fake.fail("list", passes, compact)
    async with watching(client) as running:
        assert len(running.reflector.store) == 599
        assert [
            seen.query.get("continue") is None for seen in fake.seen if seen.verb == "list"
        ] == [
            True,
            False,
            True,
            False,
        ]
