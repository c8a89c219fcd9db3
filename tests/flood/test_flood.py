"""Callers that never complete a request cost a bounded amount, and keep no other caller out.

The programs run as processes, as they are installed, against an API server in memory. Thousands of
connections are opened and held, each of which stops somewhere before its request is complete.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from ipaddress import ip_address
from pathlib import Path

import aiohttp
import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.processes import peak_rss_bytes
from certs.chain import ServerNames, issue_client, issue_leaf, new_authority
from certs.files import write_client, write_pair
from extender.settings import Settings as ExtenderSettings
from runtime.connections import Limits
from testbed.ports import PortAllocator
from tests.extender.worlds import pod
from tests.kube.fake_api import FakeApi, serving
from tests.webhook.samples import recorded

HOST = "127.0.0.1"
LIMIT = Limits().connections
DEADLINE = 60.0
"""Seconds that a connection may take: longer than the test, so that only the limit can help."""
MANY, MOST = 1_000, 5_000
"""So many connections are opened at once; `MOST` are what docs/network.md names."""
COST = 200 * 1024
"""What one connection may cost a server at most; before there was a limit it was 270 KiB."""
SLACK = 24 << 20
"""What a server may need beside, for the calls that it answers meanwhile."""

HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
"""The beginning of a TLS handshake."""
BODIES = 60
BODY_LIMIT = 1 << 20
ALL_BODIES = 4 * BODY_LIMIT
JSON = b"Content-Type: application/json\r\n"
MOST_OF_A_BODY = b"Content-Length: %d\r\n\r\n" % BODY_LIMIT + bytes(BODY_LIMIT - 1)
HALF_A_HEADER = b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Ty"


@pytest.fixture(scope="module", autouse=True)
def _many_files() -> Iterator[None]:
    """Let this process hold the connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST + 1_000
    if hard < wanted:
        pytest.skip(f"at most {hard} open files are allowed, {wanted} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with serving(FakeApi()) as fake:
        yield fake


@dataclass
class Server:
    """A program that runs, and how it is called."""

    pid: int
    port: int
    health: int
    caller: ssl.SSLContext

    async def answered(self, path: str, body: bytes | None = None) -> None:
        """Expect an answer in time; a caller that is cut off tries again, as all of ours do."""
        async with asyncio.timeout(120):
            while True:
                with contextlib.suppress(aiohttp.ClientConnectionError):
                    assert await self.call(path, body) == 200
                    return

    async def call(self, path: str, body: bytes | None = None) -> int:
        """Ask on a connection of its own; the status."""
        scheme, port = ("http", self.health) if body is None else ("https", self.port)
        method, url = ("GET" if body is None else "POST"), f"{scheme}://{HOST}:{port}{path}"
        headers = {"Content-Type": "application/json", "Connection": "close"}
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, url, data=body, headers=headers, ssl=self.caller) as answer,
        ):
            return answer.status

    async def metric(self, name: str, **labels: str) -> float:
        """A metric of the connections."""
        url = f"http://{HOST}:{self.health}/metrics"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            families = [*text_string_to_metric_families(await answer.text())]
        (found,) = [
            sample.value
            for family in families
            for sample in family.samples
            if sample.name.endswith(f"_{name}") and sample.labels == labels
        ]
        return found

    async def until_ready(self) -> None:
        async with asyncio.timeout(120):
            while True:
                with contextlib.suppress(aiohttp.ClientError):
                    if await self.call("/readyz") == 200:
                        return
                await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def running(program: str, api: FakeApi, directory: Path) -> AsyncIterator[Server]:
    """Start a program, and wait until it is ready."""
    with contextlib.closing(PortAllocator()) as ports:
        port, health = ports.allocate(), ports.allocate()
        caller = _certificates(directory)
        variables = {**_settings(program, directory, port, health), **os.environ}
        variables["KUBECONFIG"] = str(_kubeconfig(directory, api))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", program, env=variables, stderr=asyncio.subprocess.DEVNULL
        )
        server = Server(process.pid, port, health, caller)
        try:
            await server.until_ready()
            yield server
        finally:
            process.terminate()
            await process.wait()


def _settings(program: str, directory: Path, port: int, health: int) -> dict[str, str]:
    tls = {"CERTIFICATE_FILE": directory / "tls.crt", "KEY_FILE": directory / "tls.key"}
    listen = {"LISTEN_ADDRESS": HOST, "LISTEN_PORT": port}
    both = {**listen, "HEALTH_ADDRESS": HOST, "HEALTH_PORT": health, **tls}
    own: dict[str, dict[str, object]] = {
        "webhook": {**both, "BODY_LIMIT_BYTES": BODY_LIMIT, "READ_TIMEOUT_SECONDS": 29},
        "extender": {
            **both,
            "CLIENT_CA_FILE": directory / "ca.crt",
            "HANDSHAKE_SECONDS": DEADLINE,
            "CALL_SECONDS": 30,
            "SETTLE_SECONDS": 0,
        },
        "coordinator": {**listen, "LISTEN_PORT": health},
    }
    chosen = {**own[program], "HEADER_SECONDS": DEADLINE}
    return {f"MUSTER_{program.upper()}_{name}": str(value) for name, value in chosen.items()}


def _kubeconfig(directory: Path, api: FakeApi) -> Path:
    path = directory / "kubeconfig"
    found = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "fake",
        "clusters": [{"name": "fake", "cluster": {"server": api.url}}],
        "users": [{"name": "fake", "user": {"token": "fake"}}],
        "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
    }
    path.write_text(json.dumps(found))  # JSON is YAML
    return path


def _certificates(directory: Path) -> ssl.SSLContext:
    """Write a server's pair, and return the context of kube-scheduler."""
    now = datetime.now(UTC)
    authority = new_authority("test-ca", now)
    leaf = issue_leaf(authority, ServerNames(addresses=(ip_address(HOST),)), now)
    write_pair(directory, leaf, authority.certificate)
    write_client(directory, issue_client(authority, ExtenderSettings().client_name, now))
    context = ssl.create_default_context(cafile=directory / "ca.crt")
    context.load_cert_chain(directory / "client.crt", directory / "client.key")
    return context


class Flood:
    """Connections that are opened and held."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._held: list[socket.socket] = []

    def open(self, count: int, say: bytes, tls: ssl.SSLContext | None = None) -> None:
        """Open so many, say the same on each, and stop there."""
        for _ in range(count):
            connection = socket.socket()
            connection.settimeout(DEADLINE)
            connection.connect((HOST, self._port))
            with contextlib.suppress(OSError):  # closed already to make room
                if tls is not None:
                    connection = tls.wrap_socket(connection, server_hostname=HOST)
                connection.sendall(say)
            self._held.append(connection)

    def close(self) -> None:
        for connection in self._held:
            connection.close()


def sleep(flood: Flood, count: int) -> None:
    """Connections that say nothing, and that stop within the headers."""
    flood.open(count // 2, b"")
    flood.open(count // 2, HALF_A_HEADER)


def stop(flood: Flood, count: int, tls: ssl.SSLContext) -> None:
    """Connections over TLS that say nothing, begin a handshake, and stop within the headers."""
    flood.open(count // 2, b"")
    flood.open(count // 2 - count // 10, HELLO)
    flood.open(count // 10, HALF_A_HEADER, tls)  # each costs both sides a handshake


def trickle(flood: Flood, tls: ssl.SSLContext) -> None:
    """Bodies of almost as much as is allowed, that do not end."""
    flood.open(BODIES, b"POST /mutate HTTP/1.1\r\nHost: x\r\n" + JSON + MOST_OF_A_BODY, tls)


LIVEZ: tuple[str, bytes | None] = ("/livez", None)
REVIEW = ("/mutate", orjson.dumps(recorded("plain")))
QUESTION = ("/filter", orjson.dumps({"Pod": pod("p"), "Nodes": None, "NodeNames": ["a"]}))


@contextlib.asynccontextmanager
async def flooded(
    server: Server, port: int, flood: Callable[[Flood], None], call: tuple[str, bytes | None]
) -> AsyncIterator[None]:
    """Let the flood come in, and see that the server answers its callers meanwhile."""
    held, answered = Flood(port), 0
    opening = asyncio.create_task(asyncio.to_thread(flood, held))
    try:
        while not opening.done() or answered < 3:
            await server.answered(*call)
            answered += 1
        await opening
        yield
    finally:
        await asyncio.wait([opening])
        held.close()


async def expect_closed(server: Server, port: str, reason: str, least: int) -> None:
    """Wait until so many connections were closed for this reason; no more are open than may be."""
    async with asyncio.timeout(240):
        labels = {"port": port, "reason": reason}
        while await server.metric("connections_closed_total", **labels) < least:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert await server.metric("connections", port=port) <= LIMIT


@pytest.mark.parametrize(
    "program",
    [pytest.param(each, marks=pytest.mark.long) for each in ("coordinator", "webhook", "extender")],
)
async def test_idle_connections_to_a_health_port(
    program: str, api: FakeApi, tmp_path: Path
) -> None:
    async with running(program, api, tmp_path) as server:
        before = peak_rss_bytes(server.pid)
        async with flooded(server, server.health, partial(sleep, count=MANY), LIVEZ):
            await expect_closed(server, "health", "full", MANY - LIMIT)
        assert peak_rss_bytes(server.pid) - before < LIMIT * COST + SLACK


@pytest.mark.parametrize(
    ("program", "port", "call", "count"),
    [
        ("webhook", "reviews", REVIEW, MANY),
        pytest.param("extender", "scheduler", QUESTION, MANY, marks=pytest.mark.long),
        pytest.param("webhook", "reviews", REVIEW, MOST, marks=pytest.mark.long),
    ],
)
async def test_idle_connections_over_tls(
    program: str, port: str, call: tuple[str, bytes], count: int, api: FakeApi, tmp_path: Path
) -> None:
    async with running(program, api, tmp_path) as server:
        before = peak_rss_bytes(server.pid)
        flood = partial(stop, count=count, tls=server.caller)
        async with flooded(server, server.port, flood, call):
            await expect_closed(server, port, "full", count - LIMIT)
        assert peak_rss_bytes(server.pid) - before < LIMIT * COST + SLACK


async def test_bodies_that_do_not_end(api: FakeApi, tmp_path: Path) -> None:
    async with running("webhook", api, tmp_path) as server:
        before = peak_rss_bytes(server.pid)
        flood = partial(trickle, tls=server.caller)
        async with flooded(server, server.port, flood, REVIEW):
            await expect_closed(server, "reviews", "memory", BODIES // 2)
        assert peak_rss_bytes(server.pid) - before < ALL_BODIES + SLACK
