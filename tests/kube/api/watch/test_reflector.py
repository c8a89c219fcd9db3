"""The store is always what the server has, as soon as the server lets itself be asked."""

import asyncio
import contextlib
import gc
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace

import msgspec
import pytest
from aiohttp import web
from hypothesis import example, given
from hypothesis import strategies as st

from kube.api.backoff import Backoff
from kube.api.client import Client
from kube.api.errors import Timeout
from kube.api.resources import Resource
from kube.api.watch.events import (
    Blind,
    Changed,
    Deleted,
    Key,
    Sighted,
    Synced,
    Unreadable,
    WatchEvent,
)
from kube.api.watch.pace import Pace, Selection
from kube.api.watch.reflector import Reflector, wait_synced
from kube.api.watch.store import Picture, Store
from runtime.slicing import ITERATIONS, settle_heap
from tests.kube.fake_api import (
    INITIAL_END,
    FakeApi,
    Fault,
    bookmark,
    eventually,
    failure,
    hangs,
    line,
    passes,
    resets,
    says,
    started,
    status,
    streams,
)

PODS = Resource("", "v1", "pods")
NODES = Resource("", "v1", "nodes", namespaced=False)

FAST = Pace(
    backoff=Backoff(initial=0.01, maximum=0.05),
    healthy=30.0,
    shortest=0.02,
    silence=60.0,
    settle=0.05,
    call_timeout=60.0,
)
PATIENCE = 60.0
"""Seconds for what takes none on an idle machine; less than the silence that ends a watch."""


class Meta(msgspec.Struct, rename="camel", frozen=True):
    name: str
    uid: str
    resource_version: str
    namespace: str = ""


class Pod(msgspec.Struct, frozen=True):
    metadata: Meta
    value: int = 0


def pod(name: str, uid: str = "u", version: int = 1, value: int = 0) -> Pod:
    return Pod(Meta(name, uid, str(version), "ns"), value)


class Mirror:
    """A sink that applies the events, and notes them."""

    def __init__(self) -> None:
        self.objects: dict[Key, Pod] = {}
        self.batches: list[list[WatchEvent[Pod]]] = []
        self.sight: list[tuple[bool, frozenset[str]]] = []
        """Whether we may see, and the names that were told when that changed."""

    def __call__(self, events: list[WatchEvent[Pod]]) -> None:
        match events:
            case [Blind() | Sighted() as told]:
                names = frozenset(name for _, name in self.objects)
                self.sight.append((isinstance(told, Sighted), names))
                return
        self.batches.append(events)
        for event in events:
            self._apply(event)

    def _apply(self, event: WatchEvent[Pod]) -> None:
        match event:
            case Changed(obj):
                self.objects[obj.metadata.namespace, obj.metadata.name] = obj
            case Deleted(obj):
                gone = self.objects.pop((obj.metadata.namespace, obj.metadata.name))
                assert gone == obj, "what is deleted is what was told"
            case Unreadable() | Synced() | Blind() | Sighted():
                pass

    @property
    def events(self) -> list[WatchEvent[Pod]]:
        return [event for batch in self.batches for event in batch]

    @property
    def deleted(self) -> list[str]:
        return [event.obj.metadata.name for event in self.events if isinstance(event, Deleted)]


class Running:
    """A reflector at work, and the mirror of what it said."""

    def __init__(self, client: Client, *, selection: Selection | None = None, pace: Pace = FAST):
        self.mirror = Mirror()
        self.reflector = Reflector(
            client, PODS, Pod, self.mirror, selection=selection or Selection(), pace=pace
        )

    def has(self, **values: int) -> Callable[[], bool]:
        """Return a condition: exactly these pods, with these values, in store and mirror."""

        def holds() -> bool:
            store = {name: kept.value for (_, name), kept in self.reflector.store.items()}
            return store == values and self.mirror.objects == self.reflector.store

        return holds


@contextlib.asynccontextmanager
async def watching(
    client: Client, *, selection: Selection | None = None, pace: Pace = FAST, sync: bool = True
) -> AsyncIterator[Running]:
    running = Running(client, selection=selection, pace=pace)
    task = asyncio.create_task(running.reflector.run())
    try:
        if sync:
            await wait_synced(running.reflector, timeout=PATIENCE)
        yield running
        assert running.mirror.objects == running.reflector.store
    finally:
        ended_by_itself = task.done()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        assert not ended_by_itself


@pytest.fixture(params=["stream", "pages"])
def either(request: pytest.FixtureRequest, fake: FakeApi) -> FakeApi:
    """A server with and one without WatchList."""
    fake.watch_list = request.param == "stream"
    return fake


# --- the ordinary course --------------------------------------------------------------------


async def test_what_is_there_and_what_changes_is_told(either: FakeApi, client: Client) -> None:
    either.put("pods", "a", value=1)
    either.put("pods", "b", value=1)
    async with watching(client) as running:
        assert running.has(a=1, b=1)()
        assert isinstance(running.mirror.batches[0][-1], Synced)
        either.put("pods", "a", value=2)
        either.put("pods", "c", value=1)
        either.remove("pods", "b")
        await eventually(running.has(a=2, c=1))
        assert running.reflector.counters.relists == 1


async def test_a_server_without_watch_list_is_asked_once(fake: FakeApi, client: Client) -> None:
    fake.watch_list = False
    fake.put("pods", "a", value=1)
    async with watching(client) as running:
        await running.reflector.refresh(PATIENCE)
        await running.reflector.refresh(PATIENCE)
    asked = [seen for seen in fake.seen if "sendInitialEvents" in seen.query]
    assert len(asked) == 1
    assert fake.count("list") == 3


async def test_a_resource_that_the_server_does_not_know_is_empty_until_it_does(
    either: FakeApi, client: Client
) -> None:
    """No program waits for it, or goes blind over it."""
    absent = says(404, "NotFound", "the server could not find the requested resource")
    either.always |= {"list": absent, "watch": absent}
    either.put("pods", "a", value=1)
    optional, pace = Selection(may_be_absent=True), replace(FAST, absence=0.05)
    async with watching(client, selection=optional, pace=pace) as running:
        assert running.has()()
        await running.reflector.refresh(PATIENCE)
        assert running.has()()
        either.always.clear()
        await eventually(running.has(a=1))
        assert running.mirror.sight == []
        assert running.reflector.counters.failures == 0


async def test_a_resource_that_the_server_does_not_know_is_no_silent_watch(
    fake: FakeApi, client: Client
) -> None:
    """The server said so: there is nothing that could be out of date."""
    absent = says(404, "NotFound", "the server could not find the requested resource")
    fake.always |= {"list": absent, "watch": absent}
    async with watching(client, selection=Selection(may_be_absent=True)) as running:
        assert running.has()()
        assert running.reflector.told_until is not None


@pytest.mark.parametrize(
    "refusal",
    [
        says(400, "BadRequest", "unknown parameter"),
        says(403, "Forbidden", "sendInitialEvents is forbidden for watch unless ..."),
        says(422, "Invalid", "sendInitialEvents: Forbidden"),
    ],
)
async def test_every_way_to_refuse_watch_list_is_understood(
    fake: FakeApi, client: Client, refusal: Fault
) -> None:
    fake.fail("watch", refusal)
    fake.put("pods", "a", value=1)
    async with watching(client) as running:
        assert running.has(a=1)()
        assert fake.count("list") == 1
        assert running.reflector.counters.failures == 0


async def test_to_be_forbidden_is_no_reason_to_list(fake: FakeApi, client: Client) -> None:
    fake.always["watch"] = says(403, "Forbidden", "pods is forbidden")
    async with watching(client, sync=False) as running:
        await eventually(lambda: running.reflector.counters.failures >= 3)
        assert fake.count("list") == 0
        fake.always.clear()
        await wait_synced(running.reflector, timeout=PATIENCE)


async def test_pages_make_one_list(fake: FakeApi, client: Client) -> None:
    fake.watch_list = False
    for number in range(1201):
        fake.put("pods", f"p{number:04}")
    async with watching(client) as running:
        assert len(running.reflector.store) == 1201
        assert fake.count("list") == 3
        assert len(running.mirror.batches) == 1


async def test_other_tasks_run_while_a_list_is_read(
    either: FakeApi, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.slicing.SLICE", 0.0)  # each object then takes longer than a slice
    for number in range(300):
        either.put("pods", f"p{number:03}")
    read: list[str] = []
    reflector = Reflector(client, PODS, Pod, Mirror(), project=noting(read), pace=FAST)
    running, iterations = asyncio.create_task(reflector.run()), Counter[int]()
    while not reflector.synced:
        iterations[len(read)] += 1
        await asyncio.sleep(0)
    running.cancel()
    assert sum(count >= ITERATIONS for count in iterations.values()) > 200


async def test_what_is_told_is_what_is_kept_between_slices(
    fake: FakeApi, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.slicing.SLICE", 0.0)
    metadata = {"namespace": "ns", "resourceVersion": "101"}
    found = [{"metadata": {**metadata, "name": f"p{i}", "uid": f"u{i}"}} for i in range(50)]
    fake.fail("watch", passes, streams(b"".join(line("ADDED", each) for each in found)))
    async with watching(client) as running:
        fake.end_watches()
        seen = set[int]()
        while len(running.reflector.store) < len(found):
            assert running.mirror.objects == running.reflector.store
            seen.add(len(running.mirror.objects))
            await asyncio.sleep(0)
        assert len(seen) > 40


def noting(names: list[str]) -> Callable[[Pod], Pod]:
    """Return a projection that changes nothing and notes what it was given."""

    def noted(found: Pod) -> Pod:
        names.append(found.metadata.name)
        return found

    return noted


async def test_a_new_list_makes_nothing_anew_of_what_is_known(
    either: FakeApi, client: Client
) -> None:
    read: list[str] = []
    for name in ("a", "b"):
        either.put("pods", name, value=1)
    reflector = Reflector(client, PODS, Pod, Mirror(), project=noting(read), pace=FAST)
    running = asyncio.create_task(reflector.run())
    await wait_synced(reflector, timeout=PATIENCE)
    known = dict(reflector.store)
    either.put("pods", "b", value=2)
    await eventually(lambda: reflector.store["ns", "b"].value == 2)
    await reflector.refresh(PATIENCE)
    running.cancel()
    assert sorted(read) == ["a", "b", "b"]
    assert reflector.store["ns", "a"] is known["ns", "a"]


async def test_the_selection_is_the_servers_work(either: FakeApi, client: Client) -> None:
    wanted = Selection("ns", "a=b", "spec.nodeName!=", metadata_only=True)
    async with watching(client, selection=wanted):
        await eventually(lambda: either.seen[-1].verb == "watch")
        for seen in either.seen:
            assert seen.path == "/api/v1/namespaces/ns/pods"
            assert seen.query["labelSelector"] == "a=b"
            assert seen.query["fieldSelector"] == "spec.nodeName!="
            assert "as=PartialObjectMetadata" in seen.headers["Accept"]


async def test_each_watch_asks_for_bookmarks_and_an_end(either: FakeApi, client: Client) -> None:
    async with watching(client):
        await eventually(lambda: either.count("watch") >= 1)
        for seen in either.seen:
            if seen.verb == "watch":
                assert seen.query["allowWatchBookmarks"] == "true"
                assert 300 <= int(seen.query["timeoutSeconds"]) <= 600


async def test_what_came_together_is_told_together(fake: FakeApi, client: Client) -> None:
    """A network may part what was sent at once, but not every time."""

    def added(name: str) -> bytes:
        meta = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "101"}
        return line("ADDED", {"metadata": meta})

    pairs = [added(f"a{number}") + added(f"b{number}") for number in range(5)]
    fake.fail("watch", passes, streams(*pairs))
    async with watching(client) as running:
        fake.end_watches()
        told = running.mirror.batches
        await eventually(lambda: sum(map(len, told[1:])) == 2 * len(pairs))
        assert max(map(len, told[1:])) > 1


async def test_cluster_scoped_objects_have_no_namespace(fake: FakeApi, client: Client) -> None:
    fake.put("nodes", "n", namespace="")
    mirror = Mirror()
    reflector = Reflector(client, NODES, Pod, mirror, pace=FAST)
    task = asyncio.create_task(reflector.run())
    await wait_synced(reflector, timeout=PATIENCE)
    assert list(reflector.store) == [("", "n")]
    task.cancel()


async def test_a_projection_keeps_little_and_leaves_out(either: FakeApi, client: Client) -> None:
    either.put("pods", "a", value=1)
    either.put("pods", "b", value=-1)

    def positive(seen: Pod) -> Pod | None:
        if seen.value == 13:
            raise ValueError("unlucky")
        return seen if seen.value > 0 else None

    mirror = Mirror()
    reflector = Reflector(client, PODS, Pod, mirror, project=positive, pace=FAST)
    task = asyncio.create_task(reflector.run())
    await wait_synced(reflector, timeout=PATIENCE)
    assert set(mirror.objects) == {("ns", "a")}
    either.put("pods", "a", value=-2)
    either.put("pods", "b", value=2)
    await eventually(lambda: set(mirror.objects) == {("ns", "b")})
    either.put("pods", "c", value=13)
    await eventually(lambda: reflector.counters.unreadable == 1)
    assert mirror.objects == reflector.store
    task.cancel()


# --- an object that is not of its type ------------------------------------------------------


async def test_an_odd_object_is_told_and_stops_nothing(either: FakeApi, client: Client) -> None:
    either.put("pods", "good", value=1)
    either.put("pods", "odd", value="text")
    async with watching(client) as running:
        odd = [event for event in running.mirror.events if isinstance(event, Unreadable)]
        assert [event.name for event in odd] == ["odd"]
        either.put("pods", "good", value="text too")
        either.put("pods", "next", value=3)
        await eventually(running.has(good=1, next=3))
        either.remove("pods", "good")
        either.put("pods", "odd", value=2)
        await eventually(running.has(odd=2, next=3))


class Bare(msgspec.Struct):
    """The least of a pod."""

    metadata: Meta


async def test_what_is_not_of_its_type_is_read_as_the_lesser_one(
    either: FakeApi, client: Client
) -> None:
    """In a list and in a watch; what is not even that is told."""

    def read(seen: Pod | Bare) -> Pod:
        return seen if isinstance(seen, Pod) else Pod(seen.metadata, value=-1)

    either.put("pods", "odd", value="text")
    mirror = Mirror()
    reflector = Reflector(
        client, PODS, Pod, mirror, project=read, selection=Selection(bare=Bare), pace=FAST
    )
    task = asyncio.create_task(reflector.run())
    await wait_synced(reflector, timeout=PATIENCE)
    assert {key: seen.value for key, seen in mirror.objects.items()} == {("ns", "odd"): -1}
    either.put("pods", "new", value="text")
    await eventually(lambda: ("ns", "new") in mirror.objects)
    assert mirror.objects["ns", "new"].value == -1
    either.put("pods", "odd", value=3)
    await eventually(lambda: mirror.objects["ns", "odd"].value == 3)
    assert reflector.counters.unreadable == 0
    task.cancel()


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


async def test_an_object_of_five_megabytes_arrives(either: FakeApi, client: Client) -> None:
    either.put("pods", "a", value=1, blob="x" * (5 << 20))
    async with watching(client) as running:
        either.put("pods", "a", value=2, blob="y" * (5 << 20))
        await eventually(running.has(a=2))


async def test_another_uid_under_one_name_is_a_deletion_first(
    either: FakeApi, client: Client
) -> None:
    either.put("pods", "a", value=1, uid="first")
    async with watching(client) as running:
        await eventually(lambda: either.seen[-1].verb == "watch")
        either.objects.pop(("pods", "ns", "a"))
        either.put("pods", "a", value=2, uid="second")
        either.compact()
        await eventually(running.has(a=2))
        kinds = [type(event) for event in running.mirror.events if not isinstance(event, Synced)]
        assert kinds == [Changed, Deleted, Changed]


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


async def test_what_the_sink_raises_ends_the_run(fake: FakeApi, client: Client) -> None:
    def broken(_: object) -> None:
        raise RuntimeError("a bug")

    reflector: Reflector[Pod] = Reflector(client, PODS, Pod, broken, pace=FAST)
    with pytest.raises(RuntimeError, match="a bug"):
        await asyncio.wait_for(reflector.run(), PATIENCE)


def test_a_settled_heap_is_not_looked_at_again() -> None:
    try:
        settle_heap()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


# --- the comparison, for all histories ------------------------------------------------------

names = st.sampled_from(["a", "b", "c"])
pods = st.builds(pod, names, st.sampled_from(["u", "v"]), st.integers(1, 3))


metas = pods.map(lambda one: one.metadata)
odd = metas.map(lambda meta: Unreadable("ns", meta.name, meta.uid, "odd"))
lists = st.lists(st.one_of(pods, metas, odd), max_size=5).map(tuple)

Told = Pod | Meta | Unreadable


def pictured(told: Sequence[Told], store: Store[Pod]) -> Picture[Pod]:
    """Return a list in which this was told, one after the other."""
    picture = Picture(store.objects)
    for step in told:
        match step:
            case Pod():
                picture.change(step)
            case Meta():
                picture.drop(step)
            case Unreadable():
                picture.confuse(step)
    return picture


@given(st.lists(st.one_of(pods, metas, lists), max_size=8))
@example([pod("a"), (pod("a"), pod("a").metadata)])  # told as it was, and gone before the end
def test_the_events_always_add_up_to_the_store(
    steps: list[Pod | Meta | tuple[Told, ...]],
) -> None:
    store: Store[Pod] = Store()
    mirror = Mirror()
    for step in steps:
        match step:
            case Pod():
                mirror(store.change(step))
            case Meta():
                held = store.objects.get(("ns", step.name))
                mirror(store.drop(step))
                other = held is not None and held.metadata.uid != step.uid
                assert (store.objects.get(("ns", step.name)) is held) == (other or held is None)
            case _:
                before = dict(store.objects)
                mirror(store.replace(pictured(step, store)))
                assert store.objects == listed(step, before)
        assert mirror.objects == store.objects


def listed(told: Sequence[Told], before: dict[Key, Pod]) -> dict[Key, Pod]:
    """Return what is there after a list: the last word on each name; what cannot be read stays."""
    last = {one.metadata.name if isinstance(one, Pod) else one.name: one for one in told}
    kept: dict[Key, Pod] = {}
    for name, one in last.items():
        old = before.get(("ns", name))
        if isinstance(one, Pod):
            kept["ns", name] = one
        elif isinstance(one, Unreadable) and old is not None and old.metadata.uid == one.uid:
            kept["ns", name] = old
    return kept


@given(lists)
def test_the_same_list_twice_tells_nothing_but_what_cannot_be_read(told: Sequence[Told]) -> None:
    store: Store[Pod] = Store()
    store.replace(pictured(told, store))
    again = store.replace(pictured(told, store))
    assert all(isinstance(event, Unreadable) for event in again)
