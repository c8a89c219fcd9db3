"""Devices by claim are watched from the first pod on that asks for some, where they are served."""

import asyncio
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from pytest_aiohttp import AiohttpServer

from kube.api.client import Client
from kube.api.credentials import open_access
from kube.api.watch.events import Sink, Synced, WatchEvent
from kube.device_watches import DeviceApi, DeviceWatches
from kube.devices.device_facts import DEVICE_WATCHES, DeviceWatch, ObservedDeviceFact
from tests.coordinator.claimed import worker

GROUP = "/apis/resource.k8s.io/v1"


class ApiServer:
    """An API server of one version, which has no object of any kind."""

    def __init__(self, minor: str, *, served: bool) -> None:
        self.minor, self.served = minor, served
        self.asked: list[str] = []
        self.app = web.Application()
        self.app.router.add_get("/{path:.*}", self._answer)

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        if request.path == "/version":
            return web.json_response({"major": "1", "minor": self.minor})
        if request.path == GROUP and self.served:
            return web.json_response({"kind": "APIResourceList", "resources": []})
        return web.json_response({"kind": "Status", "code": 404}, status=404)


class Heard:
    """What a program is told: what is served, and the kinds that are listed."""

    def __init__(self) -> None:
        self.told: list[DeviceApi | DeviceWatch] = []
        self._news = asyncio.Event()

    def hear_api(self, api: DeviceApi) -> None:
        self._hear(api)

    def sink_of(self, watch: DeviceWatch) -> Sink[ObservedDeviceFact]:
        def sink(batch: list[WatchEvent[ObservedDeviceFact]]) -> None:
            if Synced() in batch:
                self._hear(watch)

        return sink

    def _hear(self, told: DeviceApi | DeviceWatch) -> None:
        self.told.append(told)
        self._news.set()

    async def wait(self, count: int) -> list[DeviceApi | DeviceWatch]:
        async with asyncio.timeout(60):
            while len(self.told) < count:
                self._news.clear()
                await self._news.wait()
        return self.told


@asynccontextmanager
async def running(server: ApiServer, aiohttp_server: AiohttpServer, heard: Heard) -> Any:
    running = await aiohttp_server(server.app)
    async with Client(open_access(str(running.make_url("")))) as client:
        watches = DeviceWatches(client, heard.sink_of, heard.hear_api)
        task = asyncio.create_task(watches.run())
        yield watches
        task.cancel()


async def test_nothing_is_asked_for_pods_without_claims(aiohttp_server: AiohttpServer) -> None:
    """The first with a claim is what begins it: all that was asked comes after it."""
    server, heard = ApiServer("37", served=True), Heard()
    async with running(server, aiohttp_server, heard) as watches:
        watches.note(worker(0, None))
        for _ in range(20):
            await asyncio.sleep(0)
        assert (server.asked, watches.started, watches._wanted.is_set()) == ([], {}, False)
        watches.note(worker(1))
        first, *listed = await heard.wait(1 + len(DEVICE_WATCHES))
        assert first == DeviceApi("1.37", served=True)
        assert set(listed) == set(DEVICE_WATCHES)
        assert watches.started.keys() == {f"devices/{w.resource.plural}" for w in DEVICE_WATCHES}
        assert server.asked[:2] == ["/version", GROUP]


async def test_where_the_api_is_not_served_the_version_is_told_and_nothing_watched(
    aiohttp_server: AiohttpServer,
) -> None:
    server, heard = ApiServer("33+", served=False), Heard()
    async with running(server, aiohttp_server, heard) as watches:
        watches.note(worker(0))
        assert await heard.wait(1) == [DeviceApi("1.33", served=False)]
        assert watches.started == {}
        assert server.asked == ["/version", GROUP]
