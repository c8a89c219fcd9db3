"""Does the executor ask its term before each send, and not only when it was given the action?"""

import asyncio
from typing import Any, cast

import pytest

from coordinator.actions import DeletePod
from coordinator.events import Event, PodPatchEnded
from coordinator.executor import Executor
from kube.client import Client
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
