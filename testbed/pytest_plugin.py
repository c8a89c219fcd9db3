"""How does a test get a cluster, and how does nothing of it stay behind?

`cluster` is a fresh one for one test, `make_cluster` makes as many as a test wants and takes
`Options`, `shared_cluster` is one for the whole run, for tests that keep to namespaces of their
own. A failure report says where the logs are; after a success they are deleted.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
from collections.abc import Callable, Generator, Iterator

import pytest

from testbed.cluster import Cluster
from testbed.options import Options

MakeCluster = Callable[..., Cluster]

_FAILED = pytest.StashKey[bool]()
_CLUSTERS = pytest.StashKey[list[Cluster]]()
_SHARED = pytest.StashKey[Cluster]()


def pytest_configure(config: pytest.Config) -> None:  # noqa: ARG001 - the signature of the hook
    """Take Ctrl-C as usual, also where the run was begun by a shell in the background.

    Such a shell has it ignored, every program that a test starts inherits that, and a test that
    interrupts one would wait for ever.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember a failure, and say in its report where the logs are."""
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
        folders = [str(cluster.logs) for cluster in _clusters_of(item)]
        if folders:
            report.sections.append(("logs of the testbed's clusters", "\n".join(folders)))
    return report


def _clusters_of(item: pytest.Item) -> list[Cluster]:
    own = item.stash.get(_CLUSTERS, [])
    uses_shared = "shared_cluster" in getattr(item, "fixturenames", ())
    shared = item.session.stash.get(_SHARED, None) if uses_shared else None
    return [*own, shared] if shared else own


@pytest.fixture
def make_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MakeCluster]:
    """Start clusters with options of the test's choice; they end with the test."""
    clusters: list[Cluster] = request.node.stash.setdefault(_CLUSTERS, [])

    def make(options: Options | None = None) -> Cluster:
        directory = tmp_path_factory.mktemp("cluster") / "root"
        cluster = stack.enter_context(Cluster.start(directory, options))
        clusters.append(cluster)
        return cluster

    with contextlib.ExitStack() as stack:
        yield make
    for cluster in clusters:
        _clean(cluster, failed=request.node.stash.get(_FAILED, False))


@pytest.fixture
def cluster(make_cluster: MakeCluster) -> Cluster:
    """Start one fresh cluster with everything in it and no nodes."""
    return make_cluster()


@pytest.fixture(scope="session")
def shared_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Start one cluster for all tests that keep to namespaces and nodes of their own."""
    directory = tmp_path_factory.mktemp("shared-cluster") / "root"
    with Cluster.start(directory) as cluster:
        request.session.stash[_SHARED] = cluster
        yield cluster
    _clean(cluster, failed=request.session.testsfailed > 0)


def _clean(cluster: Cluster, *, failed: bool) -> None:
    cluster.remove_data()
    if not failed:
        shutil.rmtree(cluster.directory)
