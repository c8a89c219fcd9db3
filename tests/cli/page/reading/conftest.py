"""The page in front of a fake API server."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer

from cli.page.reading.links import read_links
from cli.page.reading.routes import LINKS
from cli.page.safety.callers import OnLaptop
from cli.page.server import application
from tests.cli.page.reading.fake_api import FakeApi, client_of


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
async def address(api: FakeApi) -> AsyncIterator[str]:
    """Where the page is; the namespace of its person is `team`."""
    async with client_of(api) as client:
        app = application(OnLaptop(client, "team"), [], None)
        app[LINKS] = read_links(["ray=https://ray.example.com/{namespace}/{name}"])
        async with TestServer(app, host="127.0.0.1") as server:
            yield f"http://127.0.0.1:{server.port}/"


@pytest.fixture
async def page(address: str) -> AsyncIterator[ClientSession]:
    """Asks the page for the paths below /api."""
    async with ClientSession(f"{address}api/") as session:
        yield session
