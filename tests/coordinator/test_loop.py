"""How often does the loop look at what has come in?"""

import time
from collections.abc import Iterable

from coordinator.actions import Action
from coordinator.events import Event, TimePassed
from coordinator.loop import BATCH, LONGEST_REST, Loop
from coordinator.moment import Moment
from coordinator.state import CoordinatorState


class Slow(CoordinatorState):
    """A state machine whose every look takes its time."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self.batches: list[int] = []

    def handle(self, events: Iterable[Event], moment: Moment) -> list[Action]:  # noqa: ARG002
        self.batches.append(len(list(events)))
        end = time.monotonic() + self.seconds
        while time.monotonic() < end:
            pass
        return []


def rest_after(seconds: float, events: int) -> float:
    """How long the loop means to rest after a look of so many seconds."""
    loop = Loop(Slow(seconds), debounce=0.0)
    loop.feed([TimePassed()] * events)
    loop._turn()
    return loop._look_at - time.monotonic()


def test_a_long_look_is_rested_after_so_that_the_next_one_finds_more() -> None:
    assert 0.1 < rest_after(0.2, 1) < 1.0


def test_a_short_look_is_not() -> None:
    assert rest_after(0.0, 1) <= 0


def test_nothing_rests_while_there_is_a_backlog() -> None:
    assert rest_after(0.02, BATCH + 1) <= 0


async def test_the_rest_is_bounded_and_what_came_meanwhile_is_handled_together() -> None:
    state = Slow(0.0)
    loop = Loop(state, debounce=0.0)
    loop._look_at = time.monotonic() + 60.0
    loop.feed([TimePassed()] * 5)
    began = time.monotonic()
    await loop._sleep()
    assert time.monotonic() - began < LONGEST_REST + 2.0
    loop._turn()
    assert state.batches == [5]
