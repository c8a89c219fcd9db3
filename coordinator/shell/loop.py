"""Runs cycles between the looks of the loop, records its steps, and times them.

A cycle follows the first reason for one by the debounce, or by twice the time that the last cycle
took if that is longer, so that deciding never takes more than a third of the time.
"""

import time
from collections.abc import Callable

from coordinator.messages.actions import Action
from coordinator.messages.events import CycleDue, Event, TimePassed
from coordinator.metrics import CYCLE_SECONDS, EVENT_LAG, INBOX
from coordinator.replay.recorder import Recorder
from coordinator.shell.laps import Laps
from coordinator.state_machine import CoordinatorState
from runtime.controller import loop
from scheduling.model.gang import GangKey

SUBMIT = "submit"  # the part of a cycle in which its actions are handed over


class Loop(loop.Loop[Event, Action]):
    """The loop of the coordinator; where there is a recorder it is told of each step.

    `on_claiming` is told of gangs without pods that are to claim devices.
    """

    state: CoordinatorState

    def __init__(
        self,
        state: CoordinatorState,
        debounce: float,
        recorder: Recorder | None = None,
        on_claiming: Callable[[GangKey], None] = lambda _: None,
    ) -> None:
        super().__init__(state, debounce, TimePassed())
        self._recorder = recorder
        self._on_claiming = on_claiming
        self._laps = Laps()
        state.known.lap = self._laps.lap
        self._cycle_at: float | None = None
        self._cycle_took = 0.0

    def _step(self) -> None:
        if self._inbox.oldest is not None:
            EVENT_LAG.observe(time.monotonic() - self._inbox.oldest)
        super()._step()

    def _look(self, events: list[Event], now: float) -> None:
        INBOX.set(len(self._inbox))
        if self._cycle_at is not None and self._cycle_at <= now and not self._inbox:
            self._cycle(events, now)
        else:
            super()._look(events, now)
        for key in self.state.known.cache.foreseen.claiming:
            self._on_claiming(key)
            break
        self._plan_cycle()

    def _handle(self, events: list[Event], now: float) -> list[Action]:
        moment, recorder = loop.moment(now), self._recorder
        if recorder is None:
            return self.state.handle(events, moment)
        try:
            actions = self.state.handle(events, moment)
        except Exception as error:
            recorder.failed(moment, events, error)
            raise
        recorder.step(moment, events, actions)
        return actions

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

    @property
    def _next_look(self) -> float | None:
        moments = (self._cycle_at, self.state.next_wake)
        return min((at for at in moments if at is not None), default=None)
