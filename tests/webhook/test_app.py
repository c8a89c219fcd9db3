"""Every request is answered in time: reviews with reviews, everything else with a 4xx."""

from __future__ import annotations

import asyncio
import gzip
import io
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import orjson
import pytest
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.web import Application, Request
from hypothesis import given
from hypothesis import strategies as st

from kube.objects.names import GATE
from runtime.http_server import Health
from tests.webhook.samples import (
    CLUSTER,
    NAMESPACE,
    NOTHING,
    Json,
    Known,
    gates_after,
    labelled,
    pod_after,
    recorded,
    worker,
)
from webhook.app import Webhook
from webhook.cache import Found, Unknown
from webhook.metrics import REVIEW_RESULTS, Metrics
from webhook.owners import GONE, Gone, Key, Lookup, Marks
from webhook.settings import Settings

Plain = TestClient[Request, Application]
PATIENT = Settings(lookup_deadline_seconds=25.0, read_timeout_seconds=25.0)
"""A busy machine may take its time; what does not come at all fails by a limit."""
HASTY = Settings(lookup_deadline_seconds=0.2, read_timeout_seconds=0.2)
JSON = {"Content-Type": "application/json"}


class Reads:
    """A reader that finds what it is told, or waits for `late`; it notes what was asked."""

    def __init__(self, **found: Found) -> None:
        self._found = {CLUSTER: found.get("cluster"), NAMESPACE: found.get("namespace")}
        self.asked: list[Key] = []
        self.late = asyncio.Event()

    async def read(self, key: Key) -> Found:
        self.asked.append(key)
        found = self._found[key]
        if found is None:
            await self.late.wait()
            return Unknown("late")
        return found


class Bug:
    """A lookup with a bug in it."""

    def find(self, _: Key) -> Marks | Gone | None:
        raise KeyError("a bug, and its trace")


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


Start = Callable[..., Coroutine[Any, Any, Plain]]


@pytest.fixture
async def start(metrics: Metrics) -> AsyncIterator[Start]:
    started: list[Plain] = []

    async def start(
        lookup: Lookup, reader: Reads | None = None, settings: Settings = PATIENT
    ) -> Plain:
        webhook = Webhook(settings, lookup, reader or Reads(), metrics)
        # As the real server is set up: a small body must not become a large one.
        server = TestServer(webhook.application())
        await server.start_server(auto_decompress=False)
        client = TestClient(server)
        await client.start_server()
        started.append(client)
        return client

    yield start
    for client in started:
        await client.close()


async def _review(client: Plain, review: Json) -> Json:
    async with client.post("/mutate", data=orjson.dumps(review), headers=JSON) as answer:
        assert answer.status == 200, await answer.text()
        assert answer.content_type == "application/json"
        answered: Json = await answer.json()
        return answered


def _counted(metrics: Metrics) -> dict[str, float]:
    counts = {
        result: metrics.registry.get_sample_value(
            "muster_webhook_reviews_total", {"result": result}
        )
        or 0.0
        for result in REVIEW_RESULTS
    }
    return {result: count for result, count in counts.items() if count}


GANG = Known(labelled())


# ---- reviews


async def test_a_pod_of_a_gang_is_gated(start: Start, metrics: Metrics) -> None:
    client = await start(GANG)
    assert gates_after(worker(), await _review(client, worker())) == [GATE]
    assert _counted(metrics) == {"gated": 1}
    assert metrics.registry.get_sample_value("muster_webhook_review_seconds_count") == 1


async def test_field_owners_are_tracked_only_where_the_operator_wants_them(start: Start) -> None:
    wanted = PATIENT.model_copy(update={"track_field_owners": True})
    for settings, expected in ((PATIENT, False), (wanted, True)):
        answered = await _review(await start(GANG, settings=settings), worker())
        assert ("managedFields" in pod_after(worker(), answered)["metadata"]) is expected


async def test_a_plain_pod_is_left_alone(start: Start, metrics: Metrics) -> None:
    client = await start(GANG)
    answered = await _review(client, recorded("plain"))
    assert answered["response"]["allowed"]
    assert "patch" not in answered["response"]
    assert _counted(metrics) == {"untouched": 1}


async def test_an_unknown_cluster_is_read(start: Start) -> None:
    reader = Reads(cluster=labelled())
    client = await start(Known(None), reader)
    assert gates_after(worker(), await _review(client, worker())) == [GATE]
    assert reader.asked == [CLUSTER]


async def test_a_pod_whose_cluster_is_gone_is_refused(start: Start) -> None:
    client = await start(Known(None), Reads(cluster=GONE))
    response = (await _review(client, worker()))["response"]
    assert (response["allowed"], response["status"]["code"]) == (False, 403)


async def test_after_one_miss_the_cache_is_not_asked_about_the_namespace(start: Start) -> None:
    """The namespace was labelled, the cluster made; the cache has seen neither yet."""
    reader = Reads(cluster=NOTHING, namespace=labelled())
    client = await start(Known(None, NOTHING), reader)
    assert gates_after(worker(), await _review(client, worker())) == [GATE]
    assert reader.asked == [CLUSTER, NAMESPACE]


async def test_an_unknown_namespace_is_read(start: Start) -> None:
    reader = Reads(cluster=NOTHING, namespace=labelled())
    client = await start(Known(NOTHING, None), reader)
    assert gates_after(worker(), await _review(client, worker())) == [GATE]


@pytest.mark.parametrize(
    "found",
    [
        {"cluster": Unknown("500: no leader")},
        {"cluster": None},
        {"cluster": NOTHING, "namespace": Unknown("429")},
        {"cluster": NOTHING, "namespace": None},
    ],
)
async def test_what_cannot_be_found_out_in_time_is_refused(
    start: Start, metrics: Metrics, found: dict[str, Found]
) -> None:
    client = await start(Known(None), Reads(**found), HASTY)
    async with asyncio.timeout(60):
        response = (await _review(client, worker()))["response"]
    assert response["allowed"] is False
    assert response["status"]["code"] == 503
    assert "cannot tell whether the pod belongs to a gang" in response["status"]["message"]
    assert "patch" not in response
    assert _counted(metrics) == {"denied": 1}


async def test_the_message_names_the_object_and_the_reason(start: Start) -> None:
    client = await start(Known(None), Reads(cluster=Unknown("500: no leader")))
    message = (await _review(client, worker()))["response"]["status"]["message"]
    assert "RayCluster demo/raycluster-kuberay: 500: no leader" in message


async def test_a_waiting_caller_does_not_hold_up_the_others(start: Start) -> None:
    reader = Reads()
    client = await start(Known(None), reader)
    waiting = asyncio.create_task(_review(client, worker()))
    answered = await _review(client, recorded("plain"))
    assert answered["response"]["allowed"]
    assert not waiting.done()
    reader.late.set()
    assert not (await waiting)["response"]["allowed"]


# ---- what is no review


async def _refused(
    client: Plain, body: Any, headers: dict[str, str] | None = None
) -> tuple[int, str]:
    async with client.post("/mutate", data=body, headers=headers or JSON) as answer:
        said = await answer.json()
        assert said["code"] == answer.status
        assert "Traceback" not in said["message"]
        return answer.status, said["message"]


@pytest.mark.parametrize("kind", ["text/plain", "application/yaml", "multipart/form-data"])
async def test_another_content_type_is_415(start: Start, metrics: Metrics, kind: str) -> None:
    client = await start(GANG)
    status, message = await _refused(client, orjson.dumps(worker()), {"Content-Type": kind})
    assert status == 415
    assert kind in message
    assert "application/json" in message
    assert _counted(metrics) == {"refused": 1}


async def test_a_content_type_with_a_charset_is_json(start: Start) -> None:
    client = await start(GANG)
    headers = {"Content-Type": "application/json; charset=utf-8"}
    async with client.post("/mutate", data=orjson.dumps(worker()), headers=headers) as answer:
        assert answer.status == 200


async def test_ten_megabytes_are_413(start: Start) -> None:
    client = await start(GANG)
    status, message = await _refused(client, io.BytesIO(b"x" * 10_000_000))
    assert status == 413
    assert "8388608" in message


async def test_ten_megabytes_without_a_length_are_413(start: Start) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(10):
            yield b"x" * 1_000_000

    status, _ = await _refused(await start(GANG), pieces())
    assert status == 413


async def test_a_large_review_is_answered(start: Start) -> None:
    review = worker(schedulingGates=[{"name": f"a/{n}"} for n in range(10_000)], filler="x" * 7**7)
    assert gates_after(review, await _review(await start(GANG), review))[-1] == GATE


async def test_a_compressed_body_is_not_unpacked(start: Start) -> None:
    status, _ = await _refused(
        await start(GANG), gzip.compress(b" " * 1_000_000), {**JSON, "Content-Encoding": "gzip"}
    )
    assert status == 400


@pytest.mark.parametrize("body", [b"", b"x", b"[]", b'{"kind":"AdmissionReview"}'])
async def test_rubbish_is_400(start: Start, body: bytes) -> None:
    status, message = await _refused(await start(GANG), body)
    assert status == 400
    assert message.startswith(("not JSON: ", "not an AdmissionReview: "))


async def test_another_method_or_path_is_a_4xx(start: Start) -> None:
    client = await start(GANG)
    assert (await client.get("/mutate")).status == 405
    assert (await client.post("/elsewhere")).status == 404


async def test_a_bug_does_not_show_itself_to_the_caller(start: Start, metrics: Metrics) -> None:
    status, message = await _refused(await start(Bug()), orjson.dumps(worker()))
    assert status == 500
    assert "KeyError" not in message
    assert _counted(metrics) == {"failed": 1}


async def _raw(client: Plain, text: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(client.host, client.port)
    writer.write(text)
    async with asyncio.timeout(60):
        line = await reader.readline()
    writer.close()
    return line


async def test_a_body_that_does_not_come_is_408(start: Start) -> None:
    head = b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    client = await start(GANG, settings=HASTY)
    line = await _raw(client, head + b"Content-Length: 1000\r\n\r\n{")
    assert line.startswith(b"HTTP/1.1 408 ")


async def test_fifty_slow_callers_do_not_hold_up_a_quick_one(start: Start) -> None:
    client = await start(GANG, settings=PATIENT.model_copy(update={"read_timeout_seconds": 2.0}))
    head = b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    slow = [
        asyncio.create_task(_raw(client, head + b"Content-Length: 8000000\r\n\r\n{"))
        for _ in range(50)
    ]
    async with asyncio.timeout(60):
        assert (await _review(client, worker()))["response"]["allowed"]
        assert all(line.startswith(b"HTTP/1.1 408 ") for line in await asyncio.gather(*slow))


async def test_a_body_that_breaks_off_does_no_harm(start: Start) -> None:
    client = await start(GANG)
    _, writer = await asyncio.open_connection(client.host, client.port)
    head = b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    writer.write(head + b"Content-Length: 1000\r\n\r\n{")
    await writer.drain()
    writer.transport.abort()
    assert (await _review(client, worker()))["response"]["allowed"]


async def test_anything_at_all_is_answered_and_never_with_a_5xx(start: Start) -> None:
    """One server, many bodies: a body must not harm the next one either."""
    client = await start(GANG)
    bodies: list[bytes] = []

    @given(st.binary() | st.text().map(orjson.dumps))
    def collect(body: bytes) -> None:
        bodies.append(body)

    collect()
    for body in bodies:
        async with client.post("/mutate", data=body, headers=JSON) as answer:
            assert answer.status == 400
    assert (await _review(client, worker()))["response"]["allowed"]


# ---- health


@pytest.fixture
async def health(metrics: Metrics) -> AsyncIterator[tuple[Plain, dict[str, bool], Health]]:
    state = {"cache": True, "certificate": True}
    checks = [(name, lambda name=name: state[name]) for name in state]
    health = Health(checks, metrics.registry)
    client = TestClient(TestServer(health.application()))
    await client.start_server()
    yield client, state, health
    await client.close()


async def test_ready_is_said_when_all_is_there(
    health: tuple[Plain, dict[str, bool], Health],
) -> None:
    client, state, server = health
    assert (await client.get("/readyz")).status == 200
    state.update(cache=False, certificate=False)
    answer = await client.get("/readyz")
    assert (answer.status, await answer.text()) == (503, "not ready: cache, certificate\n")
    state.update(cache=True, certificate=True)
    server.stop()
    assert await (await client.get("/readyz")).text() == "not ready: stopping\n"
    assert (await client.get("/livez")).status == 200


async def test_metrics_have_the_promised_names(
    health: tuple[Plain, dict[str, bool], Health], metrics: Metrics
) -> None:
    client, _, _ = health
    metrics.watch_sync(lambda: True)
    text = await (await client.get("/metrics")).text()
    for name in (
        'muster_webhook_reviews_total{result="gated"} 0.0',
        'muster_webhook_lookups_total{source="get"} 0.0',
        "muster_webhook_review_seconds_bucket",
        "muster_webhook_cache_synced 1.0",
        "muster_webhook_certificate_expiry_timestamp_seconds 0.0",
        "muster_webhook_certificate_refusals_total 0.0",
    ):
        assert name in text
