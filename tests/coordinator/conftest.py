"""Fixtures of the tests of the coordinator."""

import logging
from collections.abc import Iterator

import pytest
import structlog
from structlog.testing import LogCapture

from coordinator.shell import decision_log
from coordinator.shell.writes import (
    event_writes,
    gang_writes,
    node_request_writes,
    pod_writes,
    queue_writes,
    ray_writes,
)
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
    writers = gang_writes, pod_writes, ray_writes, queue_writes, node_request_writes, event_writes
    with captured(monkeypatch, *writers, decision_log) as capture:
        yield capture
