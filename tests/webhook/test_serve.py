"""The whole program starts, answers over TLS, changes its certificate, and ends cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web
from pytest_aiohttp import AiohttpServer

from kube.objects.names import GATE
from testbed.ports import PortAllocator
from tests.webhook import apiserver
from tests.webhook.apiserver import FakeApiServer
from tests.webhook.pki import HOST, Pki, shown
from tests.webhook.samples import CLUSTER, Json, gates_after, labelled, worker
from webhook.serve import serve
from webhook.settings import Settings

JSON = {"Content-Type": "application/json"}


class WatchedApiServer(FakeApiServer):
    """Streams what it holds as the answer to a watch, then falls silent."""

    def __init__(self) -> None:
        super().__init__()
        self.rays: list[Json] = []
        self.spaces: list[Json] = []
        self.synced = asyncio.Event()
        self._closing = asyncio.Event()

    def application(self) -> web.Application:
        application = super().application()
        application.router.add_get("/apis/ray.io/v1/rayclusters", self._watch(self.rays))
        application.router.add_get("/api/v1/namespaces", self._watch(self.spaces))
        application.on_shutdown.append(self._close)
        return application

    async def _close(self, _: web.Application) -> None:
        self._closing.set()

    def _watch(self, held: list[Json]) -> apiserver.Reply:
        async def stream(request: web.Request) -> web.StreamResponse:
            assert request.query["watch"] == "true"
            answer = web.StreamResponse()
            await answer.prepare(request)
            await self.synced.wait()
            ended = {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}
            events = [{"type": "ADDED", "object": each} for each in held]
            for event in [*events, {"type": "BOOKMARK", "object": {"metadata": ended}}]:
                await answer.write(orjson.dumps(event) + b"\n")
            await self._closing.wait()
            return answer

        return stream


def _metadata(name: str, uid: str, **rest: Any) -> Json:
    return {"metadata": {"name": name, "uid": uid, "resourceVersion": "1", **rest}}


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


@pytest.fixture
def api() -> WatchedApiServer:
    api = WatchedApiServer()
    labels = dict(labelled().labels)
    api.rays.append(_metadata(CLUSTER.name, CLUSTER.uid, namespace="demo", labels=labels))
    api.spaces.append(_metadata("demo", "ns"))
    return api


@pytest.fixture
async def kubeconfig(api: WatchedApiServer, aiohttp_server: AiohttpServer, tmp_path: Path) -> Path:
    server = await aiohttp_server(api.application())
    path = tmp_path / "kubeconfig"
    # JSON is YAML.
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "fake",
                "clusters": [{"name": "fake", "cluster": {"server": str(server.make_url(""))}}],
                "users": [{"name": "fake", "user": {"token": "fake"}}],
                "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
            }
        )
    )
    return path


@pytest.fixture
def ports() -> Iterator[PortAllocator]:
    """Ports that no other program gets, not even for a connection, between here and the server."""
    with closing(PortAllocator()) as allocator:
        yield allocator


@pytest.fixture
def settings(pki: Pki, kubeconfig: Path, ports: PortAllocator) -> Settings:
    return Settings(
        listen_address=ip_address(HOST),
        listen_port=ports.allocate(),
        health_address=ip_address(HOST),
        health_port=ports.allocate(),
        certificate_file=pki.certificate,
        key_file=pki.key,
        certificate_poll_seconds=0.1,
        kubeconfig=kubeconfig,
    )


@pytest.fixture
async def http(pki: Pki) -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(ssl=pki.client())
    async with aiohttp.ClientSession(connector=connector) as session:
        yield session


class Program:
    """The webhook as a task of this loop."""

    def __init__(self, settings: Settings, http: aiohttp.ClientSession) -> None:
        self.settings = settings
        self._http = http
        self.stop = asyncio.Event()
        self.task = asyncio.create_task(serve(settings, self.stop))

    async def health(self, path: str) -> tuple[int, str]:
        url = f"http://{HOST}:{self.settings.health_port}{path}"
        async with self._http.get(url) as answer:
            return answer.status, await answer.text()

    async def until_ready(self, said: str) -> None:
        async with asyncio.timeout(60):
            while True:
                try:
                    if (await self.health("/readyz"))[1] == said:
                        return
                except aiohttp.ClientConnectorError:
                    assert not self.task.done(), self.task
                await asyncio.sleep(0.01)

    async def review(self, review: Json) -> Json:
        url = f"https://{HOST}:{self.settings.listen_port}/mutate"
        async with self._http.post(url, data=orjson.dumps(review), headers=JSON) as answer:
            answered: Json = await answer.json()
            return answered

    async def end(self) -> None:
        self.stop.set()
        async with asyncio.timeout(60):
            await self.task


@pytest.fixture
async def program(settings: Settings, http: aiohttp.ClientSession) -> AsyncIterator[Program]:
    program = Program(settings, http)
    yield program
    await program.end()


async def test_it_is_ready_when_certificate_and_cache_are_there(
    program: Program, pki: Pki, api: WatchedApiServer
) -> None:
    await program.until_ready("not ready: cache, certificate\n")
    pki.write()
    await program.until_ready("not ready: cache\n")
    assert (await program.health("/livez"))[0] == 200
    api.synced.set()
    await program.until_ready("ok\n")


async def test_a_synced_cache_answers_without_a_get(
    program: Program, pki: Pki, api: WatchedApiServer
) -> None:
    pki.write()
    api.synced.set()
    await program.until_ready("ok\n")
    assert gates_after(worker(), await program.review(worker())) == [GATE]
    assert api.asked.total() == 0
    metrics = (await program.health("/metrics"))[1]
    assert 'muster_webhook_reviews_total{result="gated"} 1.0' in metrics
    assert "muster_webhook_cache_synced 1.0" in metrics
    assert "muster_webhook_certificate_expiry_timestamp_seconds 0.0" not in metrics


async def test_before_the_cache_is_there_reviews_are_answered_all_the_same(
    program: Program, pki: Pki, api: WatchedApiServer
) -> None:
    pki.write()
    api.cluster = apiserver.found(labels=dict(labelled().labels))
    await program.until_ready("not ready: cache\n")
    assert gates_after(worker(), await program.review(worker())) == [GATE]
    assert api.asked.total() == 1


async def test_an_api_server_that_fails_has_the_pod_refused(
    program: Program, pki: Pki, api: WatchedApiServer
) -> None:
    pki.write()
    api.cluster = apiserver.status(500)
    await program.until_ready("not ready: cache\n")
    assert (await program.review(worker()))["response"]["allowed"] is False


async def test_a_new_certificate_is_shown_under_way(
    program: Program, pki: Pki, api: WatchedApiServer
) -> None:
    pki.write()
    await program.until_ready("not ready: cache\n")
    renewed = pki.write()
    async with asyncio.timeout(60):
        while await _shown(program, pki) != renewed:
            pass


async def _shown(program: Program, pki: Pki) -> str:
    port = program.settings.listen_port
    _, writer = await asyncio.open_connection(HOST, port, ssl=pki.client())
    writer.close()
    return shown(writer.get_extra_info("ssl_object"))


async def test_a_review_under_way_is_answered_before_the_end(
    program: Program, pki: Pki, api: WatchedApiServer
) -> None:
    pki.write()
    api.cluster = held = apiserver.Held(apiserver.found(labels=dict(labelled().labels)))
    await program.until_ready("not ready: cache\n")
    review = asyncio.create_task(program.review(worker()))
    async with asyncio.timeout(60):
        await api.until_asked(1)
    program.stop.set()
    await _until_refused(program.settings.listen_port)
    held.go.set()
    assert gates_after(worker(), await review) == [GATE]
    async with asyncio.timeout(60):
        await program.task


async def test_a_review_that_hangs_does_not_hold_up_the_end_for_ever(
    settings: Settings, http: aiohttp.ClientSession, pki: Pki, api: WatchedApiServer
) -> None:
    pki.write()
    api.cluster = apiserver.for_ever
    patient = {"drain_seconds": 0.1, "lookup_deadline_seconds": 29.0}
    program = Program(settings.model_copy(update=patient), http)
    await program.until_ready("not ready: cache\n")
    review = asyncio.create_task(program.review(worker()))
    async with asyncio.timeout(60):
        await api.until_asked(1)
    await program.end()
    with pytest.raises(aiohttp.ClientError):
        await review


async def _until_refused(port: int) -> None:
    async with asyncio.timeout(60):
        with contextlib.suppress(ConnectionRefusedError):
            while True:
                _, writer = await asyncio.open_connection(HOST, port)
                writer.close()


async def test_while_it_stops_it_says_so(
    settings: Settings, http: aiohttp.ClientSession, pki: Pki
) -> None:
    pki.write()
    program = Program(settings.model_copy(update={"shutdown_delay_seconds": 3.0}), http)
    await program.until_ready("not ready: cache\n")
    program.stop.set()
    await program.until_ready("not ready: cache, stopping\n")
    await program.end()


async def test_a_connection_is_kept_for_the_next_review(program: Program, pki: Pki) -> None:
    pki.write()
    await program.until_ready("not ready: cache\n")
    port = program.settings.listen_port
    reader, writer = await asyncio.open_connection(HOST, port, ssl=pki.client())
    request = b"POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
    for _ in range(3):
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 415 ")
        await reader.readexactly(int(head.split(b"Content-Length: ")[1].split(b"\r\n")[0]))
    writer.close()


async def test_a_small_body_does_not_become_a_large_one(
    program: Program, pki: Pki, http: aiohttp.ClientSession
) -> None:
    pki.write()
    await program.until_ready("not ready: cache\n")
    url = f"https://{HOST}:{program.settings.listen_port}/mutate"
    packed = gzip.compress(orjson.dumps(worker()))
    headers = {**JSON, "Content-Encoding": "gzip"}
    async with http.post(url, data=packed, headers=headers) as answer:
        assert (answer.status, (await answer.json())["message"][:8]) == (400, "not JSON")


async def test_a_part_that_breaks_ends_it(
    settings: Settings, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def break_down(_: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr("webhook.serve.Reflector.run", break_down)
    with pytest.raises(KeyError, match="a bug"):
        async with asyncio.timeout(60):
            await serve(settings, asyncio.Event())


async def test_a_port_that_is_taken_ends_it(
    settings: Settings, http: aiohttp.ClientSession
) -> None:
    with socket.create_server((HOST, settings.listen_port)):
        program = Program(settings, http)
        with pytest.raises(OSError, match=r"[Aa]ddress already in use"):
            await program.end()


# ---- as a process


def _environment(**variables: object) -> dict[str, str]:
    ours = {f"MUSTER_WEBHOOK_{name}": str(value) for name, value in variables.items()}
    return {**os.environ, **ours}


def _run(**variables: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "webhook"],
        env=_environment(**variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_bad_settings_end_it_with_2_and_all_faults() -> None:
    done = _run(LISTEN_PORT="many", KEEPALIVE_SECONDS=5)
    assert done.returncode == 2
    assert "MUSTER_WEBHOOK_LISTEN_PORT: 'many'" in done.stderr
    assert "MUSTER_WEBHOOK_KEEPALIVE_SECONDS: '5'" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unusable_kubeconfig_ends_it_with_1(tmp_path: Path) -> None:
    done = _run(KUBECONFIG=tmp_path / "none")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    said = json.loads(done.stderr.splitlines()[-1])
    assert said["event"] == "cannot run"
    assert f"{tmp_path / 'none'} (MUSTER_WEBHOOK_KUBECONFIG): no such file" in said["reason"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_cleanly(
    settings: Settings, pki: Pki, http: aiohttp.ClientSession, number: signal.Signals
) -> None:
    pki.write()
    chosen = {name.upper(): value for name, value in settings.model_dump().items()}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "webhook", env=_environment(**chosen), stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    lines: list[Json] = []
    async with asyncio.timeout(60):
        while not lines or lines[-1]["event"] != "serving":
            lines.append(json.loads(await process.stderr.readline()))
        process.send_signal(number)
        rest = await process.stderr.read()
        assert await process.wait() == 0
    lines += [json.loads(line) for line in rest.splitlines()]
    assert "stopping" in [line["event"] for line in lines]
    assert "PRIVATE" not in str(lines)
