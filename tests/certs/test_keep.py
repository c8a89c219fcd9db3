"""Certificates in the cluster are checked again, replaced where lost, and changes are logged."""

from __future__ import annotations

import asyncio

import pytest

from certs import keep as keeping
from certs.keep import keep
from certs.secret import BootstrapError

FOR_EVER = 3600.0
QUICK = 0.01


class Turns:
    """What each turn finds; the last one tells it to stop."""

    def __init__(self, *found: str | Exception) -> None:
        self._found = list(found)
        self.stop = asyncio.Event()
        self.said: list[str] = []

    async def once(self) -> str:
        found = self._found.pop(0)
        if not self._found:
            self.stop.set()
        if isinstance(found, Exception):
            raise found
        return found

    async def run(self, every: float) -> list[str]:
        async with asyncio.timeout(60):
            await keep(self.once, every, self.stop, self.said.append)
        assert not self._found
        return self.said


async def test_it_looks_again_and_says_what_is_new() -> None:
    turns = Turns("created", "kept", "kept", "created", "kept")
    assert await turns.run(QUICK) == ["created", "kept", "created", "kept"]


async def test_a_fault_is_said_once_and_is_not_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried again soon, however long the pause between two turns is otherwise."""
    monkeypatch.setattr(keeping, "RETRY", QUICK)
    fault = BootstrapError("no such configuration")
    turns = Turns(fault, fault, "created")
    assert await turns.run(FOR_EVER) == ["no such configuration", "created"]


async def test_a_bug_is_the_end() -> None:
    with pytest.raises(KeyError):
        await Turns(KeyError("bug"), "never").run(QUICK)


async def test_it_ends_at_once_when_told() -> None:
    turns, loop = Turns("created", "never"), asyncio.get_running_loop()

    def said(_: str) -> None:
        loop.call_later(QUICK, turns.stop.set)  # in the pause

    async with asyncio.timeout(60):
        await keep(turns.once, FOR_EVER, turns.stop, said)
