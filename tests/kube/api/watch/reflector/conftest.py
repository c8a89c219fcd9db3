"""Servers that a reflector lists from."""

import pytest

from tests.kube.fake_api import FakeApi


@pytest.fixture(params=["stream", "pages"])
def either(request: pytest.FixtureRequest, fake: FakeApi) -> FakeApi:
    """A server with and one without WatchList."""
    fake.watch_list = request.param == "stream"
    return fake
