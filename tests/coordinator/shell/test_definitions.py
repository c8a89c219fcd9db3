"""A replica leads only while the definitions take what it writes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from aiohttp import web
from pytest_aiohttp import AiohttpClient, AiohttpServer

from coordinator.settings import Settings
from coordinator.shell import definitions as shell_definitions
from coordinator.shell.app import Coordinator
from coordinator.shell.definitions import Definitions
from coordinator.shell.health import application
from kube.api.client import Client
from kube.api.credentials import open_access
from kube.objects.crds.muster import gang_crd, gang_queue_crd
from tests.kube.fake_api import eventually
from tests.logs import captured

Json = dict[str, Any]


class Served:
    """The definitions as an API server gives them."""

    def __init__(self) -> None:
        crds = (gang_crd(), gang_queue_crd())
        self.crds: dict[str, Json] = {each["metadata"]["name"]: each for each in crds}
        self.status = 200
        self.asked = 0

    async def handle(self, request: web.Request) -> web.Response:
        self.asked += 1
        if self.status != 200:
            body = {"kind": "Status", "code": self.status, "reason": "x", "message": "no"}
            return web.json_response(body, status=self.status)
        return web.json_response(self.crds[request.path.rpartition("/")[2]])

    def properties(self, name: str, part: str) -> Json:
        schema = self.crds[name]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        found: Json = schema["properties"][part]["properties"]
        return found

    def drop(self, field: str) -> None:
        del self.properties("gangs.muster.dev", "status")[field]

    def mend(self) -> None:
        self.crds["gangs.muster.dev"] = gang_crd()


class Leading:
    """What runs while a replica may lead."""

    def __init__(self) -> None:
        self.now = False
        self.terms = 0

    async def __call__(self) -> None:
        self.now, self.terms = True, self.terms + 1
        try:
            await asyncio.Event().wait()
        finally:
            self.now = False


@pytest.fixture
def served() -> Served:
    return Served()


@pytest.fixture
async def definitions(served: Served, aiohttp_server: AiohttpServer) -> AsyncIterator[Definitions]:
    app = web.Application()
    app.router.add_get("/{path:.*}", served.handle)
    running = await aiohttp_server(app)
    async with Client(open_access(str(running.make_url("")))) as client:
        yield Definitions(client, every=0.01, again=0.01)


@contextlib.asynccontextmanager
async def contending(definitions: Definitions) -> AsyncIterator[Leading]:
    leading = Leading()
    task = asyncio.create_task(definitions.run_while_whole(leading))
    yield leading
    task.cancel()
    await asyncio.wait({task})
    assert not leading.now


async def test_with_the_definitions_of_its_release_it_leads(
    definitions: Definitions,
) -> None:
    async with contending(definitions) as leading:
        await eventually(lambda: leading.now)
        assert definitions.fault == ""


async def test_with_older_ones_it_waits_says_why_and_leads_once_they_are_applied(
    served: Served, definitions: Definitions
) -> None:
    served.drop("decided")
    async with contending(definitions) as leading:
        await eventually(lambda: bool(definitions.fault))
        asked = served.asked
        await eventually(lambda: served.asked >= asked + 4)
        assert leading.terms == 0
        assert definitions.fault == (
            "definition gangs.muster.dev lacks .status.decided: "
            "kubectl apply -k manifests/crds, of the release of this coordinator"
        )
        served.mend()
        await eventually(lambda: leading.now)
        assert definitions.fault == ""


async def test_what_queues_cannot_say_stops_nothing_and_is_in_the_log_once(
    served: Served, definitions: Definitions, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = served.properties("gangqueues.muster.dev", "spec")
    del spec["timeouts"]["properties"]["slotSeconds"], spec["whenBroken"]
    with captured(monkeypatch, shell_definitions) as lines:
        async with contending(definitions) as leading:
            await eventually(lambda: leading.now)
            asked = served.asked
            await eventually(lambda: served.asked >= asked + 4)
            assert leading.now
    [line] = lines.entries
    assert line["said"].startswith(
        "gangqueues.muster.dev does not take .spec.whenBroken, .spec.timeouts.slotSeconds, which "
    )


async def test_it_leads_no_longer_when_older_ones_are_applied(
    served: Served, definitions: Definitions
) -> None:
    async with contending(definitions) as leading:
        await eventually(lambda: leading.now)
        served.drop("held")
        await eventually(lambda: not leading.now)
        served.mend()
        await eventually(lambda: leading.now)
        assert leading.terms == 2


@pytest.mark.parametrize("status", [403, 404])
async def test_what_may_not_be_read_is_taken_for_right(
    served: Served, definitions: Definitions, status: int
) -> None:
    """The ClusterRole of an older release has no such right; 404 is said by the watch."""
    served.status = status
    async with contending(definitions) as leading:
        await eventually(lambda: leading.now)


async def test_without_an_answer_it_does_not_begin_and_goes_on_where_it_has_begun(
    served: Served, definitions: Definitions
) -> None:
    served.status = 500
    async with contending(definitions) as leading:
        await eventually(lambda: served.asked >= 3)
        assert leading.terms == 0
        served.status = 200
        await eventually(lambda: leading.now)
        served.status = 500
        asked = served.asked
        await eventually(lambda: served.asked >= asked + 3)
        assert leading.now


async def test_it_is_not_ready_and_says_why(
    served: Served, definitions: Definitions, aiohttp_client: AiohttpClient
) -> None:
    made = Coordinator(Settings(), cast(Client, None))
    made.reflectors.clear()
    made.definitions = definitions
    client = await aiohttp_client(application(made))
    await definitions.look()
    assert (await client.get("/readyz")).status == 200
    served.drop("decided")
    await definitions.look()
    answer = await client.get("/readyz")
    assert answer.status == 503
    assert "gangs.muster.dev lacks .status.decided" in await answer.text()


async def test_a_bug_in_what_leads_ends_the_program(definitions: Definitions) -> None:
    async def broken() -> None:
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        await definitions.run_while_whole(broken)
