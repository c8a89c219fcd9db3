"""How does the testbed wait: for what is true, never for a time that ought to be enough?"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from testbed.errors import TestbedError

POLL_SECONDS = 0.03
# For what takes seconds on an idle machine and many times that on a crowded one.
START_SECONDS = 120.0

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T], what: str, seconds: float = 30.0, every: float = POLL_SECONDS
) -> T:
    """Ask until the answer is true, and return it; say what was waited for when it never is."""
    deadline = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise TestbedError(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(every)
