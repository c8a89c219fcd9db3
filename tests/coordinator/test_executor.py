"""Does the executor ask its term before each send, and not only when it was given the action?"""

import asyncio
from typing import Any, cast

import pytest

from coordinator.actions import DeletePod, ReleasePod
from coordinator.events import Event, PodPatchEnded
from coordinator.executor import Executor
from kube import names
from kube.client import Client
from kube.errors import Timeout
from kube.objects import ObjectMeta, Pod, PodSpec, SchedulingGate
from scheduling.model import GangKey

GANG = GangKey("team", "a")


class Term:
    """Ours until it is ended."""

    def __init__(self) -> None:
        self.ours = True

    def valid(self) -> bool:
        return self.ours


class Slow:
    """A client whose deletes are answered when the test says so."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.answer = asyncio.Event()

    async def delete(self, path: str, **_: Any) -> bytes:
        self.sent.append(path.rpartition("/")[2])
        await self.answer.wait()
        return b""


async def turns() -> None:
    """Let everything that can go on go on."""
    for _ in range(20):
        await asyncio.sleep(0)


async def test_what_waits_for_its_turn_is_not_sent_when_the_term_has_ended() -> None:
    """A process that was stopped for a minute wakes up with a full queue and no term."""
    term, client, heard = Term(), Slow(), list[Event]()
    executor = Executor(cast(Client, client), term, heard.extend, identity="test", concurrency=1)
    executor.submit(DeletePod(GANG, "team", name, name, "1") for name in ("one", "two"))
    await turns()
    term.ours = False
    client.answer.set()
    await turns()
    assert client.sent == ["one"]
    assert heard == [PodPatchEnded(GANG, "one", None)]


def sending_one(client: object) -> Executor:
    """An executor with one delete under way."""
    executor = Executor(
        cast(Client, client), Term(), lambda _: None, identity="test", concurrency=2
    )
    executor.submit([DeletePod(GANG, "team", "one", "one", "1")])
    return executor


async def test_a_term_whose_requests_are_all_answered_says_so() -> None:
    client = Slow()
    executor = sending_one(client)
    await turns()
    client.answer.set()
    assert await executor.close(60)


async def test_a_term_with_a_request_under_way_does_not_say_that_all_are_over() -> None:
    executor = sending_one(Slow())
    await turns()
    assert not await executor.close(0.01)


class Lost:
    """A client whose every request is lost after it was sent."""

    async def json_patch(self, *_: str, **__: Any) -> Pod:
        raise Timeout("no answer")

    async def get(self, *_: str, **__: Any) -> Pod:
        raise Timeout("no answer")


async def test_a_term_with_a_patch_of_unknown_outcome_does_not_say_that_all_are_over() -> None:
    """It may lie in a proxy, and arrive in the next term."""
    executor = Executor(
        cast(Client, Lost()), Term(), lambda _: None, identity="test", concurrency=1
    )
    gated = PodSpec(scheduling_gates=(SchedulingGate(names.GATE),))
    executor.submit([ReleasePod(GANG, Pod(ObjectMeta("w", "team"), gated), "n1")])
    await turns()
    assert not await executor.close(60)


class Broken:
    """A client with a bug."""

    async def delete(self, *_: str, **__: Any) -> bytes:
        raise ZeroDivisionError


async def test_a_bug_in_an_action_comes_out_of_the_executor() -> None:
    """Else the pod would count as under way for the rest of the term, and nobody would know."""
    executor = Executor(
        cast(Client, Broken()), Term(), lambda _: None, identity="test", concurrency=1
    )
    executor.submit([DeletePod(GANG, "team", "one", "one", "1")])
    with pytest.raises(ZeroDivisionError):
        async with asyncio.timeout(5):
            await executor.run()
