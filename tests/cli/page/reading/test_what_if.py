"""What-if on the page: the answers of the command, bad questions, and one at a time."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer

from cli.page.safety.callers import Caller, OnLaptop
from cli.page.server import application
from cli.read.forecast import asking
from cli.read.forecast.what_if import read_what_if
from tests.cli.fitting.reader import reader_of
from tests.cli.forecast.test_shown import shown
from tests.cli.page.reading.fake_api import FakeApi, client_of
from tests.coordinator.world import World
from tests.forecast.pictures import moment_of

JOB = """
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: small, labels: {muster.dev/gang: "true", muster.dev/queue: research}}
spec:
  headGroupSpec:
    rayStartParams: {}
    template: {spec: {containers: [{name: h, image: i, resources: {limits: {cpu: 1}}}]}}
"""


@pytest.fixture(scope="module")
def world() -> World:
    return shown()


@pytest.fixture
async def page(world: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ClientSession]:
    """The page of somebody who may read the whole of a world."""
    monkeypatch.setattr(Caller, "reader", property(lambda _: reader_of(world)))
    monkeypatch.setattr(asking, "moment", lambda: moment_of(world))
    async with client_of(FakeApi()) as client:
        app = application(OnLaptop(client, "team"), [], None)
        async with (
            TestServer(app, host="127.0.0.1") as server,
            ClientSession(f"http://127.0.0.1:{server.port}/api/") as session,
        ):
            yield session


async def asked(page: ClientSession, **question: Any) -> tuple[int, Any]:
    async with page.post("what-if", json=question) as answer:
        return answer.status, await answer.json()


async def test_it_says_what_the_command_says(page: ClientSession) -> None:
    status, found = await asked(page, stop=["team/train"])
    assert status == 200, found
    effects = {each["name"]: each["effect"] for each in found["effects"]}
    assert (effects["train"], effects["tune"]) == ("Ends", "StartsNow")
    assert found["changes"] == ["stop team/train"]
    (devices,) = found["devices"]
    assert devices["before"] == devices["after"] == 24


async def test_objects_are_submitted_as_yaml(page: ClientSession) -> None:
    status, found = await asked(page, yaml=JOB, namespace="team")
    assert status == 200, found
    assert {each["name"]: each["effect"] for each in found["effects"]}["small"] == "StartsNow"


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ({}, "what is to be changed? allowed: cordon"),
        ({"cordon": ["nowhere"]}, "--cordon nowhere"),
        ({"addNodes": ["many"]}, "--add-nodes many: allowed: N=NODE"),
        ({"addNodes": ["100000=gpu-0"]}, "100000 nodes; allowed: 5000"),
        ({"quota": ["research"]}, "--quota research: allowed: QUEUE:RESOURCE=AMOUNT"),
        ({"stop": ["train"], "namespace": "No Name"}, "namespace: 'No Name'; allowed"),
        ({"yaml": "kind: Pod\napiVersion: v1"}, "there is no object to judge"),
        ({"yaml": "a: ["}, "YAML: line 2"),
        ({"reboot": ["gpu-0"]}, "unknown field `reboot`"),
    ],
    ids=str,
)
async def test_a_bad_question_is_answered_with_what_is_allowed(
    page: ClientSession, question: dict[str, Any], said: str
) -> None:
    status, found = await asked(page, **question)
    assert (status, said in found["fault"]) == (400, True), found


async def test_one_is_worked_out_at_a_time(
    page: ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks meanwhile is told so at once, and gets an answer afterwards."""
    began, goes_on = asyncio.Event(), asyncio.Event()

    async def slow(*given: Any) -> Any:
        began.set()
        await goes_on.wait()
        return await read_what_if(*given)

    monkeypatch.setattr("cli.page.reading.what_if.read_what_if", slow)
    first = asyncio.create_task(asked(page, cordon=["gpu-2"]))
    await asyncio.wait_for(began.wait(), 30)
    status, found = await asked(page, cordon=["gpu-2"])
    assert (status, "under way" in found["fault"]) == (503, True)
    goes_on.set()
    assert (await first)[0] == 200
    assert (await asked(page, cordon=["gpu-2"]))[0] == 200
