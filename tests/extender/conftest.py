"""Fixtures of the extender's tests: one that serves over TLS, and its callers."""

from __future__ import annotations

import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from certs.chain import Pair, ServerNames, issue_client, issue_leaf, new_authority
from certs.files import write_client, write_pair
from extender.app import Extender
from extender.ledger import Ledger
from extender.memory.in_flight import InFlightPods
from extender.metrics import Metrics
from extender.serve import scheduler_port
from extender.settings import Settings
from extender.unscheduled_pods import UnscheduledPods
from runtime.tls import HotCertificate
from tests.extender.worlds import gang, ledger, node

SCHEDULER = "system:kube-scheduler"


class Pki:
    """An authority, and pairs written to where the server and its callers look for them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._now = datetime.now(UTC)
        self.authority = new_authority("test-ca", self._now)
        self.write()

    def write(self) -> None:
        """Write a new pair for the server."""
        names = ServerNames(addresses=(ip_address("127.0.0.1"),))
        leaf = issue_leaf(self.authority, names, self._now)
        write_pair(self.directory, leaf, self.authority.certificate)

    def caller(self, name: str = SCHEDULER, authority: Pair | None = None) -> ssl.SSLContext:
        """Return the context of a caller with this name in its certificate."""
        write_client(self.directory, issue_client(authority or self.authority, name, self._now))
        context = self.stranger()
        directory = self.directory
        context.load_cert_chain(directory / "client.crt", directory / "client.key")
        return context

    def stranger(self) -> ssl.SSLContext:
        """Return the context of a caller without a certificate."""
        return ssl.create_default_context(cafile=self.directory / "ca.crt")


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path / "tls")


class Quiet:
    """Takes news of certificates, and keeps it."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def certificate_loaded(self, _: datetime) -> None:
        self.said.append("loaded")

    def certificate_refused(self, reason: str) -> None:
        self.said.append(reason)


@dataclass
class Known:
    """What the extender knows in a test, and whether it is to be trusted."""

    ledger: Ledger
    fresh: bool = True

    def trusted(self) -> bool:
        return self.fresh


@dataclass
class Clock:
    """A time that stands still unless a test moves it."""

    now: float = 10.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Served:
    """An extender that listens, with two nodes of which `a` is reserved."""

    port: int
    known: Known
    in_flight_pods: InFlightPods
    unscheduled: UnscheduledPods
    tls: HotCertificate
    session: aiohttp.ClientSession
    caller: ssl.SSLContext
    metrics: Metrics
    settings: Settings
    clock: Clock

    def url(self, verb: str) -> str:
        return f"https://127.0.0.1:{self.port}/{verb}"

    async def post(
        self, verb: str, body: Any, caller: ssl.SSLContext | None = None
    ) -> tuple[int, str]:
        """Ask, and return the status and the text of the answer."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        asked = self.session.post(
            self.url(verb), data=data, headers=headers, ssl=caller or self.caller
        )
        async with asked as answer:
            return answer.status, await answer.text()


@pytest.fixture
async def served(pki: Pki) -> AsyncIterator[Served]:
    """One that gives a busy machine its time."""
    async with _serving(pki, call_seconds=30.0, handshake_seconds=60.0) as found:
        yield found


@pytest.fixture
async def hasty(pki: Pki) -> AsyncIterator[Served]:
    """One that does not wait for what never comes."""
    async with _serving(pki, call_seconds=2.0, handshake_seconds=2.0) as found:
        yield found


@contextlib.asynccontextmanager
async def _serving(pki: Pki, **seconds: float) -> AsyncIterator[Served]:
    settings = Settings(
        listen_address="127.0.0.1",  # type: ignore[arg-type]
        listen_port=0,
        settle_seconds=0,
        body_limit_bytes=256 * 1024,
        **seconds,  # type: ignore[arg-type]
    )
    known = Known(ledger(node("a"), node("b"), gang(slots={"a": 1})))
    in_flight_pods = InFlightPods(settle=0.0, keep=30.0, limit=100)
    unscheduled, metrics = UnscheduledPods(), Metrics()
    tls = HotCertificate(
        pki.directory / "tls.crt",
        pki.directory / "tls.key",
        Quiet(),
        client_ca=pki.directory / "ca.crt",
    )
    tls.refresh()
    clock, caller = Clock(), pki.caller()
    extender = Extender(settings, known, in_flight_pods, unscheduled, metrics, clock=clock)
    async with (
        scheduler_port(settings, extender, tls, metrics.connections) as port,
        aiohttp.ClientSession() as session,
    ):
        yield Served(
            port, known, in_flight_pods, unscheduled, tls, session, caller, metrics, settings, clock
        )


@pytest.fixture
def known() -> Ledger:
    return ledger(node("a"), node("b"), gang(slots={"a": 1, "b": 1}))


@pytest.fixture
def unscheduled() -> UnscheduledPods:
    made = UnscheduledPods()
    made.woken()
    return made
