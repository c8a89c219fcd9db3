"""Which fixtures do the tests of the coordinator share?"""

import logging
from collections.abc import Iterator

import pytest
import structlog
from structlog.testing import LogCapture


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    """Thousands of log lines say nothing that the actions do not say."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()


@pytest.fixture
def lines() -> Iterator[LogCapture]:
    """What is logged from level info on."""
    before, capture = structlog.get_config(), LogCapture()
    wrapper = structlog.make_filtering_bound_logger(logging.INFO)
    structlog.configure(processors=[capture], wrapper_class=wrapper)
    yield capture
    structlog.configure(**before)
