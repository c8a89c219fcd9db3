"""Calls the state machine with what happened, and submits its actions."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from wrapper.messages import Action, Event, Moment, TermEnded, TermStarted, TimePassed
from wrapper.state_machine import WrapperState

Submit = Callable[[Iterable[Action]], None]

BATCH = 500
"""Events handled before others get the event loop."""

REST = 0.02
"""Seconds between two looks: changes come in bursts."""

LONGEST_REST = 1.0


class Loop:
    """Feeds one state machine; its actions go to whatever acts in the term."""

    def __init__(self, state: WrapperState) -> None:
        self.state = state
        self.last_step = time.monotonic()
        self._inbox: deque[Event] = deque()
        self._wake = asyncio.Event()
        self._submit: Submit | None = None

    def feed(self, events: Iterable[Event]) -> None:
        """Queue events; they are handled in the order in which they were fed."""
        self._inbox.extend(events)
        self._wake.set()

    def appoint(self, submit: Submit) -> None:
        """Begin a term."""
        self._submit = submit
        self.feed([TermStarted()])

    def dismiss(self) -> None:
        """End the term; what is decided from now on is carried out by none."""
        self._submit = None
        self.feed([TermEnded()])

    async def run(self) -> None:
        """Handle events until cancelled; an exception of the state machine is a bug and ends it."""
        while True:
            await self._sleep()
            self._wake.clear()
            self._step()
            await asyncio.sleep(REST)

    def _step(self) -> None:
        self.last_step = now = time.monotonic()
        events: list[Event] = []
        while self._inbox and len(events) < BATCH:
            events.append(self._inbox.popleft())
        if self.state.next_wake is not None and self.state.next_wake <= now:
            events.append(TimePassed())
        actions = self.state.handle(events, moment(now))
        if self._submit is not None:
            self._submit(actions)
        if self._inbox:
            self._wake.set()

    async def _sleep(self) -> None:
        at = self.state.next_wake
        delay = LONGEST_REST if at is None else min(at - time.monotonic(), LONGEST_REST)
        if delay <= 0 or self._wake.is_set():
            return
        try:
            async with asyncio.timeout(delay):
                await self._wake.wait()
        except TimeoutError:
            pass


def moment(now: float) -> Moment:
    """Return what time it is, `now` monotonic seconds."""
    wall = time.time()
    return Moment(now, wall, datetime.fromtimestamp(wall, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
