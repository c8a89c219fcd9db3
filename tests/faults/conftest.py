"""Fixtures of the fault tests.

One cluster with KubeRay and Muster's webhook for all of them. For each test a plot (a namespace
and nodes of its own), a chronicle of what happens there, and a crew of coordinators that ends with
the test.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.cluster import Cluster
from testbed.muster import Muster, start_muster, with_app_wrappers
from testbed.options import Options
from tests.controlplane.dashboards import Dashboards
from tests.controlplane.plot import LABEL, NODES, Plot
from tests.faults.chronicle import Chronicle
from tests.faults.crew import Crew, account_of

_HERE = Path(__file__).parent
_OWN_SERVERS = ("test_proxy.py", "test_ledger.py")
_NUMBERS = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test here needs the control plane, but for the tests of the helpers."""
    for item in items:
        if item.path.is_relative_to(_HERE) and item.path.name not in _OWN_SERVERS:
            item.add_marker(pytest.mark.controlplane)


@pytest.fixture(scope="session")
def dashboards() -> Iterator[Dashboards]:
    """The dashboards of Ray heads, as KubeRay reaches them; they answer for the plots that ask."""
    with Dashboards() as dashboards:
        yield dashboards


@pytest.fixture(scope="session")
def muster(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    dashboards: Dashboards,
) -> Iterator[Muster]:
    """One cluster with Muster's webhook and rights; the coordinators are each test's own."""
    options = Options(
        kuberay_args=("--reconcile-concurrency=4",), kuberay_env=dashboards.environment
    )
    directory = tmp_path_factory.mktemp("faults") / "root"
    with Cluster.start(directory, with_app_wrappers(options)) as cluster:
        yield start_muster(cluster, coordinators=0, app_wrappers="All")
    cluster.remove_data()
    if not request.session.testsfailed:
        shutil.rmtree(directory)


@pytest.fixture(scope="session")
def account(muster: Muster) -> Path:
    """A kubeconfig of the coordinators' service account."""
    return account_of(muster)


@pytest.fixture
def plot(muster: Muster) -> Iterator[Plot]:
    """A namespace and nodes of one test's own; nothing of it is left for the next test."""
    cluster = muster.cluster
    plot = Plot(cluster, f"fault-{next(_NUMBERS)}")
    cluster.create_namespace(plot.name)
    yield plot
    _clear(plot)


def _clear(plot: Plot) -> None:
    """Delete all at once: a namespace by itself takes five seconds, a pod without its node more."""
    with plot.cluster.api.session() as session:
        for kind in (
            f"/apis/workload.codeflare.dev/v1beta2/namespaces/{plot.name}/appwrappers",
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
