"""The Secret is made once, and the webhook's configuration filled from its content."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import jsonpatch
import orjson
import pytest
from aiohttp import web
from pytest_aiohttp import AiohttpServer

from certs.bootstrap import Target, bootstrap
from certs.chain import (
    Pair,
    belong_together,
    is_named,
    issue_client,
    issue_leaf,
    new_authority,
    serves,
    signed_by,
)
from certs.secret import BootstrapError, ensure_secret
from kube.api.client import Client
from kube.api.credentials import open_access
from kube.api.errors import Forbidden, Invalid, KubeError, NotFound

Json = dict[str, Any]

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
TARGET = Target("muster-system", "muster-webhook", "muster-webhook-tls", ("muster-webhook",))
WITH_CALLER = dataclasses.replace(TARGET.wanted, client="caller")


def _status(code: int, reason: str) -> web.Response:
    body = {"kind": "Status", "code": code, "reason": reason, "message": f"{reason} it is"}
    return web.json_response(body, status=code)


def _webhook(name: str, service: str) -> Json:
    reference = {"namespace": "muster-system", "name": service, "path": "/mutate"}
    return {"name": name, "clientConfig": {"service": reference}}


class Cluster:
    """An API server with room for one Secret and one configuration."""

    def __init__(self) -> None:
        self.secret: Json | None = None
        self.configuration: Json | None = {
            "webhooks": [_webhook("other", "other"), _webhook("pods.muster.dev", "muster-webhook")]
        }
        self.validating: Json | None = {"webhooks": [_webhook("v.muster.dev", "muster-webhook")]}
        self.writes: list[str] = []
        self.forbidden = False
        self.before_create: Callable[[], None] = lambda: None
        self.before_patch: Callable[[], None] = lambda: None

    def application(self) -> web.Application:
        application = web.Application()
        secrets = "/api/v1/namespaces/muster-system/secrets"
        configuration = (
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/muster-webhook"
        )
        application.router.add_post(secrets, self._create)
        application.router.add_get(f"{secrets}/muster-webhook-tls", self._get)
        application.router.add_get(configuration, self._get_configuration)
        application.router.add_patch(configuration, self._patch)
        validating = configuration.replace("mutating", "validating")
        application.router.add_get(validating, self._get_validating)
        application.router.add_patch(validating, self._patch_validating)
        return application

    def bundle(self, index: int) -> str | None:
        assert self.configuration is not None
        bundle: str | None = self.configuration["webhooks"][index]["clientConfig"].get("caBundle")
        return bundle

    def content(self, name: str) -> bytes:
        assert self.secret is not None
        return base64.b64decode(self.secret["data"][name])

    async def _get(self, _: web.Request) -> web.Response:
        if self.forbidden:
            return _status(403, "Forbidden")
        found = self.secret
        return web.json_response(found) if found else _status(404, "NotFound")

    async def _create(self, request: web.Request) -> web.Response:
        self.before_create()
        if self.secret is not None:
            return _status(409, "AlreadyExists")
        self.secret = orjson.loads(await request.read())
        self.writes.append("secret")
        return web.json_response(self.secret, status=201)

    async def _get_configuration(self, _: web.Request) -> web.Response:
        found = self.configuration
        return web.json_response(found) if found else _status(404, "NotFound")

    async def _get_validating(self, _: web.Request) -> web.Response:
        return web.json_response(self.validating)

    async def _patch_validating(self, request: web.Request) -> web.Response:
        self.validating = jsonpatch.apply_patch(self.validating, await request.read())
        self.writes.append("validating")
        return web.json_response(self.validating)

    async def _patch(self, request: web.Request) -> web.Response:
        self.before_patch()
        try:
            self.configuration = jsonpatch.apply_patch(self.configuration, await request.read())
        except jsonpatch.JsonPatchException:
            return _status(422, "Invalid")
        self.writes.append("configuration")
        return web.json_response(self.configuration)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
async def client(cluster: Cluster, aiohttp_server: AiohttpServer) -> AsyncIterator[Client]:
    server = await aiohttp_server(cluster.application())
    async with Client(open_access(str(server.make_url("")))) as client:
        yield client


async def test_the_first_run_makes_a_pair_that_serves(cluster: Cluster, client: Client) -> None:
    done = await bootstrap(client, TARGET, NOW)
    pair = Pair(cluster.content("tls.crt"), cluster.content("tls.key"))
    assert belong_together(pair)
    assert serves(pair.certificate, TARGET.wanted.names)
    assert signed_by(pair.certificate, cluster.content("ca.crt"))
    assert cluster.secret is not None
    assert cluster.secret["type"] == "kubernetes.io/tls"
    assert set(cluster.secret["data"]) == {"ca.crt", "tls.crt", "tls.key"}
    assert not any("PRIVATE" in line for line in done)


async def test_only_our_webhook_gets_the_authority(cluster: Cluster, client: Client) -> None:
    await bootstrap(client, TARGET, NOW)
    assert cluster.bundle(0) is None
    assert base64.b64decode(cluster.bundle(1) or "") == cluster.content("ca.crt")


async def test_all_configurations_that_are_named_get_the_authority(
    cluster: Cluster, client: Client
) -> None:
    target = dataclasses.replace(TARGET, validating=("muster-webhook",))
    done = await bootstrap(client, target, NOW)
    assert cluster.validating is not None
    (webhook,) = cluster.validating["webhooks"]
    assert webhook["clientConfig"]["caBundle"] == cluster.bundle(1)
    assert "caBundle of webhook v.muster.dev set" in done
    assert cluster.writes == ["secret", "configuration", "validating"]


async def test_a_second_run_writes_nothing(cluster: Cluster, client: Client) -> None:
    await bootstrap(client, TARGET, NOW)
    await bootstrap(client, TARGET, NOW + timedelta(days=1))
    assert cluster.writes == ["secret", "configuration"]


async def test_a_cut_off_run_is_completed(cluster: Cluster, client: Client) -> None:
    await bootstrap(client, TARGET, NOW)
    del cluster.configuration["webhooks"][1]["clientConfig"]["caBundle"]  # type: ignore[index]
    await bootstrap(client, TARGET, NOW)
    assert base64.b64decode(cluster.bundle(1) or "") == cluster.content("ca.crt")


async def test_the_second_process_uses_the_pair_of_the_first(
    cluster: Cluster, client: Client
) -> None:
    first = Cluster()
    first.secret = _secret(_data())
    cluster.before_create = lambda: setattr(cluster, "secret", first.secret)
    await bootstrap(client, TARGET, NOW)
    assert cluster.secret == first.secret
    assert base64.b64decode(cluster.bundle(1) or "") == first.content("ca.crt")


async def test_two_at_once_agree(cluster: Cluster, client: Client) -> None:
    await asyncio.gather(*(bootstrap(client, TARGET, NOW) for _ in range(5)))
    assert cluster.writes.count("secret") == 1
    assert base64.b64decode(cluster.bundle(1) or "") == cluster.content("ca.crt")


def _data(**replaced: bytes) -> dict[str, bytes]:
    authority = new_authority("ca", NOW)
    leaf = issue_leaf(authority, TARGET.wanted.names, NOW)
    data = {"ca.crt": authority.certificate, "tls.crt": leaf.certificate, "tls.key": leaf.key}
    return {**data, **{name.replace("_", "."): content for name, content in replaced.items()}}


def _secret(data: dict[str, bytes]) -> Json:
    return {"data": {name: base64.b64encode(content).decode() for name, content in data.items()}}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "ca.crt is missing"),
        (_data(tls_key=b""), "tls.key is missing"),
        (_data(tls_key=_data()["tls.key"]), "tls.key is not the key of tls.crt"),
        (_data(ca_crt=_data()["ca.crt"]), "ca.crt did not sign tls.crt"),
        (_data(tls_crt=b"rubbish"), "not a PEM certificate"),
    ],
)
async def test_a_secret_that_cannot_be_used_is_named_and_kept(
    cluster: Cluster, client: Client, data: dict[str, bytes], said: str
) -> None:
    cluster.secret = _secret(data)
    with pytest.raises(BootstrapError, match=said):
        await bootstrap(client, TARGET, NOW)
    assert cluster.writes == []


async def test_a_secret_for_another_service_is_named(cluster: Cluster, client: Client) -> None:
    await bootstrap(client, TARGET, NOW)
    other = Target("muster-system", "other", "muster-webhook-tls", ("muster-webhook",))
    with pytest.raises(BootstrapError, match="is not for other"):
        await bootstrap(client, other, NOW)


async def test_a_caller_gets_a_certificate_of_the_same_authority(
    cluster: Cluster, client: Client
) -> None:
    kept = await ensure_secret(client, WITH_CALLER, NOW)
    pair = Pair(cluster.content("client.crt"), cluster.content("client.key"))
    assert kept.created
    assert belong_together(pair)
    assert is_named(pair.certificate, "caller")
    assert signed_by(pair.certificate, kept.authority)
    assert signed_by(cluster.content("tls.crt"), kept.authority)
    assert not (await ensure_secret(client, WITH_CALLER, NOW)).created
    assert cluster.writes == ["secret"]


async def test_a_callers_certificate_that_cannot_be_used_is_named(
    cluster: Cluster, client: Client
) -> None:
    await ensure_secret(client, WITH_CALLER, NOW)
    other = dataclasses.replace(WITH_CALLER, client="another")
    with pytest.raises(BootstrapError, match=r"client\.crt is not that of another"):
        await ensure_secret(client, other, NOW)
    cluster.secret = _secret(_data())
    with pytest.raises(BootstrapError, match=r"client\.crt is missing"):
        await ensure_secret(client, WITH_CALLER, NOW)
    strange = issue_client(new_authority("other", NOW), "caller", NOW)
    cluster.secret = _secret(_data(client_crt=strange.certificate, client_key=strange.key))
    with pytest.raises(BootstrapError, match=r"ca\.crt did not sign client\.crt"):
        await ensure_secret(client, WITH_CALLER, NOW)


async def test_an_expired_secret_is_named(cluster: Cluster, client: Client) -> None:
    await bootstrap(client, TARGET, NOW)
    with pytest.raises(BootstrapError, match="expired"):
        await bootstrap(client, TARGET, NOW + timedelta(days=366))


async def test_rubbish_instead_of_base64_is_named(cluster: Cluster, client: Client) -> None:
    cluster.secret = {"data": {"ca.crt": "%%%"}}
    with pytest.raises(BootstrapError, match=r"ca\.crt is not base64"):
        await bootstrap(client, TARGET, NOW)


async def test_a_configuration_without_our_webhook_is_named(
    cluster: Cluster, client: Client
) -> None:
    cluster.configuration = {"webhooks": [_webhook("other", "other")]}
    with pytest.raises(BootstrapError, match="no webhook calls Service"):
        await bootstrap(client, TARGET, NOW)


async def test_webhooks_that_change_places_are_not_mixed_up(
    cluster: Cluster, client: Client
) -> None:
    assert cluster.configuration is not None
    cluster.before_patch = cluster.configuration["webhooks"].reverse
    with pytest.raises(Invalid):
        await bootstrap(client, TARGET, NOW)
    assert cluster.bundle(0) is cluster.bundle(1) is None


async def test_a_missing_configuration_is_an_error(cluster: Cluster, client: Client) -> None:
    cluster.configuration = None
    with pytest.raises(NotFound):
        await bootstrap(client, TARGET, NOW)


async def test_missing_rights_are_an_error(cluster: Cluster, client: Client) -> None:
    cluster.forbidden = True
    with pytest.raises(Forbidden) as caught:
        await bootstrap(client, TARGET, NOW)
    assert isinstance(caught.value, KubeError)
    assert cluster.writes == []
