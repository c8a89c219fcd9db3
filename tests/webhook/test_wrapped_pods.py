"""Pods of wrapped objects are gated where the AppWrapper that their labels name is Muster's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec
import orjson
import pytest
from aiohttp import web
from pytest_aiohttp import AiohttpServer

from kube.api.client import Client
from kube.api.credentials import open_access
from kube.objects.names import (
    APP_WRAPPER,
    APP_WRAPPER_GROUP,
    APP_WRAPPER_UID,
    CODEFLARE_GROUP,
    CREATED_BY,
    GATE,
    MCAD_GROUP,
)
from tests.webhook import apiserver
from tests.webhook.samples import (
    CLUSTER,
    NOTHING,
    OURS,
    Json,
    gates_after,
    labelled,
    pod_of,
    recorded,
    worker,
)
from tests.webhook.test_cache import Holds
from webhook.admission_review import ALLOW, Deny
from webhook.cache import WRAPPERS, Cache, Found, Marked, Reader, Unknown
from webhook.metrics import Metrics
from webhook.owners import GONE, OFF, AppWrapperKey, Gone, Key, Marks
from webhook.review import Ask, Decision, Review, answer, decide, read_review

KEY = AppWrapperKey("demo", "aw", "w-1")
MCADS = AppWrapperKey("demo", "aw", "w-1", MCAD_GROUP)
NOTED = Marks({}, {CREATED_BY: ""})
LABELS = {APP_WRAPPER: "aw", APP_WRAPPER_UID: "w-1"}


def made_for(uid: str, *, opted_in: bool = False) -> Marks:
    """A RayCluster that is made for an AppWrapper."""
    return Marks({APP_WRAPPER_UID: uid, **(labelled().labels if opted_in else {})}, {})


class Known:
    """What is known of one AppWrapper, and of the RayCluster of the samples."""

    def __init__(self, wrapper: Marks | Gone | None, cluster: Marks | Gone | None = GONE) -> None:
        self._known: dict[Key, Marks | Gone | None] = {KEY: wrapper, CLUSTER: cluster}

    def but(self, known: Mapping[Key, Marks | Gone | None]) -> Known:
        self._known |= known
        return self

    def find(self, key: Key) -> Marks | Gone | None:
        other = None if isinstance(key, AppWrapperKey) else NOTHING
        return self._known.get(key, other)


def pod(name: str = "plain", **labels: str) -> Json:
    """Return the review of a pod with the labels that Muster puts into templates."""
    review = recorded(name)
    pod_of(review)["metadata"].setdefault("labels", {}).update({**LABELS, **labels})
    return review


def decided(review: Json, lookup: Known) -> Decision:
    read = read_review(orjson.dumps(review))
    assert isinstance(read, Review)
    return decide(read, lookup)


def gates(review: Json, lookup: Known) -> list[str]:
    read = read_review(orjson.dumps(review))
    assert isinstance(read, Review)
    decision = decide(read, lookup)
    assert not isinstance(decision, Ask)
    return gates_after(review, orjson.loads(answer(read, decision)))


def test_a_pod_of_any_kind_is_gated_by_its_labels() -> None:
    assert gates(pod(), Known(NOTED)) == [GATE]


def test_a_ray_pod_of_a_wrapped_cluster_is_gated_once_whichever_rule_asks_first() -> None:
    for cluster in (made_for("w-1"), made_for("w-1", opted_in=True)):
        assert gates(pod("worker"), Known(NOTED, cluster)) == [GATE]
    gated = pod("worker")
    pod_of(gated)["spec"]["schedulingGates"] = [OURS]
    assert decided(gated, Known(NOTED, labelled())) is ALLOW


def test_with_an_appwrapper_of_another_controller_the_owner_decides() -> None:
    assert decided(pod(), Known(NOTHING)) is ALLOW
    wrapped = made_for("w-1", opted_in=True)
    assert gates(pod("worker"), Known(NOTHING, wrapped)) == [GATE]
    assert decided(pod("worker"), Known(NOTHING, NOTHING)) is ALLOW


@pytest.mark.parametrize(
    ("name", "cluster"),
    [
        ("plain", GONE),
        ("worker", made_for("w-1")),
        ("worker", made_for("w-1", opted_in=True)),
        ("worker", NOTHING),
        ("worker", GONE),
        ("worker", None),
    ],
)
def test_a_pod_of_an_appwrapper_that_is_gone_is_refused(name: str, cluster: Marks | Gone) -> None:
    """Whatever makes it outlived its AppWrapper, and no quota counts it any more."""
    refused = decided(pod(name), Known(GONE, cluster))
    assert isinstance(refused, Deny)
    assert refused.code == 403
    assert refused.message == (
        "AppWrapper demo/aw (uid w-1), for which the pod is made, is gone; allowed: a pod of one "
        "that exists"
    )


def test_a_pod_of_an_appwrapper_whose_ray_cluster_is_gone_is_refused() -> None:
    refused = decided(pod("worker"), Known(NOTED, GONE))
    assert isinstance(refused, Deny)
    assert refused.message.startswith("RayCluster demo/raycluster-kuberay (uid ")


@pytest.mark.parametrize("wrapper", [NOTED, GONE, None], ids=["there", "gone", "unknown"])
def test_what_cleans_redis_up_is_never_held(wrapper: Marks | Gone | None) -> None:
    """The deletion of its RayCluster waits for it, also where that has outlived its AppWrapper."""
    assert decided(pod("redis-cleanup"), Known(wrapper)) is ALLOW


def test_only_a_job_cleans_redis_up() -> None:
    forged = pod("redis-cleanup")
    pod_of(forged)["metadata"]["ownerReferences"][0]["kind"] = "ReplicaSet"
    assert gates(forged, Known(NOTED)) == [GATE]


@pytest.mark.parametrize("wrapper", [NOTED, NOTHING], ids=["of ours", "of others"])
@pytest.mark.parametrize("cluster", [labelled(), made_for("w-2", opted_in=True)], ids=str)
def test_labels_take_no_pod_out_of_the_gang_of_its_ray_cluster(
    wrapper: Marks | Gone, cluster: Marks
) -> None:
    refused = decided(pod("worker"), Known(wrapper, cluster))
    assert isinstance(refused, Deny)
    assert refused.code == 403
    assert refused.message.startswith(f"labels {APP_WRAPPER} and {APP_WRAPPER_UID} name AppWrapper")
    assert refused.message.endswith("allowed: a template without them")


def test_labels_take_no_ray_pod_into_the_gang_of_an_app_wrapper() -> None:
    assert isinstance(decided(pod("worker"), Known(NOTED, NOTHING)), Deny)


def test_where_there_are_no_app_wrappers_the_labels_mean_nothing() -> None:
    assert gates(pod("worker"), Known(OFF, labelled())) == [GATE]
    assert decided(pod("worker"), Known(OFF, NOTHING)) is ALLOW
    assert decided(pod(), Known(OFF)) is ALLOW


def test_an_appwrapper_that_is_not_known_is_asked_for_before_the_owner() -> None:
    assert decided(pod("worker"), Known(None, None)) == Ask(KEY)


@pytest.mark.parametrize(
    "labels",
    [
        {APP_WRAPPER_UID: ""},
        {APP_WRAPPER: ""},
        {APP_WRAPPER: "Not_a.Name"},
        {APP_WRAPPER: "../secrets"},
        {APP_WRAPPER: "a" * 300},
        {APP_WRAPPER_GROUP: "example.com"},
    ],
)
def test_labels_that_name_no_appwrapper_are_no_labels(labels: dict[str, str]) -> None:
    assert decided(pod(**labels), Known(None)) is ALLOW


def test_a_pod_with_a_node_is_left_alone() -> None:
    placed = pod()
    pod_of(placed)["spec"]["nodeName"] = "n"
    assert decided(placed, Known(NOTED)) is ALLOW
    assert decided(worker(nodeName="n"), Known(NOTED, labelled())) is ALLOW


# ---- from memory


def held(uid: str, **metadata: Any) -> Holds:
    marked = msgspec.convert({"metadata": {"uid": uid, **metadata}}, Marked)
    return Holds({("demo", "aw"): marked})


def cache(*wrappers: Holds) -> Cache:
    by_group = dict(zip((CODEFLARE_GROUP, MCAD_GROUP), wrappers, strict=False))
    return Cache(Holds(), Holds(), Metrics(), clock=lambda: 0.0, wrappers=by_group)


def test_the_label_says_in_which_group_the_appwrapper_is() -> None:
    named = pod(**{APP_WRAPPER_GROUP: MCAD_GROUP})
    assert isinstance(decided(named, Known(NOTED).but({MCADS: GONE})), Deny)
    assert decided(named, Known(None).but({MCADS: None})) == Ask(MCADS)


def test_an_appwrapper_is_found_in_its_group_by_its_uid() -> None:
    ours = held("w-1", annotations={CREATED_BY: "x" * 30_000})
    assert cache(Holds(), ours).find(MCADS) == NOTED
    assert cache(ours, Holds()).find(KEY) == NOTED
    assert cache(Holds(), ours).find(KEY) is None
    assert cache(held("other"), held("later")).find(KEY) is None
    assert cache(held("w-1"), Holds()).find(KEY) == NOTHING


def test_without_the_setting_there_is_no_appwrapper() -> None:
    assert cache().find(KEY) is OFF


def test_the_caches_of_appwrappers_must_be_complete_too() -> None:
    unsynced = Holds(synced=False)
    assert not cache(held("w-1"), unsynced).synced
    assert cache(held("w-1"), Holds()).synced


@pytest.mark.parametrize(
    ("owner", "counts"),
    [
        ({"kind": "AppWrapper", "uid": "w-1", "controller": True}, True),
        ({"kind": "RayJob", "uid": "j", "controller": True}, True),
        ({"kind": "AppWrapper", "uid": "w-2", "controller": True}, False),
        ({"kind": "RayJob", "uid": "j"}, False),
        ({}, False),
    ],
)
def test_a_ray_cluster_is_made_for_what_owns_it_and_not_for_what_it_says(
    owner: Json, counts: bool
) -> None:
    meta = {"uid": CLUSTER.uid, "labels": LABELS, "ownerReferences": [owner] if owner else []}
    marked = msgspec.convert({"metadata": meta}, Marked)
    clusters = Holds({(CLUSTER.namespace, CLUSTER.name): marked})
    found = Cache(clusters, Holds(), Metrics(), clock=lambda: 0.0).find(CLUSTER)
    assert found == (made_for("w-1") if counts else NOTHING)


# ---- from the API server


class Server:
    """Answers for AppWrappers of each group."""

    def __init__(self) -> None:
        self.replies: dict[str, apiserver.Reply] = dict.fromkeys(WRAPPERS, apiserver.unknown_path)

    def application(self) -> web.Application:
        application = web.Application()
        for each in WRAPPERS.values():
            application.router.add_get(each.path("demo", "aw"), self._reply)
        return application

    async def _reply(self, request: web.Request) -> web.StreamResponse:
        return await self.replies[request.path.split("/")[2]](request)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
async def reader(server: Server, aiohttp_server: AiohttpServer) -> AsyncIterator[Reader]:
    running = await aiohttp_server(server.application())
    async with Client(open_access(str(running.make_url("")))) as client:
        reader = Reader(client, 20.0, limit=8, metrics=Metrics())
        yield reader
        await reader.close()


async def found_by(reader: Reader, key: AppWrapperKey = KEY) -> Found:
    async with asyncio.timeout(60):
        return await reader.read(key)


def there(uid: str = "w-1") -> apiserver.Reply:
    async def reply(_: web.Request) -> web.StreamResponse:
        metadata = {"name": "aw", "uid": uid, "annotations": {CREATED_BY: "{}"}}
        return web.json_response({"metadata": metadata})

    return reply


@pytest.mark.parametrize("key", [KEY, MCADS], ids=str)
async def test_an_appwrapper_is_read_from_its_group(
    server: Server, reader: Reader, key: AppWrapperKey
) -> None:
    server.replies[key.group] = there()
    assert await found_by(reader, key) == NOTED
    other = KEY if key == MCADS else MCADS
    assert await found_by(reader, other) is GONE


async def test_one_that_is_not_there_is_gone(server: Server, reader: Reader) -> None:
    assert await found_by(reader) is GONE
    server.replies = dict.fromkeys(server.replies, there("later"))
    assert await found_by(reader) is GONE


async def test_what_cannot_be_read_is_unknown(server: Server, reader: Reader) -> None:
    server.replies[CODEFLARE_GROUP] = apiserver.status(403, "Forbidden")
    assert isinstance(await found_by(reader), Unknown)
