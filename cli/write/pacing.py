"""Does many writes at a bounded rate and concurrency, again until none is left."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from cli.removal.told import Told
from cli.write.writer import NotWritten

T = TypeVar("T")

CONCURRENCY: Final = 16
"""Requests under way at once, as many as the coordinator has."""

PER_SECOND: Final = 500
"""Writes a second: 20,000 gates take 40 s, and the API server has time for others."""

ROUND_SECONDS: Final = 1.0
"""Between two rounds: what was refused by a rule that is just gone is taken by the next."""

PATIENCE: Final = 60.0
"""Seconds without progress until the rest is reported, and left."""


async def do_all(
    found: Sequence[T],
    do: Callable[[T], Awaitable[NotWritten | None]],
    progress: Callable[[int], None] = lambda _: None,
) -> list[tuple[T, NotWritten]]:
    """Do all writes; return those that failed, each with why."""
    free = asyncio.Semaphore(CONCURRENCY)

    async def one(each: T) -> tuple[T, NotWritten | None]:
        async with free:
            return each, await do(each)

    failed: list[tuple[T, NotWritten]] = []
    for begin in range(0, len(found), PER_SECOND):
        started = time.monotonic()
        batch = found[begin : begin + PER_SECOND]
        ended = await asyncio.gather(*(one(each) for each in batch))
        failed += [(each, fault) for each, fault in ended if fault is not None]
        progress(begin + len(batch))
        if begin + PER_SECOND < len(found):
            await asyncio.sleep(max(0.0, started + 1.0 - time.monotonic()))
    return failed


@dataclass(slots=True)
class _Progress:
    """The least that was left so far, and since when."""

    least: float
    since: float

    def is_stuck(self, left: int, now: float) -> bool:
        """Take in how much is left; says whether that has not been less for too long."""
        if not left:
            self.least, self.since = math.inf, now
        elif left < self.least:
            self.least, self.since = left, now
        return now - self.since >= PATIENCE


async def until_none_is_left(
    what: str,
    find: Callable[[], Awaitable[Sequence[T]]],
    do: Callable[[T], Awaitable[NotWritten | None]],
    told: Told,
    *,
    settled_at: float = 0.0,
) -> int:
    """Do what is found until nothing is, after `settled_at` (monotonic seconds) too.

    Returns how much was done. A rest that does not shrink for PATIENCE seconds is reported, and
    left: writes that fail again and again must not hold up the next step.
    """
    done, failed = 0, list[tuple[T, NotWritten]]()
    progress = _Progress(math.inf, time.monotonic())
    while True:
        found, now = await find(), time.monotonic()
        if not found and now >= settled_at:
            return done
        if progress.is_stuck(len(found), now):
            why = failed[0][1].why if failed else "new ones come all the time"
            told.leave(f"{len(found)} {what}: {why}")
            return done

        def show(count: int, all_of: int = len(found)) -> None:
            told.progress(f"{what}: {count} of {all_of}")

        failed = await do_all(found, do, show)
        done += len(found) - len(failed)
        await asyncio.sleep(ROUND_SECONDS)
