"""Fixtures of the tests of the coordinator."""

import logging
from collections.abc import Iterator

import pytest
import structlog
from structlog.testing import LogCapture

from coordinator.shell import decision_log, executor
from tests.logs import captured


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    """Thousands of log lines say nothing that the actions do not say."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[LogCapture]:
    """What is logged from level info on."""
    with captured(monkeypatch, executor, decision_log) as capture:
        yield capture
