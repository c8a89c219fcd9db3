"""Hypothesis profiles, the order and the workers of all tests."""

import gc
import os

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

pytest_plugins = ["testbed.pytest_plugin", "tests.limit_plugin", "tests.rights_plugin"]

# Programs of the control plane collect their garbage less often: a fifth of the CPU of their start,
# for 400 MB more of each API server.
os.environ.setdefault("GOGC", "400")

# The tests of each of these folders share one cluster, which takes 10 s of CPU to start and a
# twentieth of a core to keep, so one worker has them all; two have those that take longest, each
# with a cluster of its own. These files there start clusters of their own.
_SHARING = (
    "tests/controlplane/app_wrappers/",
    "tests/controlplane/",
    "tests/extender/by_hand/",
    "tests/extender/with_muster/",
    "tests/faults/",
    "tests/testbed/running/",
)
_TWICE = "tests/controlplane/"
_SECOND = "tests/controlplane/test_m"
"""Where the second half of that folder begins, in the order of names."""
_APART = (
    "tests/controlplane/test_documents.py",
    "tests/controlplane/test_nomination_facts.py",
    "tests/controlplane/test_nominations.py",
    "tests/controlplane/test_profiles.py",
    "tests/controlplane/test_real_jobs.py",
    "tests/controlplane/test_removal.py",
    "tests/faults/test_ledger.py",
    "tests/faults/test_proxy.py",
)

# How long an example takes says something of the machine, not of the code.
settings.register_profile("muster", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# A few examples, for quick answers.
settings.register_profile("quick", settings.get_profile("muster"), max_examples=10)
# The same examples every time, so that a change is never refused for what another one brought.
# An eighth of them, for what is tried again each time finds little more by number: all of them, new
# ones too, are for `make test-long`.
settings.register_profile(
    "repeatable", settings.get_profile("muster"), derandomize=True, max_examples=12
)
settings.load_profile("muster")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Leave variants to `make test-long` and to `make test-versions`."""
    if item.get_closest_marker("variant") is not None:
        item.add_marker("long")


def pytest_sessionstart() -> None:
    """Collect tests without the garbage collector: hardly any of it is garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Take the modules and items of all tests, which stay to the end, out of later collections."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what shares a cluster, then with what needs one: it is waited for longest."""
    items.sort(key=lambda item: (_shared(item.nodeid) == "", not _needs_cluster(item)))


def _needs_cluster(item: pytest.Item) -> bool:
    return item.get_closest_marker("controlplane") is not None


def _shared(nodeid: str) -> str:
    """What names the cluster that a test shares, by folder; empty where it shares none."""
    if nodeid.startswith(_APART):
        return ""
    found = next((folder for folder in _SHARING if nodeid.startswith(folder)), "")
    return f"{found}second" if found == _TWICE and nodeid >= _SECOND else found


class _BySharedCluster(LoadFileScheduling):  # type: ignore[misc]
    """A worker gets a file at a time, or all files that share a cluster."""

    def _split_scope(self, nodeid: str) -> str:
        return _shared(nodeid) or super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """Where files are kept together, keep those together too that share a cluster."""
    return _BySharedCluster(config, log) if config.getoption("dist") == "loadfile" else None
