"""Does many writes: a bounded number at a time, at a bounded rate, and again until none is left."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
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

PATIENCE: Final = 15
"""Rounds in a row in which nothing was done, until what is left is told."""

MOST_ROUNDS: Final = 900


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


async def until_none_is_left(
    what: str,
    find: Callable[[], Awaitable[Sequence[T]]],
    do: Callable[[T], Awaitable[NotWritten | None]],
    told: Told,
    *,
    settled_at: float = 0.0,
) -> int:
    """Do what is found until nothing is, after `settled_at` (monotonic seconds) too.

    Returns how much was done. What fails again and again is told, and left.
    """
    done, idle = 0, 0
    for _ in range(MOST_ROUNDS):
        found = await find()
        if not found and time.monotonic() >= settled_at:
            return done

        def progress(count: int, all_of: int = len(found)) -> None:
            told.progress(f"{what}: {count} of {all_of}")

        failed = await do_all(found, do, progress)
        done += len(found) - len(failed)
        idle = idle + 1 if found and len(failed) == len(found) else 0
        if idle >= PATIENCE:
            told.leave(f"{len(failed)} {what}: {failed[0][1].why}")
            return done
        await asyncio.sleep(ROUND_SECONDS)
    told.leave(f"{what}: new ones come all the time")
    return done
