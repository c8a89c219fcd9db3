"""Which fixtures do the tests on the real control plane share?

One cluster with KubeRay and Muster for all of them, and for each test a plot: a namespace and nodes
of its own. At the end Muster must not have asked for anything that its manifests do not grant.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from testbed.cluster import Cluster
from testbed.errors import TestbedError
from testbed.muster import Muster, start_muster, with_muster
from testbed.options import Options
from tests.controlplane.audit import Audit
from tests.controlplane.plot import (
    DEVICE_CLASSES,
    LABEL,
    NODES,
    PRIORITY_CLASSES,
    STORAGE_CLASSES,
    VOLUMES,
    Plot,
)

_HERE = Path(__file__).parent
_NUMBERS = itertools.count(1)
_PLOT = pytest.StashKey[Plot]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test here needs the control plane."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.controlplane)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show in the report of a failure what was in the plot, and say where the logs are."""
    report = yield
    plot = item.stash.get(_PLOT, None)
    if report.failed and report.when == "call" and plot is not None:
        report.sections += [("the plot", _picture(plot)), ("logs", str(plot.cluster.logs))]
    return report


def _picture(plot: Plot) -> str:
    """The plot as kubectl shows it."""
    kinds = ("gangs,rayclusters", "pods", "events")
    with contextlib.suppress(TestbedError):
        return "\n".join(
            plot.cluster.kubectl("get", kind, "-n", plot.name, "-o", "wide") for kind in kinds
        )
    return "(nothing answers)"


@pytest.fixture(scope="session")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    """The audit log of Muster's requests."""
    return Audit(tmp_path_factory.mktemp("audit"))


@pytest.fixture(scope="session")
def muster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, audit: Audit
) -> Iterator[Muster]:
    """One cluster with Muster running, under exactly the rights that its manifests give it."""
    options = Options(
        kuberay_args=("--reconcile-concurrency=4",), apiserver_args=audit.apiserver_args
    )
    directory = tmp_path_factory.mktemp("controlplane") / "root"
    with Cluster.start(directory, with_muster(options)) as cluster:
        yield start_muster(cluster)
        assert audit.forbidden() == []
    cluster.remove_data()
    if not request.session.testsfailed:
        shutil.rmtree(directory)


@pytest.fixture
def plot(request: pytest.FixtureRequest, muster: Muster) -> Iterator[Plot]:
    """A namespace and nodes of one test's own."""
    cluster = muster.cluster
    plot = request.node.stash[_PLOT] = Plot(cluster, f"plot-{next(_NUMBERS)}")
    cluster.create_namespace(plot.name)
    yield plot
    with cluster.api.session() as session:
        session.call("DELETE", f"/api/v1/namespaces/{plot.name}")
        for kind in (NODES, PRIORITY_CLASSES, DEVICE_CLASSES, STORAGE_CLASSES, VOLUMES):
            session.call("DELETE", f"{kind}?labelSelector={LABEL}%3D{plot.name}")
