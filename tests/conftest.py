"""Fixtures and hypothesis profiles of all tests."""

import gc

from hypothesis import HealthCheck, settings

pytest_plugins = ["testbed.pytest_plugin"]

# How long an example takes says something of the machine, not of the code.
settings.register_profile("muster", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# A quarter of the examples, for quick answers.
settings.register_profile("quick", settings.get_profile("muster"), max_examples=25)
# The same examples every time, so that a change is never refused for what another one brought; all
# of them, for soundness rests on their number.
settings.register_profile("repeatable", settings.get_profile("muster"), derandomize=True)
settings.load_profile("muster")


def pytest_sessionstart() -> None:
    """Collect tests without the garbage collector: hardly any of it is garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Take the modules and items of all tests, which stay to the end, out of later collections."""
    gc.freeze()
    gc.enable()
