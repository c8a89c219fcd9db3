"""Long work on the event loop is divided into slices, in `runtime/slicing.py` alone."""

import asyncio
import time
from collections.abc import Generator
from unittest import mock

from runtime.slicing import SLICE, in_slices, one_slice, result_in_slices
from tests.packaging.tree import ROOT, files, programs

ONE_PASS_EACH = {"runtime/slicing.py", "runtime/controller/loop.py"}
"""The coordinator's loop yields once for each batch of events."""


def steps(number: int) -> Generator[None, None, int]:
    """Work of this many steps, each as long as a slice."""
    for _ in range(number):
        time.sleep(SLICE)
        yield
    return number


async def passes_while(work: Generator[None, None, int]) -> tuple[int, int]:
    """The result, and how often another task came to run meanwhile."""
    passed = 0

    async def other() -> None:
        nonlocal passed
        while True:
            passed += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    result = await result_in_slices(work)
    task.cancel()
    return result, passed


async def test_others_run_between_slices() -> None:
    result, passed = await passes_while(steps(5))
    assert result == 5
    assert passed >= 5


async def test_short_work_is_one_slice() -> None:
    with mock.patch("time.perf_counter", return_value=0.0):
        result, passed = await passes_while(steps(3))
    assert (result, passed) == (3, 0)


async def test_work_of_no_step_has_its_result() -> None:
    assert await result_in_slices(steps(0)) == 0


async def test_a_list_is_taken_whole_and_in_order() -> None:
    taken: list[int] = []
    items = iter(range(5))

    def slow(item: int) -> None:
        time.sleep(SLICE)
        taken.append(item)

    await in_slices(lambda: one_slice(items, slow))
    assert taken == [0, 1, 2, 3, 4]


def test_no_other_module_makes_slices_by_hand() -> None:
    there = {
        path.relative_to(ROOT).as_posix()
        for program in programs()
        for path in files(ROOT / program)
        if path.suffix == ".py" and "asyncio.sleep(0)" in path.read_text(encoding="utf-8")
    }
    assert there == ONE_PASS_EACH
