"""An event loop whose clock jumps to the next timer: hours of waiting in no time.

It is for programs that wait for timers only; a wait for a socket that stays silent while no
timer is set has found a deadlock, and is told so.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any


class _Jumping(selectors.SelectSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        assert timeout is not None, "nothing will ever happen here"
        self.now += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop in which only the timers count."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run_virtually(program: Coroutine[Any, Any, None]) -> None:
    """Run a program in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(program)
