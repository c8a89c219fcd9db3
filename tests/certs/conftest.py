"""Fixtures: an API server and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from pytest_aiohttp import AiohttpServer

from kube.api.client import Client
from kube.api.credentials import open_access
from tests.certs.api import Api


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
async def client(api: Api, aiohttp_server: AiohttpServer) -> AsyncIterator[Client]:
    server = await aiohttp_server(api.application())
    async with Client(open_access(str(server.make_url("")))) as client:
        yield client
