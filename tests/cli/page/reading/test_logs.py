"""Logs through the page: as they are written, whatever their size, and no parameter of others."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import ClientSession

from cli.endings import Unusable
from cli.page.reading.logs import log_params
from tests.cli.page.reading.fake_api import FakeApi, Json

PLACE = ("team", "a-head")


async def lines(*texts: str) -> AsyncIterator[bytes]:
    for each in texts:
        yield f"{each}\n".encode()


async def test_a_log_is_text_and_only_what_was_asked_reaches_the_api_server(
    api: FakeApi, page: ClientSession
) -> None:
    api.logs[PLACE] = lambda: lines("<script>alert(1)</script>", "end")
    query = "container=ray&tail=10&follow=true&sinceTime=x&insecureSkipTLSVerifyBackend=true"
    async with page.get(f"logs/team/a-head?{query}") as answer:
        assert (answer.status, answer.content_type) == (200, "text/plain")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert await answer.text() == "<script>alert(1)</script>\nend\n"
    (asked,) = api.asked
    assert dict(asked.query) == {"container": "ray", "tailLines": "10", "follow": "true"}


def test_without_a_tail_the_end_alone_is_asked_for() -> None:
    assert log_params({"container": "ray"}) == {"container": "ray", "tailLines": "1000"}
    assert log_params({"container": "ray", "tail": "all"}) == {"container": "ray"}


@pytest.mark.parametrize("tail", ["-1", "x", "1e9", "99999999999", "", "\N{SUPERSCRIPT TWO}"])
def test_a_tail_that_is_none_is_named(tail: str) -> None:
    with pytest.raises(Unusable, match=r"tail: .*; allowed: all, or 0 to"):
        log_params({"container": "ray", "tail": tail})


async def test_what_is_written_is_seen_while_it_is_followed(
    api: FakeApi, page: ClientSession
) -> None:
    more = asyncio.Event()

    async def growing() -> AsyncIterator[bytes]:
        yield b"first\n"
        await more.wait()
        yield b"second\n"

    api.logs[PLACE] = growing
    async with page.get("logs/team/a-head?container=ray&follow=true") as answer:
        assert await answer.content.readline() == b"first\n"
        more.set()
        assert await answer.content.readline() == b"second\n"
        assert await answer.content.read() == b""


async def test_one_that_is_not_there_is_a_fault(api: FakeApi, page: ClientSession) -> None:
    async with page.get("logs/team/gone?container=ray") as answer:
        assert answer.status == 404
        assert "no pod gone in namespace team" in (await answer.json())["fault"]


async def test_the_log_of_a_job_is_that_of_its_submitter(api: FakeApi, page: ClientSession) -> None:
    meta: Json = {"name": "nightly", "namespace": "team"}
    api.objects["rayjobs"] = [{"metadata": meta, "spec": {}, "status": {}}]
    async with page.get("jobs/team/nightly/log") as answer:
        assert answer.status == 404
        assert "has no pod that submits it" in (await answer.json())["fault"]
    labels = {"batch.kubernetes.io/job-name": "nightly"}
    submitter = {"metadata": {**meta, "name": "nightly-x", "labels": labels}}
    api.objects["pods"] = [{**submitter, "spec": {"containers": [{"name": "submit"}]}}]
    async with page.get("jobs/team/nightly/log") as answer:
        assert await answer.json() == {"pod": "nightly-x", "container": "submit"}


def memory() -> float:
    """The memory of this process now, in MB."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


@pytest.mark.long
async def test_a_gigabyte_passes_through_in_bounded_memory(
    api: FakeApi, page: ClientSession
) -> None:
    """API server, page and browser are in this process, and none of them keeps the log."""
    line = b"x" * 1023 + b"\n"

    async def huge() -> AsyncIterator[bytes]:
        for _ in range(1024):
            yield line * 1024

    api.logs[PLACE] = huge
    before, most, size = memory(), 0.0, 0
    async with page.get("logs/team/a-head?container=ray&tail=all") as answer:
        async for piece in answer.content.iter_any():
            size += len(piece)
            most = max(most, memory()) if size % 7 == 0 else most
    assert size == 1 << 30
    assert max(most, memory()) - before < 100


@pytest.mark.long
async def test_a_browser_that_reads_slowly_holds_the_log_back(
    api: FakeApi, page: ClientSession
) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            yield b"x" * 1023 + b"\n"
            sent += 1024

    api.logs[PLACE] = endless
    async with page.get("logs/team/a-head?container=ray&tail=all") as answer:
        await answer.content.readexactly(1024)
        seen = -1
        while sent != seen:  # until nothing moves any more
            seen = sent
            await asyncio.sleep(0.5)
        assert sent < 64 << 20
