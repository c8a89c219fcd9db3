"""Ends what a time limit cannot interrupt: a test that goes on after its own, and the whole run.

pytest-timeout raises one error in the test. A test that catches it, or that waits again as it ends,
would hang for ever. Here a thread of the interpreter writes where every thread is, and ends the
process, which fails the run.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import time
from collections.abc import Generator

import pytest

_GRACE = "timeout_grace"
_RUN = "run_timeout"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take both limits from the configuration."""
    grace = "seconds that a test may take beyond its time limit, before its process is ended"
    parser.addini(_GRACE, grace, default="300")
    parser.addini(_RUN, "seconds that the run may take; 0 is no limit", default="0")


def pytest_configure(config: pytest.Config) -> None:
    """Limit this process; a run is limited where it began, and its workers end with it."""
    run = 0.0 if hasattr(config, "workerinput") else float(config.getini(_RUN))
    config.pluginmanager.register(Limits(run or float("inf")), "limits")


class Limits:
    """Ends this process when a test or the run has had all its time."""

    def __init__(self, run_seconds: float) -> None:
        self._end = time.monotonic() + run_seconds
        self._output = os.dup(sys.__stderr__.fileno() if sys.__stderr__ else 2)
        self._limit(float("inf"))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Limit a test with all its fixtures."""
        self._limit(_allowed(item))
        try:
            result = yield
        except BaseException:  # the run ends, and so do fixtures, which can hang
            self._limit(_allowed(item))
            raise
        self._limit(float("inf"))
        return result

    @pytest.hookimpl(trylast=True)
    def pytest_exception_interact(self, node: pytest.Item | pytest.Collector) -> None:
        """Limit a failed test again: pytest lifts the limit, and a fixture can hang yet."""
        if isinstance(node, pytest.Item):
            self._limit(_allowed(node))

    def pytest_unconfigure(self) -> None:
        """Let the process end in its own time."""
        faulthandler.cancel_dump_traceback_later()
        os.close(self._output)

    def _limit(self, seconds: float) -> None:
        faulthandler.cancel_dump_traceback_later()
        seconds = min(seconds, self._end - time.monotonic())
        if seconds < float("inf"):
            faulthandler.dump_traceback_later(max(seconds, 1e-3), file=self._output, exit=True)


def _allowed(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    usual = item.config.getini("timeout") or "inf"
    return float(marker.args[0] if marker else usual) + float(item.config.getini(_GRACE))
