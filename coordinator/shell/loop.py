"""Calls the state machine with what happened, and submits its actions.

One task owns the state: it takes what has come in since it last looked, hands it over, and gives
the actions to the executor. It decides nothing. After each look it rests for the debounce, or for
as long as the look took if that is longer, so that what comes in one by one (the ends of a large
gang's releases, each of which concerns all of its pods) is handled by the batch. A cycle follows
the first reason for one by the debounce, or by twice the time that the last cycle took if that is
longer, so that deciding never takes more than a third of the time.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import lru_cache

from coordinator.messages.actions import Action
from coordinator.messages.clock import Moment
from coordinator.messages.events import CycleDue, Event, TermEnded, TermStarted, TimePassed
from coordinator.metrics import CYCLE_SECONDS, EVENT_LAG, INBOX
from coordinator.replay.recorder import Recorder
from coordinator.shell.inbox import Inbox
from coordinator.shell.laps import Laps
from coordinator.state_machine import CoordinatorState

Submit = Callable[[Iterable[Action]], None]

LONGEST_REST = 0.25
SUBMIT = "submit"  # the part of a cycle in which its actions are handed over
BATCH = 2_000  # events handled before others get the event loop: some tens of milliseconds


class Loop:
    """Feeds one state machine, and hands its actions to whoever acts in the term they are of."""

    def __init__(
        self, state: CoordinatorState, debounce: float, recorder: Recorder | None = None
    ) -> None:
        self.state = state
        self._recorder = recorder
        self.last_step = time.monotonic()
        self._actor: tuple[int, Submit] | None = None
        self._debounce = debounce
        self._inbox = Inbox()
        self._laps = Laps()
        state.lap = self._laps.lap
        self._wake = asyncio.Event()
        self._cycle_at: float | None = None
        self._cycle_took = 0.0
        self._look_at = 0.0

    def feed(self, events: Iterable[Event]) -> None:
        """Queue events; they are handled in the order in which they were fed."""
        self._inbox.put(events, time.monotonic())
        self._wake.set()

    def appoint(self, start: TermStarted, submit: Submit) -> None:
        """Begin a term: from now on `submit` takes the actions that are decided in it."""
        self._actor = (start.epoch, submit)
        self.feed([start])

    def dismiss(self) -> None:
        """End the term."""
        self._actor = None
        self.feed([TermEnded()])

    async def run(self) -> None:
        """Handle events until cancelled; an exception of the state machine is a bug and ends it."""
        while True:
            await self._sleep()
            self._wake.clear()
            self._step()
            await asyncio.sleep(0)

    def _step(self) -> None:
        self.last_step = now = time.monotonic()
        if self._inbox.oldest is not None:
            EVENT_LAG.observe(now - self._inbox.oldest)
        events = self._inbox.take(BATCH)
        INBOX.set(len(self._inbox))
        if self.state.next_wake is not None and self.state.next_wake <= now:
            events.append(TimePassed())
        if self._cycle_at is not None and self._cycle_at <= now and not self._inbox:
            self._cycle(events, now)
        elif events:
            self._act(self._handle(events, now))
            self._plan_look(now)
        self._plan_cycle()
        if self._inbox:
            self._wake.set()

    def _handle(self, events: list[Event], now: float) -> list[Action]:
        """Call the state machine; the one place where it is called, and so where it is recorded."""
        moment, recorder = _moment(now), self._recorder
        if recorder is None:
            return self.state.handle(events, moment)
        try:
            actions = self.state.handle(events, moment)
        except Exception as error:
            recorder.failed(moment, events, error)
            raise
        recorder.step(moment, events, actions)
        return actions

    def _plan_look(self, began: float) -> None:
        """Rest after a look, but never while there is a backlog."""
        took = time.monotonic() - began
        self._look_at = began + took + max(took, self._debounce) if not self._inbox else 0.0

    def _act(self, actions: list[Action]) -> None:
        """What was decided in one term is never carried out in another."""
        if self._actor is not None and self._actor[0] == self.state.term.epoch:
            self._actor[1](actions)

    def _cycle(self, events: list[Event], now: float) -> None:
        self._cycle_at = None
        self._laps.begin()
        self._act(self._handle([*events, CycleDue()], now))
        self._laps.lap(SUBMIT)
        self._cycle_took = time.monotonic() - now
        CYCLE_SECONDS.observe(self._cycle_took)
        self._laps.tell()

    def _plan_cycle(self) -> None:
        if self.state.cycle_wanted and self._cycle_at is None:
            self._cycle_at = time.monotonic() + max(self._debounce, 2 * self._cycle_took)

    async def _sleep(self) -> None:
        rest = self._look_at - time.monotonic()
        if rest > 0:
            await asyncio.sleep(min(rest, LONGEST_REST))
        moments = [at for at in (self._cycle_at, self.state.next_wake) if at is not None]
        delay = min(moments) - time.monotonic() if moments else 1.0  # 1 s: the liveness beat
        if delay <= 0 or self._wake.is_set():
            return
        try:
            async with asyncio.timeout(min(delay, 1.0)):
                await self._wake.wait()
        except TimeoutError:
            pass


def _moment(now: float) -> Moment:
    wall = time.time()
    return Moment(now, _stamp(int(wall)), wall)


@lru_cache(maxsize=1)
def _stamp(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
