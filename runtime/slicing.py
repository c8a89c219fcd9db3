"""Keeps long work from holding up the event loop: slices, and a heap that the collector skips."""

import asyncio
import gc
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

D = TypeVar("D")

SLICE = 0.002
"""Seconds of a list that are read without a pause: so long it may keep a call from being answered
in the same event loop, where 50,000 objects take a second."""

ITERATIONS = 6
"""Iterations of the event loop between two slices: a call takes a few from its first byte to the
last of its answer, and would have to wait for a slice in each."""


async def in_slices(one: Callable[[], bool]) -> None:
    """Work until nothing is left; a server that is faster than we are must not keep the loop."""
    while one():
        for _ in range(ITERATIONS):
            await asyncio.sleep(0)
    await asyncio.sleep(0)


def one_slice(items: Iterator[D], take: Callable[[D], None]) -> bool:
    """Take items in for a slice of time; False when none is left."""
    ends = time.perf_counter() + SLICE
    for item in items:
        take(item)
        if time.perf_counter() > ends:
            return True
    return False


def settle_heap() -> None:
    """Tell the collector that what exists now stays. Call it once, after the first sync.

    A full collection with 5,000 pods takes 50 ms and finds nothing; frozen objects cost it 0.
    """
    gc.collect()
    gc.freeze()
