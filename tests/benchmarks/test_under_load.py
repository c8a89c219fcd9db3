"""The load sees new certificates, and tells of every call that failed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path

from aiohttp import web
from prometheus_client import CollectorRegistry

from benchmarks import under_load
from benchmarks.load import Target
from benchmarks.under_load import Calls, Certificates, Found
from runtime.connections import ConnectionMetrics
from runtime.http_server import Port, listening
from runtime.tls import HotCertificate

SECONDS = 1.0
RATE = 50.0


class Silent:
    def certificate_loaded(self, _: datetime) -> None:
        pass

    def certificate_refused(self, reason: str) -> None:
        raise AssertionError(reason)


@asynccontextmanager
async def serving(files: Path, status: int) -> AsyncIterator[tuple[int, HotCertificate]]:
    async def answer(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(status=status, body=b"{}")

    application = web.Application()
    application.router.add_post("/filter", answer)
    tls = HotCertificate(
        files / "tls.crt",
        files / "tls.key",
        Silent(),
        client_ca=files / "ca.crt",
    )
    tls.refresh()
    metrics = ConnectionMetrics("test", CollectorRegistry())
    async with listening(
        application, Port("calls", "127.0.0.1", 0, tls=tls.context), metrics
    ) as at:
        yield at, tls


def calls(port: int, certificates: Certificates) -> Calls:
    target = Target(port, certificates.of_extender / "ca.crt", "/filter")
    return Calls(target, RATE, [b"{}"], partial(certificates.context, client=True))


async def test_all_certificates_are_seen_and_no_call_fails(tmp_path: Path) -> None:
    certificates, found = Certificates(tmp_path / "webhook", tmp_path / "extender"), Found()
    certificates.issue()
    async with serving(certificates.of_extender, 200) as (port, tls):
        path = calls(port, certificates)
        for _ in range(2):
            await under_load._load(path, found, time.perf_counter(), SECONDS)
            certificates.replace_servers()
            tls.refresh()
            certificates.replace_client()
    assert found.errors == []
    assert len(found.took) == 2 * RATE * SECONDS
    assert len(found.serials) == 2


async def test_every_call_that_fails_is_counted(tmp_path: Path) -> None:
    certificates, found = Certificates(tmp_path / "webhook", tmp_path / "extender"), Found()
    certificates.issue()
    async with serving(certificates.of_extender, 500) as (port, _):
        await under_load._load(calls(port, certificates), found, time.perf_counter(), SECONDS)
    assert len(found.errors) == RATE * SECONDS
    assert "HTTP/1.1 500" in found.errors[0]
    assert found.took == []


async def test_a_server_that_is_gone_fails_every_call(tmp_path: Path) -> None:
    certificates, found = Certificates(tmp_path / "webhook", tmp_path / "extender"), Found()
    certificates.issue()
    async with serving(certificates.of_extender, 200) as (port, _):
        path = calls(port, certificates)
    await asyncio.wait_for(under_load._load(path, found, time.perf_counter(), SECONDS), 60)
    assert len(found.errors) == RATE * SECONDS
