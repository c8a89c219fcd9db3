"""Fixtures of the tests of the extender beside the rest of Muster.

One cluster with KubeRay, Muster's webhook and the extender for all of them. The coordinator and
the scheduler are each test's own: a coordinator of other settings is started in a moment.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from testbed.components import SCHEDULER
from testbed.muster import Extender, Muster, start_extender, start_muster, with_app_wrappers
from testbed.options import Options
from testbed.pytest_plugin import FolderCluster
from testbed.waiting import wait_until
from tests.extender.plot import QUICK

StartCoordinator = Callable[..., None]


@pytest.fixture(scope="session")
def muster(folder_cluster: FolderCluster) -> Muster:
    """All but coordinator and scheduler."""
    options = Options(scheduler=False, kuberay_args=("--reconcile-concurrency=4",))
    cluster = folder_cluster(with_app_wrappers(options))
    return start_muster(cluster, coordinators=0, app_wrappers="All")


@pytest.fixture(scope="session")
def extender(muster: Muster) -> Extender:
    """The extender, which may be killed and restarted."""
    return start_extender(muster.cluster, settings={**QUICK, "APP_WRAPPERS": "true"})


@contextlib.contextmanager
def deciding(
    muster: Muster, settings: Mapping[str, str], kubeconfig: Path | None = None
) -> Iterator[None]:
    """Have a coordinator with these settings lead."""
    process = muster.start_coordinator(kubeconfig, settings)
    muster.wait_ready()
    wait_until(lambda: muster.leader() == process.name, f"{process.name} to lead")
    try:
        yield
    finally:
        process.stop()


@contextlib.contextmanager
def scheduling(muster: Muster, config: Mapping[str, Any] | None) -> Iterator[None]:
    """Have kube-scheduler run with this configuration."""
    muster.cluster.start_scheduler(config)
    try:
        yield
    finally:
        muster.cluster.process(SCHEDULER).kill()
