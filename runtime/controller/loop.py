"""Feeds a state machine with events, and submits its actions.

One task owns the state: it takes the events since its last look, hands them to the state machine,
and gives the actions to the executor of the term. It decides nothing. After each look it rests for
the debounce, or for as long as the look took if that is longer, so that single events are handled
in batches.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Generic, Protocol, TypeAlias, TypeVar

from runtime.controller.inbox import Inbox
from runtime.controller.moment import Moment

E = TypeVar("E")
E_contra = TypeVar("E_contra", contravariant=True)
A = TypeVar("A")
Submit: TypeAlias = Callable[[Iterable[A]], None]

BATCH = 2_000
"""Events handled before others get the event loop: some tens of milliseconds."""

LONGEST_REST = 0.25
BEAT = 1.0
"""Seconds from one step to the next where nothing happens: a loop that takes none is dead."""


class StateMachine(Protocol[E_contra, A]):
    """What is known, and decides what is to be done."""

    @property
    def next_wake(self) -> float | None:
        """When time itself is an event: monotonic seconds, None for never."""

    def handle(self, events: Iterable[E_contra], moment: Moment) -> list[A]:
        """Take in what happened, and return what is to be done."""


class Loop(Generic[E, A]):
    """Feeds one state machine, and hands its actions to whoever acts in the term they are of."""

    def __init__(self, state: StateMachine[E, A], debounce: float, time_passed: E) -> None:
        self.state = state
        self.last_step = time.monotonic()
        self._debounce = debounce
        self._time_passed = time_passed
        self._inbox = Inbox[E]()
        self._wake = asyncio.Event()
        self._look_at = 0.0
        self._submit: Submit[A] | None = None
        self._appointed: tuple[E, Submit[A]] | None = None

    def feed(self, events: Iterable[E]) -> None:
        """Queue events; they are handled in the order in which they were fed."""
        self._inbox.put(events, time.monotonic())
        self._wake.set()

    def appoint(self, start: E, submit: Submit[A]) -> None:
        """Begin a term: `submit` takes the actions that are decided from its start on."""
        self._appointed = start, submit
        self.feed([start])

    def dismiss(self, end: E) -> None:
        """End the term; what is decided from now on is carried out by none."""
        self._submit = self._appointed = None
        self.feed([end])

    async def run(self) -> None:
        """Handle events until cancelled; an exception of the state machine is a bug and ends it."""
        while True:
            await self._sleep()
            self._wake.clear()
            self._step()
            await asyncio.sleep(0)

    def _step(self) -> None:
        self.last_step = now = time.monotonic()
        events = self._inbox.take(BATCH)
        self._begin_term(events)
        if self.state.next_wake is not None and self.state.next_wake <= now:
            events.append(self._time_passed)
        self._look(events, now)
        if self._inbox:
            self._wake.set()

    def _begin_term(self, events: Iterable[E]) -> None:
        """What was decided in one term is never carried out in another."""
        if self._appointed is not None and any(each is self._appointed[0] for each in events):
            self._submit, self._appointed = self._appointed[1], None

    def _look(self, events: list[E], now: float) -> None:
        if events:
            self._act(self._handle(events, now))
            self._plan_look(now)

    def _handle(self, events: list[E], now: float) -> list[A]:
        """Call the state machine; the one place where it is called."""
        return self.state.handle(events, moment(now))

    def _act(self, actions: list[A]) -> None:
        if self._submit is not None:
            self._submit(actions)

    def _plan_look(self, began: float) -> None:
        """Rest after a look, but never while there is a backlog."""
        took = time.monotonic() - began
        self._look_at = began + took + max(took, self._debounce) if not self._inbox else 0.0

    @property
    def _next_look(self) -> float | None:
        """When a look is due that no event wakes."""
        return self.state.next_wake

    async def _sleep(self) -> None:
        rest = self._look_at - time.monotonic()
        if rest > 0:
            await asyncio.sleep(min(rest, LONGEST_REST))
        at = self._next_look
        delay = BEAT if at is None else min(at - time.monotonic(), BEAT)
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
    return Moment(now, _stamp(int(wall)), wall)


@lru_cache(maxsize=1)
def _stamp(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
