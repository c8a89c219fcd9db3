"""The fake API server and a client of it, for every test here."""

from collections.abc import AsyncIterator

import pytest

from kube.api.client import Client
from kube.api.credentials import open_access
from tests.kube.fake_api import FakeApi, serving


@pytest.fixture
async def fake() -> AsyncIterator[FakeApi]:
    async with serving(FakeApi()) as api:
        yield api


@pytest.fixture
async def client(fake: FakeApi) -> AsyncIterator[Client]:
    async with Client(open_access(fake.url), timeout=60.0, user_agent="muster-test") as opened:
        yield opened
