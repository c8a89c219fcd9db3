"""Fixtures of the tests of the coordinator."""

import logging
from collections.abc import Iterator

import pytest
import structlog
from structlog.testing import LogCapture

from coordinator.shell import decision_log, executor


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    """Thousands of log lines say nothing that the actions do not say."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[LogCapture]:
    """What is logged from level info on, also where an earlier test configured logging for good."""
    before, capture = structlog.get_config(), LogCapture()
    wrapper = structlog.make_filtering_bound_logger(logging.INFO)
    structlog.configure(
        processors=[capture], wrapper_class=wrapper, cache_logger_on_first_use=False
    )
    for module in (executor, decision_log):
        monkeypatch.setattr(module, "log", structlog.get_logger())
    yield capture
    structlog.configure(**before)
