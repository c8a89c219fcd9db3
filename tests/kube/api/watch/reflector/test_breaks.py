"""The reflector when a watch breaks, ends or falls silent."""

import asyncio
import itertools
from dataclasses import replace

import pytest
from aiohttp import web

from kube.api.backoff import Backoff
from kube.api.client import Client
from kube.api.watch.pace import Pace
from tests.kube.api.watch.reflector.watched import FAST, watching
from tests.kube.fake_api import (
    INITIAL_END,
    FakeApi,
    bookmark,
    eventually,
    failure,
    line,
    passes,
    resets,
    started,
    streams,
)


async def test_a_dead_peer_is_noticed(either: FakeApi, client: Client) -> None:
    either.put("pods", "a", value=1)
    pace = Pace(backoff=FAST.backoff, silence=0.1)
    async with watching(client, pace=pace) as running:
        watches = either.count("watch")
        await eventually(lambda: either.count("watch") > watches)
        either.put("pods", "b", value=1)
        await eventually(running.has(a=1, b=1))


async def test_a_watch_that_never_says_a_word_gives_way_to_a_list(
    either: FakeApi, client: Client
) -> None:
    """The server was restored from a backup: our position is one that it has yet to reach."""
    either.put("pods", "a", value=1)
    pace = Pace(backoff=FAST.backoff, silence=0.1)
    async with watching(client, pace=pace) as running:
        await eventually(lambda: either.seen[-1].verb == "watch")
        either.version = 10
        either.history.clear()
        either.objects.clear()
        either.put("pods", "b", value=1)
        either.history.clear()
        await eventually(running.has(b=1))


async def test_a_watch_that_is_opened_again_costs_no_list_and_nobody_is_blind(
    either: FakeApi, client: Client
) -> None:
    either.put("pods", "a", value=1)
    async with watching(client, pace=replace(FAST, shortest=0.0)) as running:
        await eventually(lambda: either.seen[-1].verb == "watch")
        either.put("pods", "b", value=1)
        await eventually(running.has(a=1, b=1))
        lists, watches = running.reflector.counters.relists, either.count("watch")
        assert running.reflector.reopen()
        assert not running.reflector.reopen(), "that is under way"
        await eventually(lambda: either.count("watch") > watches)
        either.put("pods", "c", value=1)
        await eventually(running.has(a=1, b=1, c=1))
        assert either.seen[-1].query["resourceVersion"]
        assert running.reflector.counters.relists == lists
        assert running.mirror.sight == []


async def test_a_watch_that_heard_nothing_since_it_was_opened_is_listed_when_it_is_doubted(
    either: FakeApi, client: Client
) -> None:
    """Its version may be one that the server has yet to reach, after a restore from a backup."""
    either.put("pods", "a", value=1)
    async with watching(client, pace=replace(FAST, shortest=0.0)) as running:
        await eventually(lambda: either.seen[-1].verb == "watch")
        either.put("pods", "b", value=1)
        await eventually(running.has(a=1, b=1))
        assert not running.reflector.bookmarks, "the one that ends a list is none of these"
        lists, watches = running.reflector.counters.relists, either.count("watch")
        assert running.reflector.reopen()
        await eventually(lambda: either.count("watch") > watches)
        await eventually(running.reflector.reopen)
        await eventually(lambda: running.reflector.counters.relists > lists)


async def test_bookmarks_keep_a_quiet_watch_alive_and_move_its_position(
    fake: FakeApi, client: Client
) -> None:
    fake.bookmark_every = 0.02
    fake.put("pods", "a", value=1)
    pace = Pace(backoff=FAST.backoff, silence=2.0)
    async with watching(client, pace=pace) as running:
        fake.put("nodes", "other", namespace="")
        await asyncio.sleep(3.0)
        assert fake.count("watch") == 1
        assert running.reflector.bookmarks
        # Everything before the bookmark is forgotten; a watch that has it needs no new list.
        fake.bookmark_every = 0.0
        fake.compacted = fake.version - 1
        fake.history.clear()
        await eventually(lambda: fake.count("watch") == 2)
        assert running.reflector.counters.relists == 1
        assert fake.seen[-1].query["resourceVersion"] == str(fake.version)


async def test_a_cut_connection_goes_on_from_where_it_was(either: FakeApi, client: Client) -> None:
    either.put("pods", "a", value=1)
    either.fail("watch", *([] if either.watch_list else [passes]), passes, resets, resets)
    async with watching(client) as running:
        await eventually(lambda: either.seen[-1].verb == "watch")
        either.put("pods", "b", value=1)
        await eventually(running.has(a=1, b=1))
        either.end_watches()
        either.put("pods", "c", value=1)
        await eventually(running.has(a=1, b=1, c=1))
        assert running.reflector.counters.relists == 1


async def test_what_a_break_kept_from_us_is_told_before_we_see_again(
    either: FakeApi, client: Client
) -> None:
    """A decision while a watch is down would rest on stale data."""
    either.put("pods", "a")
    either.fail("watch", *([] if either.watch_list else [passes]), passes, resets, resets)
    async with watching(client) as running:
        await eventually(lambda: either.seen[-1].verb == "watch")
        either.end_watches()
        await eventually(lambda: running.reflector.blind)
        either.put("pods", "b")
        await eventually(lambda: not running.reflector.blind)
        assert running.mirror.sight == [(False, frozenset("a")), (True, frozenset("ab"))]


async def test_a_break_that_ends_with_a_list_is_over_at_once(
    either: FakeApi, client: Client
) -> None:
    either.put("pods", "a")
    async with watching(client, pace=replace(FAST, settle=1000.0)) as running:
        await eventually(lambda: either.seen[-1].verb == "watch")
        either.put("pods", "b")
        either.compact()
        await eventually(lambda: len(running.mirror.sight) == 2)
        assert running.mirror.sight[0][0] is False
        assert running.mirror.sight[1] == (True, frozenset("ab"))


async def test_a_relist_after_a_break_counts_as_up_to_date_only_at_its_end(
    fake: FakeApi, client: Client
) -> None:
    """Else what is as old as the break would be trusted as soon as the list begins."""
    rest = asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        answer = await started(request)
        await answer.write(line("ADDED", fake.objects["pods", "ns", "a"]))
        await rest.wait()
        await answer.write(bookmark(1000, INITIAL_END))
        return answer

    fake.put("pods", "a")
    async with watching(client) as running:
        await eventually(lambda: fake.seen[-1].verb == "watch")
        fake.put("pods", "b")
        await eventually(running.has(a=0, b=0))
        watch = running.reflector
        seen = watch.last_contact or 0.0
        fake.fail("watch", slow)
        fake.compact()
        await eventually(lambda: (watch.told_until or 0.0) < (watch.last_contact or 0.0))
        assert watch.blind
        assert (watch.told_until or 0.0) >= seen > 0.0
        rest.set()
        await eventually(lambda: not watch.blind)
        assert watch.told_until == watch.last_contact


async def test_a_watch_that_ends_by_its_timeout_is_not_blind(
    either: FakeApi, client: Client
) -> None:
    """Every watch ends so, every few minutes: it must not stop all decisions each time."""
    async with watching(client, pace=replace(FAST, shortest=0.0)) as running:
        await eventually(lambda: either.seen[-1].verb == "watch")
        opened = either.count("watch")
        either.end_watches()
        await eventually(lambda: either.count("watch") > opened)
        assert running.mirror.sight == []


@pytest.mark.parametrize("change", ["put", "remove"])
async def test_each_event_moves_the_position(either: FakeApi, client: Client, change: str) -> None:
    """What was told already must not come again: an old state would roll the new one back."""
    either.put("pods", "a", value=1)
    async with watching(client) as running:
        if change == "put":
            either.put("pods", "a", value=2)
        else:
            either.remove("pods", "a")
        latest = str(either.version)
        await eventually(running.has(a=2) if change == "put" else running.has())
        either.end_watches()
        await eventually(lambda: either.seen[-1].query.get("resourceVersion") == latest)


async def test_what_came_just_before_an_error_is_told(fake: FakeApi, client: Client) -> None:
    fake.put("pods", "a", value=1)
    async with watching(client) as running:
        await eventually(lambda: fake.seen[-1].verb == "watch")
        fake.put("nodes", "n", namespace="")
        obj = {"metadata": fake.put("nodes", "b")["metadata"] | {"uid": "b"}, "value": 1}
        fake.objects["pods", "ns", "b"] = obj
        gone = line("ERROR", failure(410, "Expired", "too old"))
        fake.fail("watch", streams(line("ADDED", obj) + gone))
        fake.end_watches()
        await eventually(running.has(a=1, b=1))
        await eventually(lambda: running.reflector.counters.relists == 2)
        assert running.has(a=1, b=1)()


async def test_a_list_cut_short_for_ever_is_no_hot_loop(fake: FakeApi, client: Client) -> None:
    half = {"metadata": {"name": "x", "namespace": "ns", "uid": "x", "resourceVersion": "9"}}
    fake.always["watch"] = streams(line("ADDED", half))
    pace = Pace(backoff=Backoff(initial=0.01, maximum=10, jitter=0))
    async with watching(client, pace=pace, sync=False) as running:
        await eventually(lambda: running.reflector.counters.failures >= 5)
        begun = [seen.at for seen in fake.seen]
        gaps = [later - sooner for sooner, later in itertools.pairwise(begun)]
        assert all(gap >= 0.01 * 2**n for n, gap in enumerate(gaps))


async def test_a_cut_in_the_middle_of_an_event_loses_nothing(fake: FakeApi, client: Client) -> None:
    fake.put("pods", "a", value=1)
    async with watching(client) as running:
        half = line("ADDED", {"metadata": {"name": "half"}})[:20]
        fake.fail("watch", streams(half))
        fake.end_watches()
        fake.put("pods", "b", value=1)
        await eventually(running.has(a=1, b=1))
