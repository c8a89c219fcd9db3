"""Cached marks are used only while they are fresh; all others are read once and in time."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import pytest
from pytest_aiohttp import AiohttpServer

from kube.api.client import Client
from kube.api.credentials import open_access
from kube.objects.names import OPT_IN
from tests.webhook import apiserver
from tests.webhook.apiserver import FakeApiServer
from tests.webhook.samples import CLUSTER, NAMESPACE
from webhook.cache import SILENCE_SECONDS, Cache, Found, Marked, Reader, Unknown
from webhook.metrics import Metrics
from webhook.owners import GONE, ClusterKey, Marks

LABELS = {OPT_IN: "true", "team": "a"}
DEADLINE = 60.0
SHORT = 0.3


def _marked(uid: str, **metadata: object) -> Marked:
    return msgspec.convert({"metadata": {"uid": uid, **metadata}}, Marked)


@dataclass
class Holds:
    """A reflector as far as the cache looks at it."""

    store: Mapping[tuple[str, str], Marked] = field(default_factory=dict)
    synced: bool = True
    told_until: float | None = 0.0


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def api() -> FakeApiServer:
    return FakeApiServer()


@pytest.fixture
async def client(api: FakeApiServer, aiohttp_server: AiohttpServer) -> AsyncIterator[Client]:
    server = await aiohttp_server(api.application())
    async with Client(open_access(str(server.make_url("")))) as client:
        yield client


@pytest.fixture
async def reader(client: Client, metrics: Metrics) -> AsyncIterator[Reader]:
    reader = Reader(client, DEADLINE, limit=8, metrics=metrics)
    yield reader
    await reader.close()


def _counted(metrics: Metrics, source: str) -> float:
    value = metrics.registry.get_sample_value("muster_webhook_lookups_total", {"source": source})
    assert value is not None
    return value


# ---- from memory


def _cache(clusters: Holds, namespaces: Holds, metrics: Metrics, now: float = 0.0) -> Cache:
    return Cache(clusters, namespaces, metrics, clock=lambda: now)


CLUSTERS = Holds({("demo", CLUSTER.name): _marked(CLUSTER.uid, labels={OPT_IN: "true", "a": "b"})})
NAMESPACES = Holds({("", "demo"): _marked("ns", annotations={OPT_IN: "x"})})


def test_what_is_held_is_found(metrics: Metrics) -> None:
    cache = _cache(CLUSTERS, NAMESPACES, metrics)
    assert cache.find(CLUSTER) == Marks({OPT_IN: "true"}, {})
    assert cache.find(NAMESPACE) == Marks({}, {OPT_IN: "x"})
    assert _counted(metrics, "cache") == 2


def test_of_a_long_value_little_is_kept() -> None:
    """An annotation may be of 256 KiB, and there are as many clusters as tenants make."""
    raw = {"metadata": {"name": "a", "annotations": {OPT_IN: "true" * 50_000}}}
    marked = msgspec.convert(raw, Marked)
    assert marked.metadata.annotations is not None
    assert marked.metadata.annotations.gang == ("true" * 20)[:63]


def test_absence_proves_nothing(metrics: Metrics) -> None:
    assert _cache(Holds(), Holds(), metrics).find(CLUSTER) is None
    assert _cache(Holds(), Holds(), metrics).find(NAMESPACE) is None
    assert _counted(metrics, "cache") == 0


def test_another_cluster_of_the_name_is_not_it(metrics: Metrics) -> None:
    later = replace(CLUSTER, uid="later")
    assert _cache(CLUSTERS, NAMESPACES, metrics).find(later) is None


def test_an_incomplete_cache_knows_nothing(metrics: Metrics) -> None:
    unsynced = replace(CLUSTERS, synced=False)
    cache = _cache(unsynced, NAMESPACES, metrics)
    assert cache.find(CLUSTER) is None
    assert not cache.synced
    assert not _cache(CLUSTERS, replace(NAMESPACES, synced=False), metrics).synced


@pytest.mark.parametrize(("seconds", "known"), [(1.0, True), (SILENCE_SECONDS + 1, False)])
def test_a_cache_that_hears_nothing_is_not_believed(
    metrics: Metrics, seconds: float, known: bool
) -> None:
    cache = _cache(CLUSTERS, NAMESPACES, metrics, now=seconds)
    assert (cache.find(CLUSTER) is not None) is known
    assert (cache.find(NAMESPACE) is not None) is known
    assert cache.synced, "silence alone must not take every replica out of service"


# ---- from the API server


async def test_a_cluster_is_read(api: FakeApiServer, reader: Reader, metrics: Metrics) -> None:
    api.cluster = apiserver.found(labels=LABELS)
    assert await reader.read(CLUSTER) == Marks({OPT_IN: "true"}, {})
    assert _counted(metrics, "get") == 1


async def test_a_namespace_is_read(api: FakeApiServer, reader: Reader) -> None:
    api.namespace = apiserver.found(uid="any", labels=LABELS)
    assert await reader.read(NAMESPACE) == Marks({OPT_IN: "true"}, {})


async def test_metadata_may_be_empty(api: FakeApiServer, reader: Reader) -> None:
    api.cluster = apiserver.found(labels=None, annotations={})
    assert await reader.read(CLUSTER) == Marks({}, {})


async def test_not_found_is_gone(reader: Reader, metrics: Metrics) -> None:
    assert await reader.read(CLUSTER) is GONE
    assert _counted(metrics, "get") == 1


async def test_another_cluster_under_the_name_is_gone(api: FakeApiServer, reader: Reader) -> None:
    api.cluster = apiserver.found(uid="later", labels=LABELS)
    assert await reader.read(CLUSTER) is GONE


@pytest.mark.parametrize(
    "reply",
    [
        apiserver.status(500),
        apiserver.status(503),
        apiserver.status(429),
        apiserver.status(403, "Forbidden"),
        apiserver.status(401),
        apiserver.status(410, "Gone"),
        apiserver.unknown_path,
        apiserver.rubbish,
    ],
)
async def test_whatever_else_comes_is_unknown(
    api: FakeApiServer, reader: Reader, metrics: Metrics, reply: apiserver.Reply
) -> None:
    api.cluster = reply
    async with asyncio.timeout(2 * DEADLINE):
        assert isinstance(await reader.read(CLUSTER), Unknown)
    assert _counted(metrics, "error") == 1


async def test_one_that_is_being_deleted_still_says_what_it_is(
    api: FakeApiServer, reader: Reader
) -> None:
    """Its pods are gated to the end: a finalizer may keep it for long."""
    gone_soon: dict[str, Any] = {
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["test/hold"],
    }
    api.cluster = apiserver.found(labels=LABELS, **gone_soon)
    assert await reader.read(CLUSTER) == Marks({OPT_IN: "true"}, {})


async def test_what_does_not_come_in_time_is_unknown(
    api: FakeApiServer, client: Client, metrics: Metrics
) -> None:
    api.cluster = apiserver.for_ever
    reader = Reader(client, SHORT, limit=8, metrics=metrics)
    async with asyncio.timeout(DEADLINE):
        assert isinstance(await reader.read(CLUSTER), Unknown)
    assert _counted(metrics, "error") == 1
    await reader.close()


async def test_an_api_server_that_is_not_there_is_unknown(
    metrics: Metrics,
) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        async with Client(open_access(f"http://127.0.0.1:{held.getsockname()[1]}")) as client:
            reader = Reader(client, DEADLINE, limit=8, metrics=metrics)
            assert isinstance(await reader.read(CLUSTER), Unknown)


async def _started(api: FakeApiServer, gets: int) -> None:
    async with asyncio.timeout(60):
        await api.until_asked(gets)


async def test_fifty_callers_at_once_cost_one_get(api: FakeApiServer, reader: Reader) -> None:
    api.cluster = held = apiserver.Held(apiserver.found(labels=LABELS))
    asking = [asyncio.create_task(reader.read(CLUSTER)) for _ in range(50)]
    await _started(api, 1)
    held.go.set()
    assert await asyncio.gather(*asking) == [Marks({OPT_IN: "true"}, {})] * 50
    assert api.asked.total() == 1


async def test_an_answer_is_not_kept(api: FakeApiServer, reader: Reader) -> None:
    assert await reader.read(CLUSTER) is GONE
    api.cluster = apiserver.found(labels=LABELS)
    assert await reader.read(CLUSTER) == Marks({OPT_IN: "true"}, {})


async def test_a_get_for_an_earlier_cluster_does_not_answer_for_a_later_one(
    api: FakeApiServer, reader: Reader
) -> None:
    """The GET under way may have been executed before the later one existed."""
    api.cluster = held = apiserver.Held(apiserver.status(404, "NotFound"))
    earlier = asyncio.create_task(reader.read(CLUSTER))
    await _started(api, 1)
    api.cluster = apiserver.found(uid="later", labels=LABELS)
    assert await reader.read(replace(CLUSTER, uid="later")) == Marks({OPT_IN: "true"}, {})
    held.go.set()
    assert await earlier is GONE


async def test_a_caller_that_gives_up_does_not_stop_the_others(
    api: FakeApiServer, reader: Reader
) -> None:
    api.cluster = held = apiserver.Held(apiserver.found(labels=LABELS))
    impatient, patient = (asyncio.create_task(reader.read(CLUSTER)) for _ in range(2))
    await _started(api, 1)
    impatient.cancel()
    await asyncio.gather(impatient, return_exceptions=True)
    held.go.set()
    assert await patient == Marks({OPT_IN: "true"}, {})


async def test_lookups_under_way_are_bounded(
    api: FakeApiServer, reader: Reader, metrics: Metrics
) -> None:
    api.cluster = held = apiserver.Held(apiserver.status(404, "NotFound"))
    keys = [ClusterKey("demo", f"c{number}", "u") for number in range(8)]
    asking: list[asyncio.Task[Found]] = [asyncio.create_task(reader.read(key)) for key in keys]
    await _started(api, 8)
    assert isinstance(await reader.read(CLUSTER), Unknown)
    assert _counted(metrics, "error") == 1
    held.go.set()
    assert await asyncio.gather(*asking) == [GONE] * 8
    assert await reader.read(CLUSTER) is GONE


async def test_closing_ends_what_is_under_way(api: FakeApiServer, reader: Reader) -> None:
    api.cluster = apiserver.for_ever
    asking = asyncio.create_task(reader.read(CLUSTER))
    await _started(api, 1)
    await reader.close()
    assert isinstance((await asyncio.gather(asking, return_exceptions=True))[0], BaseException)
