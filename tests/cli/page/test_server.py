"""The page as it is served: what is read again, what is answered, and to whom."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from cli.endings import CannotRead
from cli.page.feed import Feed, pause_after
from cli.page.on_laptop import laptop_page
from cli.page.safety.guards import ADDRESS
from cli.page.server import ASSETS, serving
from cli.report.status import StatusReport
from kube.api.client import Client
from kube.api.credentials import open_access
from tests.cli.page.reports import gang, status


class Cluster:
    """What is read: a report, or an error."""

    def __init__(self) -> None:
        self.found: StatusReport | Exception = status((gang("first"),))
        self.readings = 0

    async def read(self) -> StatusReport:
        self.readings += 1
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def feed(cluster: Cluster) -> Feed:
    return Feed(cluster.read, period=60)


def port_of(page: aiohttp.ClientSession) -> int | None:
    assert page._base_url is not None
    return page._base_url.port


def shown(feed: Feed) -> web.Application:
    """The page of a laptop whose cluster nobody asks for anything but the report."""
    return laptop_page(Client(open_access("http://127.0.0.1:1")), "team", "secret", feed)


@pytest.fixture
async def page(feed: Feed) -> AsyncIterator[aiohttp.ClientSession]:
    page = shown(feed)
    async with serving(page, 0) as port, aiohttp.ClientSession(f"http://{ADDRESS}:{port}") as made:
        yield made


async def report(page: aiohttp.ClientSession, query: str = "") -> tuple[int, Any]:
    async with page.get("/report", params={"q": query}) as answer:
        return answer.status, await answer.json()


async def test_before_the_first_reading_it_says_so(page: aiohttp.ClientSession) -> None:
    assert await report(page) == (503, {"fault": "the cluster is being read for the first time"})


async def test_what_was_read_is_answered_and_narrowed(
    page: aiohttp.ClientSession, feed: Feed
) -> None:
    await feed.refresh()
    code, found = await report(page)
    assert (code, found["version"], found["waiting"]["count"]) == (200, 1, 1)
    assert found["waiting"]["items"][0]["name"] == "first"
    assert (await report(page, "nothing"))[1]["waiting"]["count"] == 0


async def test_a_cluster_that_cannot_be_read_leaves_the_last_report_and_says_why(
    page: aiohttp.ClientSession, feed: Feed, cluster: Cluster
) -> None:
    await feed.refresh()
    cluster.found = CannotRead("the API server cannot be reached: refused")
    await feed.refresh()
    code, found = await report(page)
    assert (code, found["version"], found["waiting"]["count"]) == (200, 2, 1)
    assert found["fault"] == "the API server cannot be reached: refused"
    cluster.found = status()
    await feed.refresh()
    assert (await report(page))[1]["fault"] == ""


async def test_a_first_reading_that_fails_is_told(
    page: aiohttp.ClientSession, feed: Feed, cluster: Cluster
) -> None:
    cluster.found = CannotRead("the credentials are wrong")
    await feed.refresh()
    assert await report(page) == (503, {"fault": "the credentials are wrong"})


async def test_each_reading_is_a_line_of_the_stream(
    page: aiohttp.ClientSession, feed: Feed
) -> None:
    async with page.get("/changes") as stream:
        assert stream.content_type == "text/event-stream"
        assert await stream.content.readuntil(b"\n\n") == b"data: 0\n\n"
        await feed.refresh()
        assert await stream.content.readuntil(b"\n\n") == b"data: 1\n\n"


async def test_many_who_look_cost_one_reading(
    page: aiohttp.ClientSession, feed: Feed, cluster: Cluster
) -> None:
    await feed.refresh()
    assert [code for code, _ in await asyncio.gather(*[report(page) for _ in range(20)])] == [
        200
    ] * 20
    assert cluster.readings == 1


def test_a_cluster_that_takes_long_to_read_is_read_less_often() -> None:
    assert [pause_after(took, period=5) for took in (0.1, 1, 4)] == [5, 5, 16]


@pytest.mark.parametrize("path", ASSETS)
async def test_the_files_are_served_and_load_nothing_from_elsewhere(
    page: aiohttp.ClientSession, path: str
) -> None:
    async with page.get(path) as answer:
        assert answer.status == 200
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        text = (await answer.text()).replace("http://www.w3.org/2000/svg", "")
    assert "http://" not in text
    assert "https://" not in text
    assert "innerHTML" not in text


@pytest.mark.parametrize("path", ["/report", "/changes", "/"])
async def test_a_name_of_others_that_leads_here_is_refused(
    page: aiohttp.ClientSession, feed: Feed, path: str
) -> None:
    await feed.refresh()
    async with page.get(path, headers={"Host": "evil.example.com:8400"}) as answer:
        assert answer.status == 421


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_nothing_can_be_written(page: aiohttp.ClientSession, method: str) -> None:
    headers = {"X-Muster-Write": "secret", "Origin": f"http://{ADDRESS}:{port_of(page)}"}
    async with page.request(method, "/report", json={}, headers=headers) as answer:
        assert answer.status == 405


async def test_a_port_that_is_taken_is_told(feed: Feed, unused_tcp_port: int) -> None:
    async with serving(shown(feed), unused_tcp_port):
        with pytest.raises(OSError, match="in use"):
            async with serving(shown(feed), unused_tcp_port):
                pass
