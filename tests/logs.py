"""What modules log, also where an earlier test of the process configured logging for good."""

import contextlib
import logging
from collections.abc import Iterator
from types import ModuleType

import pytest
import structlog
from structlog.testing import LogCapture


@contextlib.contextmanager
def captured(monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> Iterator[LogCapture]:
    """Capture what these modules log by their `log`, from level info on."""
    before, capture = structlog.get_config(), LogCapture()
    wrapper = structlog.make_filtering_bound_logger(logging.INFO)
    structlog.configure(
        processors=[capture], wrapper_class=wrapper, cache_logger_on_first_use=False
    )
    for module in modules:
        monkeypatch.setattr(module, "log", structlog.get_logger())
    yield capture
    structlog.configure(**before)
