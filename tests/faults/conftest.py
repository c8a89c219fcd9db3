"""Which fixtures do the fault tests share?

One cluster with KubeRay and Muster's webhook for all of them. For each test a plot (a namespace
and nodes of its own), a chronicle of what happens there, and a crew of coordinators that ends with
the test.
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
from tests.controlplane.plot import LABEL, NODES, Plot
from tests.faults.chronicle import Chronicle
from tests.faults.crew import PACE, Crew, account_of

_HERE = Path(__file__).parent
_OWN_SERVERS = ("test_proxy.py", "test_ledger.py")
_NUMBERS = itertools.count(1)
_PLOT = pytest.StashKey[Plot]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test here needs the control plane, but for the tests of the helpers."""
    for item in items:
        if item.path.is_relative_to(_HERE) and item.path.name not in _OWN_SERVERS:
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
def muster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Muster]:
    """One cluster with Muster's webhook and rights; the coordinators are each test's own."""
    options = Options(kuberay_args=("--reconcile-concurrency=4",))
    directory = tmp_path_factory.mktemp("faults") / "root"
    with Cluster.start(directory, with_muster(options)) as cluster:
        muster = start_muster(cluster, settings=PACE)
        muster.coordinators[0].kill()
        yield muster
    cluster.remove_data()
    if not request.session.testsfailed:
        shutil.rmtree(directory)


@pytest.fixture(scope="session")
def account(muster: Muster) -> Path:
    """A kubeconfig of the coordinators' service account."""
    return account_of(muster)


@pytest.fixture
def plot(request: pytest.FixtureRequest, muster: Muster) -> Iterator[Plot]:
    """A namespace and nodes of one test's own; nothing of it is left for the next test."""
    cluster = muster.cluster
    plot = request.node.stash[_PLOT] = Plot(cluster, f"fault-{next(_NUMBERS)}")
    cluster.create_namespace(plot.name)
    yield plot
    _clear(plot)


def _clear(plot: Plot) -> None:
    """Delete all at once: a namespace by itself takes five seconds, a pod without its node more."""
    with plot.cluster.api.session() as session:
        for kind in (
            f"/apis/ray.io/v1/namespaces/{plot.name}/rayclusters",
            f"/api/v1/namespaces/{plot.name}/pods",
        ):
            session.call("DELETE", f"{kind}?gracePeriodSeconds=0")
        plot.wait_no_pods()
        session.call("DELETE", f"{NODES}?labelSelector={LABEL}%3D{plot.name}")
        session.call("DELETE", f"/api/v1/namespaces/{plot.name}")


@pytest.fixture
def chronicle(plot: Plot) -> Iterator[Chronicle]:
    """What happens in the plot."""
    with Chronicle(plot.cluster, plot.name) as chronicle:
        yield chronicle


@pytest.fixture
def crew(muster: Muster, account: Path, plot: Plot) -> Iterator[Crew]:
    """No coordinators yet; those that are started end before the plot does."""
    with Crew(muster, account) as crew:
        yield crew
