"""A review of a RayCluster is answered in time, and what cannot be found out holds nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

import msgspec
import orjson
import pytest
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.web import Application, Request

from kube.api.errors import Unreachable
from kube.objects import names
from kube.objects.admission import ResourceQuota
from kube.objects.base import ObjectMeta
from kube.objects.core import Namespace
from kube.objects.ray import RayJob
from tests.webhook.samples import Json
from tests.webhook.test_holding import NO_QUEUES, WHEN_ADMITTED, cluster, made_by, review_of
from webhook.hold_app import HoldWebhook
from webhook.holding import NamespaceRead, Read
from webhook.metrics import Metrics
from webhook.settings import Settings

JSON = {"Content-Type": "application/json"}
ALONE = {names.TOGETHER: "pair"}
Answer = Callable[[Read], Namespace | RayJob | None]


class Reads:
    """A reader that answers with what a function says, or never."""

    def __init__(self, say: Answer | None) -> None:
        self._say = say

    async def read(self, wanted: Read) -> Namespace | RayJob | None:
        if self._say is None:
            await asyncio.Event().wait()
        assert self._say is not None
        return self._say(wanted)


def unreachable(_: Read) -> None:
    raise Unreachable("connection refused", sent=False)


def only_the_namespace(wanted: Read) -> Namespace | None:
    return Namespace(ObjectMeta()) if isinstance(wanted, NamespaceRead) else None


def no_quotas(_: str) -> Collection[ResourceQuota]:
    return ()


async def ask(
    say: Answer | None,
    review: Json | bytes,
    metrics: Metrics,
    quotas: Callable[[str], Collection[ResourceQuota]] = no_quotas,
) -> tuple[int, Json]:
    settings = Settings(lookup_deadline_seconds=0.2)
    holder = HoldWebhook(settings, lambda: NO_QUEUES, quotas, Reads(say), metrics)
    application = Application()
    application.router.add_post("/hold", holder.hold)
    client: TestClient[Request, Application]
    async with TestClient(TestServer(application)) as client:
        body = review if isinstance(review, bytes) else orjson.dumps(review)
        async with client.post("/hold", data=body, headers=JSON) as answer:
            return answer.status, await answer.json()


def pods_quota(used: int) -> ResourceQuota:
    """One that admits one pod."""
    hard = {"pods": "1"}
    status = {"hard": hard, "used": {"pods": str(used)}}
    return msgspec.convert({"spec": {"hard": hard}, "status": status}, ResourceQuota)


def counted(metrics: Metrics, result: str) -> float:
    labels = {"result": result}
    return metrics.registry.get_sample_value("muster_webhook_reviews_total", labels) or 0.0


async def test_one_that_asks_is_held_and_counted() -> None:
    metrics = Metrics()
    _, answer = await ask(only_the_namespace, review_of(cluster(WHEN_ADMITTED)), metrics)
    assert answer["response"]["allowed"]
    assert answer["response"]["patchType"] == "JSONPatch"
    assert counted(metrics, "held") == 1


async def test_one_that_the_quotas_of_its_namespace_have_no_room_for_is_held() -> None:
    full = {"demo": [pods_quota(used=1)], "other": [pods_quota(used=0)]}
    for namespace, held in (("demo", True), ("other", False), ("third", False)):
        metrics = Metrics()
        review = review_of(cluster(), namespace=namespace)
        await ask(only_the_namespace, review, metrics, lambda name: full.get(name, []))
        assert counted(metrics, "held") == held


@pytest.mark.parametrize("say", [None, unreachable], ids=["late", "unreachable"])
async def test_what_cannot_be_found_out_is_left_alone(say: Answer | None) -> None:
    metrics = Metrics()
    review = review_of(cluster(WHEN_ADMITTED, owner=made_by("RayJob")))
    _, answer = await ask(say, review, metrics)
    assert answer["response"] == {"uid": "r", "allowed": True}
    assert (counted(metrics, "held"), counted(metrics, "untouched")) == (0, 1)


async def test_what_is_no_review_is_a_4xx() -> None:
    metrics = Metrics()
    status, answer = await ask(only_the_namespace, b"{}", metrics)
    assert (status, answer["code"]) == (400, 400)
    assert counted(metrics, "refused") == 1


async def test_a_group_that_cannot_be_is_told_as_a_warning() -> None:
    _, answer = await ask(only_the_namespace, review_of(cluster(ALONE)), Metrics())
    said = 'muster.dev/together-size: "" is not valid; allowed: a whole number from 2 to 16'
    assert answer["response"]["allowed"]
    assert answer["response"]["warnings"] == [said]
