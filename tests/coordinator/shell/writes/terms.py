"""Terms and writes of an executor, for the tests beside it."""

import asyncio
from typing import Any

import msgspec

from coordinator.messages.actions import (
    EmitEvent,
)
from kube.objects import core as core_objects
from kube.objects import names
from scheduling.model.gang import GangKey

GANG = GangKey("team", "a")
POD = msgspec.convert(
    {
        "metadata": {"name": "one", "namespace": "team", "uid": "one", "resourceVersion": "1"},
        "spec": {"schedulingGates": [{"name": names.GATE}], "containers": []},
    },
    core_objects.Pod,
)
EVENT = EmitEvent(GANG, "uid", True, "Misconfigured", "bad")


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


class Recording:
    """A client that notes what is written, in order."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    async def create(self, _: str, body: dict[str, Any]) -> bytes:
        self.sent.append(f"{body['involvedObject']['kind']}: {body['message']}")
        return b""

    async def delete(self, path: str, **_: Any) -> bytes:
        self.sent.append(path.rpartition("/")[2])
        return b""

    async def json_patch(self, path: str, *_: Any, **__: Any) -> Any:
        self.sent.append(path.partition("/gangqueues/")[2])
        return b""
