"""Reviews of labelled Ray objects: options written into RayClusters, faults refused."""

from __future__ import annotations

import base64
from typing import Any

import jsonpatch
import orjson
import pytest
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.web import Application, Request

from headstate.options import FIELD, secret_of
from kube.objects import names
from tests.webhook.samples import Json
from tests.webhook.test_holding import cluster, review_of
from webhook.head_state import HeadStateWebhook
from webhook.metrics import Metrics
from webhook.settings import Settings

ADDRESS = "redis://muster-redis.muster-system.svc:6379"
LABELLED = {names.HEAD_FAULT_TOLERANCE: names.BUILT_IN}
JSON = {"Content-Type": "application/json"}


async def ask(review: Json | bytes, metrics: Metrics) -> tuple[int, Json]:
    found = HeadStateWebhook(Settings(redis_address=ADDRESS), metrics)
    application = Application()
    application.router.add_post("/protect-head", found.protect)
    client: TestClient[Request, Application]
    async with TestClient(TestServer(application)) as client:
        body = review if isinstance(review, bytes) else orjson.dumps(review)
        async with client.post("/protect-head", data=body, headers=JSON) as answer:
            return answer.status, await answer.json()


def counted(metrics: Metrics, result: str) -> float:
    labels = {"result": result}
    return metrics.registry.get_sample_value("muster_webhook_reviews_total", labels) or 0.0


def changed(created: Json, answer: Json) -> Json:
    patch = orjson.loads(base64.b64decode(answer["response"]["patch"]))
    found: Json = jsonpatch.apply_patch(created, patch)
    return found


async def test_each_raycluster_gets_a_secret_of_its_own() -> None:
    secrets = set()
    for _ in range(2):
        metrics, created = Metrics(), cluster(labels=LABELLED)
        _, answer = await ask(review_of(created), metrics)
        options = changed(created, answer)["spec"][FIELD]
        secrets.add(secret_of(options, ADDRESS))
        assert counted(metrics, "protected") == 1
    assert len(secrets) == 2
    assert None not in secrets


async def test_an_update_that_lost_the_options_gets_them_back() -> None:
    created = cluster(labels=LABELLED)
    _, answer = await ask(review_of(created), Metrics())
    stored = changed(created, answer)
    review = review_of(created, operation="UPDATE", oldObject=stored)
    _, answer = await ask(review, Metrics())
    assert changed(created, answer) == stored


async def test_a_fault_is_refused_with_its_field() -> None:
    metrics = Metrics()
    created = cluster(labels=LABELLED, rayVersion="2.9.0")
    _, answer = await ask(review_of(created), metrics)
    assert not answer["response"]["allowed"]
    assert answer["response"]["status"]["code"] == 422
    assert "spec.rayVersion" in answer["response"]["status"]["message"]
    assert counted(metrics, "denied") == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": {"group": "ray.io", "version": "v1", "kind": "RayCronJob"}},
        {"kind": {"group": "batch", "version": "v1", "kind": "RayCluster"}},
        {"operation": "DELETE"},
        {"subResource": "status"},
    ],
)
async def test_whatever_else_is_asked_stays_as_it_is(changes: Json) -> None:
    metrics = Metrics()
    _, answer = await ask(review_of(cluster(labels=LABELLED), **changes), metrics)
    assert answer["response"] == {"uid": "r", "allowed": True}
    assert counted(metrics, "untouched") == 1


@pytest.mark.parametrize(
    "sent", [{"metadata": {"labels": [1]}}, {"spec": {"headGroupSpec": {"rayStartParams": 1}}}]
)
async def test_what_no_ray_object_can_be_is_a_400(sent: dict[str, Any]) -> None:
    metrics = Metrics()
    status, answer = await ask(review_of(sent), metrics)
    assert (status, answer["code"]) == (400, 400)
    assert "not a RayCluster" in answer["message"]
    assert counted(metrics, "refused") == 1


@pytest.mark.parametrize("address", ["redis:6379", "rediss://a:1", "redis://a", "redis://a:1 b"])
def test_an_address_that_no_head_could_use_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="redis_address"):
        Settings(redis_address=address)
