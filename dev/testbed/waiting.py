"""Waits for conditions, never for a time that ought to be enough."""

from __future__ import annotations

import time
from collections.abc import Callable
from http.client import HTTPException
from typing import TypeVar

from testbed.errors import TestbedError

POLL_SECONDS = 0.03
# A question costs both sides milliseconds, so what takes long is asked of less often: an answer is
# late by a twentieth of the wait, and by 0.15 s at most.
_LATE = 0.05
_MOST_POLL_SECONDS = 0.15
# For what takes seconds on an idle machine and many times that on a crowded one.
WAIT_SECONDS = 120.0

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T | None],
    what: str,
    seconds: float = WAIT_SECONDS,
    every: float = POLL_SECONDS,
    seen: Callable[[], object] | None = None,
) -> T:
    """Ask until the answer is true, and return it.

    When it never is, say what was waited for, and what there is instead: `seen` is asked for that.
    """
    begin = time.monotonic()
    while True:
        answer = condition()
        if answer:
            return answer
        waited = time.monotonic() - begin
        if waited > seconds:
            raise TestbedError(f"waited {seconds:.0f} s in vain for {what}{_instead(seen)}")
        time.sleep(max(every, min(waited * _LATE, _MOST_POLL_SECONDS)))


def _instead(seen: Callable[[], object] | None) -> str:
    if seen is None:
        return ""
    try:
        return f"; instead there is:\n{seen()}"
    except (TestbedError, OSError, HTTPException) as error:
        return f"; what there is cannot be asked: {error}"
