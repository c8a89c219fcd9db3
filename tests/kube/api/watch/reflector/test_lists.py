"""The reflector's lists: streamed or in pages, and what they tell."""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from kube.api.client import Client
from kube.api.watch.events import (
    Synced,
)
from kube.api.watch.pace import Selection
from kube.api.watch.reflector import Reflector, wait_synced
from runtime.slicing import ITERATIONS
from tests.kube.api.watch.reflector.watched import (
    FAST,
    PATIENCE,
    PODS,
    Mirror,
    Pod,
    watching,
)
from tests.kube.fake_api import (
    FakeApi,
    Fault,
    eventually,
    line,
    passes,
    says,
    streams,
)

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
