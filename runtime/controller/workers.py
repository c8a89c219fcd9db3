"""Carries out waiting writes, a bounded number at a time, for as long as the term lasts.

The leader's term is checked right before each write is sent: a process that was stopped for a
minute must not send what it decided before. Every outcome becomes events.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from runtime.controller.write_lanes import Writes

A = TypeVar("A")
E = TypeVar("E")
Feed: TypeAlias = Callable[[Iterable[E]], None]


class Leadership(Protocol):
    """The one question that is asked before each send."""

    def valid(self) -> bool:
        """Whether we may still write."""
        ...


class Workers(Generic[A, E]):
    """One task for each write that is under way; `carry_out` says what became of it."""

    def __init__(
        self,
        writes: Writes[Any, A],
        carry_out: Callable[[A], Awaitable[list[E]]],
        feed: Feed[E],
        term: Leadership,
        concurrency: int,
    ) -> None:
        self._writes = writes
        self._carry_out = carry_out
        self._feed = feed
        self._term = term
        self._concurrency = concurrency
        self._running: set[asyncio.Task[None]] = set()
        self._broken = asyncio.Event()
        self._error: BaseException | None = None

    def start(self) -> None:
        """Start as many of the waiting writes as may run."""
        while len(self._running) < self._concurrency and self._writes:
            task = asyncio.create_task(self._work(self._writes.pop(time.monotonic())))
            self._running.add(task)
            task.add_done_callback(self._ended)

    async def run(self) -> None:
        """Wait for ever; a bug in a write comes out here, so that it ends the process."""
        await self._broken.wait()
        assert self._error is not None
        raise self._error

    async def close(self, seconds: float = 0.0) -> bool:
        """Send no more, and let what is under way end; returns whether all that was sent is over.

        What is not answered in `seconds` is cancelled, and the next term finds out what became of
        it, as of every request of this term whose outcome is unknown.
        """
        self._writes.clear()
        left = set(self._running)
        if left and seconds > 0:
            _, left = await asyncio.wait(left, timeout=seconds)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        return not left and self._error is None

    async def _work(self, action: A) -> None:
        if self._term.valid():
            self._feed(await self._carry_out(action))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if task.cancelled():
            return
        self._error = self._error or task.exception()
        if self._error is not None:
            self._broken.set()
        self.start()
