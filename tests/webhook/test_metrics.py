"""Each metric of the webhook moves when what it counts happens. One test for each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from tests.kube.half_request import count_half_request
from tests.metrics import total, untested
from tests.webhook.pki import Pki
from tests.webhook.samples import CLUSTER, Json, Known, labelled, worker
from tests.webhook.test_cache import CLUSTERS, NAMESPACES
from webhook.app import Webhook
from webhook.cache import Cache, Found, Unknown
from webhook.metrics import Metrics
from webhook.owners import Key
from webhook.serve import _certificate
from webhook.settings import Settings

Plain = TestClient[web.Request, web.Application]


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


def test_every_metric_has_a_test_that_sees_it_move(metrics: Metrics) -> None:
    assert untested(metrics.registry, globals()) == []


class Blind:
    """A reader that finds nothing out."""

    async def read(self, _: Key) -> Found:
        return Unknown("no answer")


@asynccontextmanager
async def serving(metrics: Metrics, known: Known) -> AsyncIterator[Plain]:
    webhook = Webhook(Settings(), known, Blind(), metrics)
    async with TestClient(TestServer(webhook.application())) as client:
        yield client


async def ask(client: Plain, review: Json) -> None:
    headers = {"Content-Type": "application/json"}
    async with client.post("/mutate", data=orjson.dumps(review), headers=headers) as answer:
        assert answer.status < 500


async def test_muster_webhook_reviews_total_moves(metrics: Metrics) -> None:
    def counted(result: str) -> float:
        return total(metrics.registry, "muster_webhook_reviews_total", result=result)

    async with serving(metrics, Known(labelled())) as client:
        await ask(client, worker())
        assert (counted("gated"), counted("refused"), counted("denied")) == (1, 0, 0)
        await ask(client, {"kind": "no review"})
        assert (counted("gated"), counted("refused"), counted("denied")) == (1, 1, 0)


async def test_muster_webhook_review_seconds_moves(metrics: Metrics) -> None:
    async with serving(metrics, Known(labelled())) as client:
        for seen in (1, 2):
            await ask(client, worker())
            assert total(metrics.registry, "muster_webhook_review_seconds") == seen


def test_muster_webhook_lookups_total_moves(metrics: Metrics) -> None:
    def counted() -> float:
        return total(metrics.registry, "muster_webhook_lookups_total", source="cache")

    cache = Cache(CLUSTERS, NAMESPACES, metrics, clock=lambda: 0.0)
    assert counted() == 0
    assert cache.find(CLUSTER) is not None
    assert counted() == 1


def test_muster_webhook_cache_synced_moves(metrics: Metrics) -> None:
    for synced in (False, True):
        cache = Cache(replace(CLUSTERS, synced=synced), NAMESPACES, metrics, clock=lambda: 0.0)
        metrics.watch_sync(lambda cache=cache: cache.synced)  # type: ignore[misc]
        assert total(metrics.registry, "muster_webhook_cache_synced") == synced


def certificate(tmp_path: Path, metrics: Metrics) -> Pki:
    """A pair that was taken into use, and after it one that was not."""
    pki = Pki(tmp_path)
    settings = Settings(certificate_file=pki.certificate, key_file=pki.key)
    hot = _certificate(settings, metrics)
    assert total(metrics.registry, "muster_webhook_certificate_expiry_timestamp_seconds") == 0
    pki.write(days=30)
    hot.refresh()
    assert total(metrics.registry, "muster_webhook_certificate_refusals_total") == 0
    pki.write_half()
    hot.refresh()
    return pki


def test_muster_webhook_certificate_expiry_timestamp_seconds_moves(
    tmp_path: Path, metrics: Metrics
) -> None:
    certificate(tmp_path, metrics)
    at = total(metrics.registry, "muster_webhook_certificate_expiry_timestamp_seconds")
    written = (tmp_path / "tls.key").stat().st_mtime
    assert at == pytest.approx(written + 30 * 86400, abs=3600)


def test_muster_webhook_certificate_refusals_total_moves(tmp_path: Path, metrics: Metrics) -> None:
    certificate(tmp_path, metrics)
    assert total(metrics.registry, "muster_webhook_certificate_refusals_total") == 1


# ---- connections


async def test_muster_webhook_connections_moves(metrics: Metrics) -> None:
    await count_half_request(metrics.registry, metrics.connections, "webhook")


async def test_muster_webhook_connections_closed_total_moves(metrics: Metrics) -> None:
    await count_half_request(metrics.registry, metrics.connections, "webhook")
