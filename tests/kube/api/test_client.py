"""One call: its bytes or a KubeError, within its timeout."""

import asyncio
import itertools
import json
import socket
import ssl
import time
from datetime import UTC, datetime
from ipaddress import IPv4Address
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st

from certs.chain import ServerNames, issue_leaf, new_authority
from kube.api.backoff import Backoff
from kube.api.bodies import sent_at
from kube.api.client import Client
from kube.api.connection import LineSplitter
from kube.api.credentials import open_access
from kube.api.errors import (
    ApiError,
    Conflict,
    Garbled,
    Gone,
    NotFound,
    ServerError,
    Timeout,
    TooManyRequests,
    Unreachable,
)
from kube.api.resources import Resource
from tests.kube.fake_api import FakeApi, bookmark, hangs, line, resets, says, streams

PODS = Resource("", "v1", "pods")
NODES = Resource("", "v1", "nodes", namespaced=False)
GANGS = Resource("muster.dev", "v1alpha1", "gangs")


class Named(msgspec.Struct):
    name: str


class Thing(msgspec.Struct):
    metadata: Named


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (PODS.path(), "/api/v1/pods"),
        (PODS.path("a", "b"), "/api/v1/namespaces/a/pods/b"),
        (PODS.path("a", "b", "status"), "/api/v1/namespaces/a/pods/b/status"),
        (NODES.path(name="n"), "/api/v1/nodes/n"),
        (GANGS.path("a"), "/apis/muster.dev/v1alpha1/namespaces/a/gangs"),
        (PODS.path("../x", "a/b"), "/api/v1/namespaces/..%2Fx/pods/a%2Fb"),
    ],
)
def test_paths(path: str, expected: str) -> None:
    assert path == expected


@pytest.mark.parametrize(("namespace", "name"), [("a", None), ("a", "n")])
def test_an_object_without_namespace_is_given_none(namespace: str, name: str | None) -> None:
    with pytest.raises(AssertionError):
        NODES.path(namespace, name)
    with pytest.raises(AssertionError):
        PODS.path(None, "pod")


async def test_an_answer_is_bytes_or_the_type_asked_for(fake: FakeApi, client: Client) -> None:
    fake.put("pods", "a")
    raw = await client.get(PODS.path("ns", "a"))
    assert json.loads(raw)["metadata"]["name"] == "a"
    assert (await client.get(PODS.path("ns", "a"), as_=Thing)).metadata.name == "a"


async def test_what_does_not_fit_the_type_is_garbled(fake: FakeApi, client: Client) -> None:
    fake.put("pods", "a")
    with pytest.raises(Garbled):
        await client.get(PODS.path("ns", "a"), as_=Named)


async def test_the_time_of_the_server_is_the_date_of_its_answer() -> None:
    async def version(_: web.Request) -> web.Response:
        return web.json_response({})

    app = web.Application()
    app.router.add_get("/version", version)
    server = TestServer(app, host="127.0.0.1")
    await server.start_server()
    async with Client(open_access(f"http://127.0.0.1:{server.port}")) as client:
        before = int(time.time())
        assert before <= await client.server_time() <= time.time()
    await server.close()


def test_an_answer_without_a_date_says_no_time() -> None:
    with pytest.raises(Garbled):
        sent_at({"Date": "yesterday"})
    with pytest.raises(Garbled):
        sent_at({})


async def test_writes_say_what_they_are(fake: FakeApi, client: Client) -> None:
    path = GANGS.path("ns", "g")
    await client.create(GANGS.path("ns"), Thing(Named("g")))
    await client.json_patch(path, [{"op": "test", "path": "/a", "value": 1}])
    await client.merge_patch(path, {"spec": {"a": 1}})
    await client.apply(path, {"metadata": {}}, field_manager="muster", force=True)
    await client.delete(path, uid=fake.objects["gangs", "ns", "g"]["metadata"]["uid"])
    assert [seen.headers["Content-Type"] for seen in fake.seen] == [
        "application/json",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/apply-patch+yaml",
        "application/json",
    ]
    assert fake.seen[3].query == {"fieldManager": "muster", "force": "true"}
    assert {seen.headers["User-Agent"] for seen in fake.seen} == {"muster-test"}


async def test_a_delete_says_what_it_means(fake: FakeApi, client: Client) -> None:
    fake.put("pods", "a", uid="second")
    with pytest.raises(Conflict):
        await client.delete(PODS.path("ns", "a"), uid="first", grace_period_seconds=0)
    assert json.loads(fake.seen[0].body) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": {"uid": "first"},
        "gracePeriodSeconds": 0,
    }


async def test_metadata_only_is_asked_for(fake: FakeApi, client: Client) -> None:
    fake.put("pods", "a")
    await client.get(PODS.path("ns", "a"), metadata_only=True)
    async for _ in client.list(PODS.path(), metadata_only=True):
        pass
    partial = [seen.headers["Accept"] for seen in fake.seen]
    assert partial == [
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    ]


async def test_a_list_comes_in_pages(fake: FakeApi, client: Client) -> None:
    for number in range(5):
        fake.put("pods", f"p{number}")
    pages = [page async for page in client.list(PODS.path(), label_selector="a in (b,c)", limit=2)]
    assert [len(json.loads(page)["items"]) for page in pages] == [2, 2, 1]
    assert all(seen.query["labelSelector"] == "a in (b,c)" for seen in fake.seen)


async def test_a_list_that_took_too_long_is_gone(fake: FakeApi, client: Client) -> None:
    for number in range(3):
        fake.put("pods", f"p{number}")
    pages = client.list(PODS.path(), limit=1)
    await anext(pages)
    fake.compact()
    with pytest.raises(Gone):
        await anext(pages)


@pytest.mark.parametrize(
    ("code", "kind"), [(404, NotFound), (429, TooManyRequests), (500, ServerError), (400, ApiError)]
)
async def test_an_error_is_one_of_ours(
    fake: FakeApi, client: Client, code: int, kind: type[ApiError]
) -> None:
    fake.fail("patch", says(code, "R", "why", **{"Retry-After": "2"}))
    with pytest.raises(kind, match="why") as caught:
        await client.json_patch(PODS.path("ns", "a"), [])
    assert caught.value.retry_after == 2
    assert fake.count("patch") == 1, "a write is never sent twice"


async def test_a_call_ends_at_its_deadline(fake: FakeApi, client: Client) -> None:
    never = asyncio.Event()
    fake.always["patch"] = hangs(never)
    with pytest.raises(Timeout) as caught:
        async with asyncio.timeout(40.0):  # a call of this client has 60 where nothing is said
            await client.json_patch(PODS.path("ns", "a"), [], timeout=0.05)
    assert caught.value.outcome_unknown
    never.set()


async def test_an_answer_that_stops_half_way_ends_at_the_deadline(
    fake: FakeApi, client: Client
) -> None:
    never = asyncio.Event()
    fake.always["get"] = streams(b'{"metadata":', then=never)
    with pytest.raises(Timeout):
        await client.get(PODS.path("ns", "a"), timeout=0.05)
    never.set()


async def test_a_connection_that_breaks_leaves_the_outcome_open(
    fake: FakeApi, client: Client
) -> None:
    fake.always["patch"] = resets
    with pytest.raises(Unreachable) as caught:
        await client.json_patch(PODS.path("ns", "a"), [])
    assert caught.value.outcome_unknown


async def test_a_connection_refused_leaves_nothing_open() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        async with Client(open_access(url)) as client:
            with pytest.raises(Unreachable) as caught:
                await client.get("/api/v1/pods")
    assert not caught.value.outcome_unknown
    assert str(caught.value) == f"GET /api/v1/pods: no connection to {url[7:]}: Connection refused"


async def test_a_name_that_is_not_known_is_said_in_the_words_of_the_resolver() -> None:
    async with Client(open_access("http://muster.invalid:6443")) as client:
        with pytest.raises(Unreachable) as caught:
            await client.get("/api/v1/pods")
    said = str(caught.value)
    assert said.startswith("GET /api/v1/pods: no connection to muster.invalid:6443: ")
    assert "name" in said.rpartition(": ")[2].lower()


async def test_a_connection_that_does_not_speak_tls_is_said_without_objects_of_python(
    fake: FakeApi,
) -> None:
    address = fake.url.replace("http:", "https:")
    async with Client(open_access(address)) as over_tls:
        with pytest.raises(Unreachable) as caught:
            await over_tls.get("/api/v1/pods")
    assert ": TLS: " in str(caught.value)
    assert "object at" not in str(caught.value)


async def test_a_certificate_that_is_not_trusted_is_named_as_such(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    here = ServerNames(addresses=(IPv4Address("127.0.0.1"),))
    pair = issue_leaf(new_authority("another", now), here, now)
    (tmp_path / "both.pem").write_bytes(pair.certificate + pair.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "both.pem")
    server = TestServer(web.Application(), host="127.0.0.1", scheme="https")
    await server.start_server(ssl=context)
    address = f"127.0.0.1:{server.port}"
    async with Client(open_access(f"https://{address}")) as client:
        with pytest.raises(Unreachable) as caught:
            await client.get("/version")
    await server.close()
    said = f"no connection to {address}: its certificate is not trusted: "
    assert str(caught.value).startswith(f"GET /version: {said}")
    assert not caught.value.outcome_unknown


async def test_a_cancelled_call_stays_cancelled(fake: FakeApi, client: Client) -> None:
    never = asyncio.Event()
    fake.always["get"] = hangs(never)
    call = asyncio.create_task(client.get(PODS.path("ns", "a")))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    never.set()


async def test_one_connection_serves_many_calls(fake: FakeApi, client: Client) -> None:
    peers = set()

    async def note(request: object) -> None:
        peers.add(request.transport.get_extra_info("peername"))  # type: ignore[attr-defined]

    fake.put("pods", "a")
    fake.always["get"] = note
    for _ in range(5):
        await client.get(PODS.path("ns", "a"))
    assert len(peers) == 1


async def test_a_watch_gives_the_lines_that_came_together(fake: FakeApi, client: Client) -> None:
    event = line("ADDED", {"metadata": {"name": "a"}})
    fake.fail("watch", streams(event + event[:7], event[7:] + bookmark(7)))
    got: list[bytes] = []
    async with client.stream_watch(PODS.path(), {"resourceVersion": "1"}) as batches:
        async for lines in batches:
            got += lines
    assert got == [event.strip(), event.strip(), bookmark(7).strip()]
    assert fake.seen[0].query == {"watch": "true", "resourceVersion": "1"}


async def test_a_silent_watch_times_out(fake: FakeApi, client: Client) -> None:
    async def follow() -> None:
        watch = client.stream_watch(PODS.path(), {"resourceVersion": "100"}, silence=0.05)
        async with watch as batches:
            async for _ in batches:
                pass

    with pytest.raises(Timeout):
        await follow()


async def test_a_watch_refused_is_an_error_of_the_call(fake: FakeApi, client: Client) -> None:
    fake.fail("watch", says(410, "Expired"))
    with pytest.raises(Gone):
        async with client.stream_watch(PODS.path(), {}):
            pass


@given(st.lists(st.binary(max_size=20).filter(lambda text: b"\n" not in text)), st.data())
def test_lines_do_not_depend_on_where_the_pieces_end(
    lines: list[bytes], data: st.DataObject
) -> None:
    stream = b"".join(text + b"\n" for text in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    edges = [0, *cuts, len(stream)]
    splitter = LineSplitter()
    got: list[bytes] = []
    for start, end in itertools.pairwise(edges):
        got += splitter.feed(stream[start:end])
    assert got == [text for text in lines if text]


def test_a_line_in_a_thousand_pieces_costs_no_more_than_its_bytes() -> None:
    splitter = LineSplitter()
    piece = b"x" * 5000
    assert all(splitter.feed(piece) == [] for _ in range(1000))
    assert splitter.feed(b"\n") == [piece * 1000]


@given(st.integers(0, 5000), st.floats(0, 1, exclude_max=True))
def test_a_delay_grows_and_stays_within_its_bounds(failures: int, chance: float) -> None:
    backoff = Backoff(initial=0.8, maximum=30)
    assert 0 <= backoff.delay(failures, chance) <= 30
    assert backoff.delay(failures, chance) <= backoff.delay(failures + 1, chance)
    assert 9 <= backoff.delay(failures, chance, retry_after=9) <= 9.8


def test_the_delays_double_up_to_the_maximum() -> None:
    backoff = Backoff(initial=0.8, maximum=30, jitter=0)
    assert [backoff.delay(n, 0.5) for n in (1, 2, 3, 7, 9)] == [0.8, 1.6, 3.2, 30, 30]
