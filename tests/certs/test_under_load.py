"""Three roll-overs under load: real HTTPS servers, files that come late, and no call that fails.

The clock is a fake, so the clients do not ask OpenSSL whether a certificate is valid now but look
themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import random
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from cryptography import x509
from pytest_aiohttp import AiohttpServer

import webhook.serve
from certs.chain import ServerNames
from certs.cluster import Cluster, Place
from certs.files import write_client, write_pair
from certs.held import Held
from certs.keeper import Keeper, Kind, OfExtender, OfWebhook
from certs.rolling import READ
from certs.standing import Wanted, restart_by
from extender.app import Extender
from extender.memory.in_flight import InFlightPods
from extender.metrics import Metrics
from extender.serve import scheduler_port
from extender.settings import Settings as ExtenderSettings
from extender.unscheduled_pods import UnscheduledPods
from kube.api.client import Client
from kube.objects.names import GATE
from runtime.tls import HotCertificate, server_context
from testbed.ports import PortAllocator
from tests.certs.api import SECRET, Api
from tests.certs.keeper.kept import PLACE, Clock
from tests.certs.world import WANTED
from tests.extender.conftest import SCHEDULER, Known, Quiet
from tests.extender.test_app import asked
from tests.extender.worlds import gang, ledger, node, pod
from tests.webhook.samples import CLUSTER, Json, gates_after, labelled, worker
from tests.webhook.test_serve import WatchedApiServer, _metadata, kubeconfig
from webhook.settings import Settings

__all__ = ["kubeconfig"]

DAY = timedelta(days=1)
NO_CHECK_TIME = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME, which Python has no name for."""

HEARD = timedelta(seconds=20)
"""What an API server may lag behind here; 30 s are promised."""
MOUNTED = timedelta(seconds=120)
"""What the kubelet may take."""
AT_ONCE = 4
"""Calls at one time."""
TICKS = [timedelta(seconds=5)] * 8 + [timedelta(seconds=20)] * 8 + [READ, *[HEARD / 2] * 3]
"""From a renewal to its end."""

JSON = {"Content-Type": "application/json"}


def timeless(context: ssl.SSLContext) -> ssl.SSLContext:
    context.verify_flags |= ssl.VerifyFlags(NO_CHECK_TIME)
    return context


@functools.cache
def trusting(bundle: tuple[bytes, ...]) -> ssl.SSLContext:
    """A caller that trusts just these."""
    return timeless(ssl.create_default_context(cadata=b"".join(bundle).decode()))


@dataclass
class Replica:
    """A server, and the kubelet that brings it its files."""

    directory: Path
    port: int
    tls: HotCertificate
    late: timedelta

    def mount(self, held: Held) -> None:
        assert held.served is not None
        write_pair(self.directory, held.served, b"".join(held.authorities))
        self.tls.refresh()


@dataclass
class Load:
    """A server of a few replicas, its certificates, and callers that never pause."""

    api: Api
    keeper: Keeper
    clock: Clock
    host: str
    call: Callable[[aiohttp.ClientSession, str, ssl.SSLContext], Any]
    context: Callable[[], ssl.SSLContext]
    session: aiohttp.ClientSession
    replicas: list[Replica] = field(default_factory=list)
    secrets: list[tuple[datetime, Held]] = field(default_factory=list)
    bundles: list[tuple[datetime, tuple[bytes, ...]]] = field(default_factory=list)
    serials: set[int] = field(default_factory=set)
    answered: int = 0
    random: random.Random = field(default_factory=lambda: random.Random(1))

    async def tick(self, passed: timedelta) -> None:
        """Let time pass, the program look, the kubelets bring files, and calls come."""
        self.clock.now += passed
        await asyncio.gather(self._look(), *(self._call() for _ in range(AT_ONCE)))
        for each in self.replicas:
            self._look_at(await shown(each.port, self.context(), self.host))

    async def _look(self) -> None:
        await self.keeper.look()
        held = self.api.held
        if not self.secrets or self.secrets[-1][1] != held:
            self.secrets.append((self.clock.now, held))
        if not self.bundles or self.bundles[-1][1] != self.api.bundles[0]:
            self.bundles.append((self.clock.now, self.api.bundles[0]))
        for each in self.replicas:
            each.mount(behind(self.secrets, self.clock.now - each.late))

    def bundle(self) -> tuple[bytes, ...]:
        """What an API server trusts, which may not have heard yet."""
        late = self.random.choice([timedelta(), HEARD / 2, HEARD])
        found: tuple[bytes, ...] = behind(self.bundles, self.clock.now - late)
        return found

    async def _call(self) -> None:
        replica = self.random.choice(self.replicas)
        await self.call(self.session, f"https://127.0.0.1:{replica.port}", self.context())
        self.answered += 1

    def _look_at(self, certificate: x509.Certificate) -> None:
        valid = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        assert valid[0] <= self.clock.now < valid[1]
        self.serials.add(certificate.serial_number)

    async def roll_over(self, days: float) -> None:
        await self.tick(days * DAY)
        for passed in TICKS:
            await self.tick(passed)


def behind(history: list[tuple[datetime, Any]], now: datetime) -> Any:
    """What was there then; the first one where that is before it."""
    return next((what for since, what in reversed(history) if since <= now), history[0][1])


async def shown(port: int, context: ssl.SSLContext, host: str) -> x509.Certificate:
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=host)
    connection: ssl.SSLObject = writer.get_extra_info("ssl_object")
    der = connection.getpeercert(binary_form=True)
    writer.close()
    assert der is not None
    return x509.load_der_x509_certificate(der)


@pytest.fixture
def clock(api: Api) -> Clock:
    clock = Clock()
    api.clock = clock
    return clock


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(connector=connector, headers=JSON) as session:
        yield session


def kept(client: Client, place: Place, kind: Kind, clock: Clock) -> Keeper:
    return Keeper(Cluster(client, place), kind, now=clock)


# ---- the webhook


@pytest.fixture
async def webhooks(
    client: Client,
    api: Api,
    clock: Clock,
    session: aiohttp.ClientSession,
    aiohttp_server: AiohttpServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Load]:
    """Two replicas of the whole program, and reviews."""
    watched = WatchedApiServer()
    watched.rays.append(
        _metadata(CLUSTER.name, CLUSTER.uid, namespace="demo", labels=dict(labelled().labels))
    )
    watched.spaces.append(_metadata("demo", "ns"))
    watched.synced.set()
    server = await aiohttp_server(watched.application())
    made: list[HotCertificate] = []

    def hot(*args: Any) -> HotCertificate:
        made.append(HotCertificate(*args, now=clock))
        return made[-1]

    monkeypatch.setattr(webhook.serve, "HotCertificate", hot)
    kube = tmp_path / "kubeconfig"
    kube.write_text(json.dumps(_kubeconfig(str(server.make_url("")))))

    async def review(session: aiohttp.ClientSession, url: str, context: ssl.SSLContext) -> None:
        body, host = orjson.dumps(worker()), "muster-webhook.muster-system.svc"
        async with session.post(
            f"{url}/mutate", data=body, ssl=context, server_hostname=host
        ) as answer:
            assert gates_after(worker(), await answer.json()) == [GATE]

    load = Load(
        api,
        kept(client, PLACE, OfWebhook(WANTED), clock),
        clock,
        "muster-webhook.muster-system.svc",
        review,
        lambda: trusting(load.bundle()),
        session,
    )
    await load._look()
    stop = asyncio.Event()
    with contextlib.closing(PortAllocator()) as ports:
        tasks: list[asyncio.Task[None]] = []
        for late in (timedelta(seconds=5), MOUNTED):
            settings = _webhook_settings(ports, tmp_path / f"tls-{len(tasks)}", kube)
            tasks.append(asyncio.create_task(webhook.serve.serve(settings, stop)))
            await _until(lambda: len(made) == len(tasks))
            directory = settings.certificate_file.parent
            load.replicas.append(Replica(directory, settings.listen_port, made[-1], late))
            load.replicas[-1].mount(api.held)
            await _until_ready(settings.health_port, session)
        yield load
        stop.set()
        await asyncio.gather(*tasks)


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def _until_ready(port: int, session: aiohttp.ClientSession) -> None:
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(aiohttp.ClientError):
                async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.01)


def _webhook_settings(ports: PortAllocator, directory: Path, kube: Path) -> Settings:
    local = ip_address("127.0.0.1")
    return Settings(
        listen_address=local,
        listen_port=ports.allocate(),
        health_address=local,
        health_port=ports.allocate(),
        certificate_file=directory / "tls.crt",
        key_file=directory / "tls.key",
        certificate_poll_seconds=600,
        kubeconfig=kube,
    )


def _kubeconfig(url: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "fake",
        "clusters": [{"name": "fake", "cluster": {"server": url}}],
        "users": [{"name": "fake", "user": {"token": "fake"}}],
        "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
    }


@pytest.mark.long
async def test_three_roll_overs_of_the_webhook_fail_no_review(webhooks: Load) -> None:
    for _ in range(3):
        await webhooks.roll_over(61)
    assert len(webhooks.serials) == 4
    assert webhooks.answered > 3 * len(TICKS) * AT_ONCE
    assert len(webhooks.api.held.authorities) == 1


# ---- the extender


@dataclass
class Scheduler:
    """A kube-scheduler: it trusts what it read at its start, and reads its own pair each time."""

    directory: Path
    authorities: tuple[bytes, ...] = ()
    context: ssl.SSLContext = field(default_factory=ssl.create_default_context)

    def start(self, held: Held) -> None:
        self.authorities = held.authorities
        self.read(held)

    def read(self, held: Held) -> None:
        assert held.client is not None
        self.directory.mkdir(exist_ok=True)
        write_client(self.directory, held.client)
        self.context = timeless(
            ssl.create_default_context(cadata=b"".join(self.authorities).decode())
        )
        self.context.load_cert_chain(self.directory / "client.crt", self.directory / "client.key")


@pytest.fixture
def scheduler(tmp_path: Path) -> Scheduler:
    return Scheduler(tmp_path / "scheduler")


@pytest.fixture
async def extenders(
    client: Client,
    api: Api,
    clock: Clock,
    session: aiohttp.ClientSession,
    scheduler: Scheduler,
    tmp_path: Path,
) -> AsyncIterator[Load]:
    """Two replicas of the extender, and a scheduler that asks."""
    names = ServerNames(("muster-extender.muster-system.svc",), (ip_address("127.0.0.1"),))
    kind = OfExtender(Wanted("muster-extender-tls-ca", names, SCHEDULER))

    async def ask(session: aiohttp.ClientSession, url: str, context: ssl.SSLContext) -> None:
        body = json.dumps(asked(pod("p"), "b"))
        async with session.post(f"{url}/filter", data=body, ssl=context) as answer:
            assert answer.status == 200, await answer.text()

    load = Load(
        api,
        kept(client, Place(PLACE.namespace, SECRET, "muster-extender"), kind, clock),
        clock,
        "127.0.0.1",
        ask,
        lambda: scheduler.context,
        session,
    )
    await load._look()
    scheduler.start(api.held)
    async with contextlib.AsyncExitStack() as stack:
        for late in (timedelta(seconds=5), MOUNTED):
            directory = tmp_path / f"extender-{late.seconds}"
            tls = _hot(directory, clock)
            port = await stack.enter_async_context(_extender(tls))
            load.replicas.append(Replica(directory, port, tls, late))
            load.replicas[-1].mount(api.held)
        yield load


def _hot(directory: Path, clock: Clock) -> HotCertificate:
    return HotCertificate(
        directory / "tls.crt",
        directory / "tls.key",
        Quiet(),
        client_ca=directory / "ca.crt",
        blank=lambda: timeless(server_context()),
        now=clock,
    )


def _extender(tls: HotCertificate) -> contextlib.AbstractAsyncContextManager[int]:
    settings = ExtenderSettings(
        listen_address=ip_address("127.0.0.1"),
        listen_port=0,
        settle_seconds=0,
        call_seconds=30.0,
        handshake_seconds=60.0,
    )
    metrics = Metrics()
    known = Known(ledger(node("a"), node("b"), gang(slots={"a": 1})))
    in_flight = InFlightPods(settle=0.0, keep=30.0, limit=100_000)
    extender = Extender(settings, known, in_flight, UnscheduledPods(), metrics)
    return scheduler_port(settings, extender, tls, metrics.connections)


@pytest.mark.long
async def test_three_renewals_of_the_extender_fail_no_call_and_need_no_restart(
    extenders: Load,
) -> None:
    for _ in range(3):
        await extenders.roll_over(61)
    assert len(extenders.serials) == 4
    assert len(extenders.api.held.authorities) == 1


@pytest.mark.long
async def test_a_new_authority_of_the_extender_fails_no_call_of_a_scheduler_that_was_restarted(
    extenders: Load, scheduler: Scheduler
) -> None:
    """Three times: there is a next authority, files are copied, a restart, the server goes over."""
    for _ in range(3):
        extenders.api.hold(replace(extenders.api.held, authority_key=None))  # has one made now
        for _ in range(4):
            await extenders.tick(READ)
        scheduler.read(extenders.api.held)  # the files are copied: it trusts the old one still
        await extenders.tick(READ)
        scheduler.start(extenders.api.held)
        due = restart_by(extenders.api.held)
        assert due is not None
        await extenders.tick(due - extenders.clock.now - READ)
        await extenders.roll_over(READ / DAY)
        assert restart_by(extenders.api.held) is None
    assert len(extenders.serials) >= 4
