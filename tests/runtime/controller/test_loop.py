"""The loop handles events in batches, and no more often than its debounce allows."""

import asyncio
from collections.abc import Iterable

import pytest

from runtime.controller import loop as controller_loop
from runtime.controller.loop import BATCH, Loop, moment
from runtime.controller.moment import Moment

TIME = "time passed"


class Clock:
    """The loop's clock; it stands still but for the looks."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(controller_loop, "time", found)
    return found


class Slow:
    """A state machine whose every look takes its time, and asks for what it was told."""

    next_wake: float | None = None

    def __init__(self, clock: Clock, seconds: float) -> None:
        self.clock = clock
        self.seconds = seconds
        self.batches: list[int] = []

    def handle(self, events: Iterable[str], moment: Moment) -> list[str]:  # noqa: ARG002
        told = list(events)
        self.batches.append(len(told))
        self.clock.now += self.seconds
        return told


def rest_after(clock: Clock, seconds: float, events: int, debounce: float = 0.0) -> float:
    """How long the loop means to rest after a look of so many seconds."""
    loop = Loop(Slow(clock, seconds), debounce, TIME)
    loop.feed([TIME] * events)
    loop._step()
    return loop._look_at - clock.now


def test_a_long_look_is_rested_after_so_that_the_next_one_finds_more(clock: Clock) -> None:
    assert rest_after(clock, 0.2, 1) == pytest.approx(0.2)


def test_a_short_look_is_rested_after_for_the_debounce(clock: Clock) -> None:
    assert rest_after(clock, 0.001, 1, debounce=0.01) == pytest.approx(0.01)
    assert rest_after(clock, 0.0, 1, debounce=0.0) <= 0


def test_nothing_rests_while_there_is_a_backlog(clock: Clock) -> None:
    assert rest_after(clock, 0.02, BATCH + 1, debounce=0.01) <= 0


async def test_the_rest_is_bounded_and_what_came_meanwhile_is_handled_together(
    clock: Clock,
) -> None:
    state = Slow(clock, 0.0)
    loop = Loop(state, 0.0, TIME)
    loop._look_at = clock.now + 600.0
    loop.feed([TIME] * 5)
    async with asyncio.timeout(60.0):
        await loop._sleep()
    loop._step()
    assert state.batches == [5]


def test_time_is_an_event_once_its_moment_has_come(clock: Clock) -> None:
    state = Slow(clock, 0.0)
    loop = Loop(state, 0.0, TIME)
    state.next_wake = clock.now + 1.0
    loop._step()
    assert state.batches == []
    clock.now += 1.0
    loop._step()
    assert state.batches == [1]


def test_what_was_decided_in_one_term_is_never_carried_out_in_another(clock: Clock) -> None:
    """The end of the first and the start of the second wait behind a backlog."""
    loop, first, second = Loop(Slow(clock, 0.0), 0.0, TIME), list[str](), list[str]()
    loop.appoint("start 1", first.extend)
    loop._step()
    loop.feed(["news"] * BATCH)
    loop.dismiss("end 1")
    loop.appoint("start 2", second.extend)
    loop._step()
    assert (first, second) == (["start 1"], [])
    loop._step()
    assert second == ["end 1", "start 2"]


def test_a_moment_tells_the_second_and_the_fraction(clock: Clock) -> None:
    clock.now = 1_700_000_000.75
    assert moment(5.0) == Moment(5.0, "2023-11-14T22:13:20Z", clock.now)
    clock.now += 0.25
    assert moment(5.0).stamp == "2023-11-14T22:13:21Z"
