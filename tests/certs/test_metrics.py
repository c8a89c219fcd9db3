"""Each metric of muster-certs moves when what it counts happens. One test for each."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import cast

import aiohttp
import pytest

from certs import program
from certs.chain import expires_at, issue_leaf, new_authority
from certs.cluster import Cluster, Place
from certs.keeper import OfExtender, OfWebhook
from certs.metrics import Metrics
from certs.program import Replica, Staying
from certs.standing import LAST, Wanted
from kube.api.client import Client
from kube.api.leader_election import Term, Timing
from testbed.ports import PortAllocator
from tests.certs.api import LEASES, MUTATING, SECRET, VALIDATING, Api, refused
from tests.certs.keeper.kept import NAME, PLACE
from tests.certs.world import WANTED
from tests.kube.fake_api import eventually
from tests.kube.half_request import count_half_request
from tests.logs import captured
from tests.metrics import total, untested

QUICK = Staying(0.01, "muster-certs", "one", timing=Timing(4.0, 3.0, 0.05))
NOW = datetime.now(UTC)


@contextlib.asynccontextmanager
async def running(replica: Replica) -> AsyncIterator[None]:
    stop = asyncio.Event()
    task = asyncio.create_task(replica.run(stop))
    try:
        yield
    finally:
        stop.set()
        await task


@pytest.fixture
def replica(client: Client) -> Replica:
    return Replica(client, Cluster(client, PLACE), OfWebhook(WANTED), QUICK)


def of(replica: Replica, name: str, **labels: str) -> float:
    return total(replica.metrics.registry, f"muster_certs_{name}", **labels)


def test_every_metric_has_a_test_that_sees_it_move() -> None:
    assert untested(Metrics("x").registry, globals()) == []


async def test_muster_certs_leader_moves(replica: Replica, api: Api) -> None:
    assert of(replica, "leader") == 0
    async with running(replica):
        await eventually(lambda: of(replica, "leader") == 1)
    assert of(replica, "leader") == 0
    assert api.objects[f"{LEASES}/muster-certs"]["spec"]["holderIdentity"] == ""


async def test_muster_certs_steps_total_moves(replica: Replica) -> None:
    async with running(replica):
        await eventually(lambda: of(replica, "steps_total", step="inject") == 1)
    assert of(replica, "steps_total", step="create") == 1


async def test_muster_certs_failures_total_moves(replica: Replica, api: Api) -> None:
    api.fault = lambda request: None if LEASES in request.path else refused(403, "Forbidden")
    async with running(replica):
        await eventually(lambda: of(replica, "failures_total") > 1)
        assert not replica.well
        assert of(replica, "looked_timestamp_seconds") == 0
        api.fault = lambda _: None
        await eventually(lambda: replica.well)


async def test_a_fault_that_others_must_mend_is_a_failure_too(replica: Replica, api: Api) -> None:
    del api.objects[MUTATING]
    async with running(replica):
        await eventually(lambda: of(replica, "failures_total") > 1)
        assert not replica.well


async def test_muster_certs_refused_configurations_moves(
    replica: Replica, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuses = refused(403, "Forbidden")
    api.fault = lambda request: refuses if request.path == MUTATING else None
    with captured(monkeypatch, program) as lines:
        await _refused_once(replica, api)
    said = [f"{each['event']} {each.get('reason', '')}" for each in lines.entries]
    assert any(f"{MUTATING}: 403 Forbidden" in each for each in said)
    assert any("caBundle of webhook v.muster.dev set" in each for each in said)


async def _refused_once(replica: Replica, api: Api) -> None:
    async with running(replica):
        await eventually(lambda: of(replica, "refused_configurations") == 1)
        assert not replica.well
        assert of(replica, "failures_total") > 0
        assert of(replica, "looked_timestamp_seconds") == 0
        assert api.bundle(VALIDATING) == api.held.authorities
        api.fault = lambda _: None


async def test_muster_certs_looked_timestamp_seconds_moves(replica: Replica) -> None:
    async with running(replica):
        await eventually(lambda: of(replica, "looked_timestamp_seconds", secret=SECRET) > 0)
    assert abs(of(replica, "looked_timestamp_seconds") - NOW.timestamp()) < 3600


async def test_muster_certs_next_step_timestamp_seconds_moves(replica: Replica) -> None:
    async with running(replica):
        await eventually(lambda: of(replica, "next_step_timestamp_seconds", secret=SECRET) > 0)
    renewal = NOW + timedelta(days=60)
    assert abs(of(replica, "next_step_timestamp_seconds") - renewal.timestamp()) < 86_400


async def test_muster_certs_expiry_timestamp_seconds_moves(replica: Replica, api: Api) -> None:
    read = partial(of, replica, "expiry_timestamp_seconds", secret=SECRET)
    async with running(replica):
        await eventually(lambda: read(certificate="server") > 0)
    held = api.held
    assert held.served is not None
    assert read(certificate="server") == expires_at(held.served.certificate).timestamp()
    assert read(certificate="authority") == expires_at(held.authorities[0]).timestamp()


async def test_muster_certs_foreign_authorities_moves(replica: Replica, api: Api) -> None:
    authority = new_authority("their-ca", NOW)
    theirs = issue_leaf(authority, WANTED.names, NOW)
    async with running(replica):
        await eventually(lambda: of(replica, "expiry_timestamp_seconds") > 0)
        assert of(replica, "foreign_authorities") == 0
        api.hold(replace(api.held, authorities=(authority.certificate,), served=theirs, ours=False))
        await eventually(lambda: api.bundles[0][-1:] == (authority.certificate,))
        api.hold(replace(api.held, ours=True, served=None, authorities=()))
        await eventually(lambda: of(replica, "foreign_authorities") == 2)


async def test_muster_certs_scheduler_restart_by_timestamp_seconds_moves(
    client: Client, api: Api
) -> None:
    wanted = Wanted(WANTED.authority, WANTED.names, "system:kube-scheduler")
    place = Place(PLACE.namespace, SECRET, NAME)
    replica = Replica(client, Cluster(client, place), OfExtender(wanted), QUICK)
    async with running(replica):
        await eventually(lambda: of(replica, "expiry_timestamp_seconds", certificate="client") > 0)
        assert of(replica, "scheduler_restart_by_timestamp_seconds") == 0
        api.hold(replace(api.held, authority_key=None))
        await eventually(lambda: of(replica, "scheduler_restart_by_timestamp_seconds") > 0)
    assert api.held.served is not None
    due = expires_at(api.held.served.certificate) - LAST
    assert of(replica, "scheduler_restart_by_timestamp_seconds", secret=SECRET) == due.timestamp()


async def test_muster_certs_connections_moves() -> None:
    metrics = Metrics(SECRET)
    await count_half_request(metrics.registry, metrics.connections, "certs")


async def test_muster_certs_connections_closed_total_moves() -> None:
    metrics = Metrics(SECRET)
    await count_half_request(metrics.registry, metrics.connections, "certs")


async def test_in_a_term_that_lapsed_nothing_is_written(replica: Replica, api: Api) -> None:
    class Lapsed:
        def valid(self) -> bool:
            return False

    leading = asyncio.create_task(replica.lead(cast(Term, Lapsed())))
    await eventually(lambda: of(replica, "failures_total") > 1)
    leading.cancel()
    await asyncio.gather(leading, return_exceptions=True)
    assert api.writes == []


async def test_it_answers_for_its_health(client: Client) -> None:
    with contextlib.closing(PortAllocator()) as ports:
        number = ports.allocate()
        staying = replace(QUICK, health=("127.0.0.1", number))
        replica = Replica(client, Cluster(client, PLACE), OfWebhook(WANTED), staying)
        async with running(replica), aiohttp.ClientSession() as session:
            await eventually(lambda: of(replica, "looked_timestamp_seconds") > 0)
            for path in ("livez", "readyz", "metrics"):
                async with session.get(f"http://127.0.0.1:{number}/{path}") as answer:
                    assert answer.status == 200, path


async def test_of_two_replicas_one_writes_and_the_other_takes_over(
    client: Client, api: Api
) -> None:
    replicas = [
        Replica(client, Cluster(client, PLACE), OfWebhook(WANTED), replace(QUICK, identity=name))
        for name in ("one", "two")
    ]
    async with running(replicas[1]):
        async with running(replicas[0]):
            await eventually(lambda: sum(of(each, "leader") for each in replicas) == 1)
            await eventually(lambda: len(api.writes) == 3)
            await eventually(lambda: all(each.well for each in replicas))
        await eventually(lambda: of(replicas[1], "leader") == 1)
    assert api.writes == [
        "secrets",
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
    ]
