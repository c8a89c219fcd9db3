"""Reads the coordinator's metrics as a scraper does."""

from types import SimpleNamespace
from typing import cast
from unittest import mock

from aiohttp.test_utils import TestClient, TestServer
from prometheus_client import REGISTRY

from coordinator.settings import Settings
from coordinator.shell import scrape as scraping
from coordinator.shell.app import Coordinator
from coordinator.shell.health import application
from coordinator.shell.writes.executor import Executor
from kube.api.client import Client
from tests.coordinator.world import World
from tests.metrics import total


def value(name: str, **labels: str) -> float:
    return total(REGISTRY, name, **labels)


async def scrape(coordinator: Coordinator) -> str:
    """Have the gauges read, as whoever asks for the page does."""
    async with TestClient(TestServer(application(coordinator))) as client:
        answer = await client.get("/metrics")
        assert answer.status == 200
        return await answer.text()


async def scrape_world(world: World) -> str:
    """Read what the leader of a world tells, at the world's time."""
    coordinator = Coordinator(Settings(), cast(Client, None))
    coordinator.loop.state = world.leader.state
    now = SimpleNamespace(monotonic=lambda: world.api.now)
    with mock.patch.object(scraping, "time", now):
        return await scrape(coordinator)


def executor_of(client: object) -> Executor:
    class Ours:
        def valid(self) -> bool:
            return True

    return Executor(cast(Client, client), Ours(), lambda _: None, identity="test", concurrency=1)
