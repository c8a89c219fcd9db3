"""Gives a test its cluster, and removes everything of it afterwards.

`cluster` is a fresh one for one test, `make_cluster` makes as many as a test wants and takes
`Options`, `folder_cluster` is one for all files of a folder that want the same options and leave
nothing behind. After a success the logs are deleted. The report of a failure shows what is on every
cluster that runs or was to run, and how the logs end, in bounded length: CI keeps nothing else.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from testbed.aftermath import ends_of_logs, what_is_there
from testbed.cluster import Cluster
from testbed.options import Options

MakeCluster = Callable[..., Cluster]
FolderCluster = Callable[[Options], Cluster]

_SHARED = pytest.StashKey[list[Cluster]]()
_FAILED = pytest.StashKey[bool]()
_MOST_SHOWN = 8


def pytest_configure(config: pytest.Config) -> None:  # noqa: ARG001 - the signature of the hook
    """Take Ctrl-C as usual, also where the run was begun by a shell in the background.

    Such a shell has it ignored, every program that a test starts inherits that, and a test that
    interrupts one would wait for ever.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_logstart() -> None:
    """Forget the clusters that have ended with an earlier test, of which this one knows nothing.

    One that does not come up ends too, but in the time of the test that wanted it.
    """
    Cluster.started[:] = [cluster for cluster in Cluster.started if cluster.running]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember a failure, and show in its report how it is with the clusters."""
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
        report.sections += [
            section for cluster in _of_interest(item) for section in _sections(cluster)
        ]
    return report


def _of_interest(item: pytest.Item) -> list[Cluster]:
    """The clusters that a failure may be of; none where many failures have shown theirs."""
    concerned = item.get_closest_marker("controlplane") is not None
    return Cluster.started if concerned and item.session.testsfailed < _MOST_SHOWN else []


def _sections(cluster: Cluster) -> Iterator[tuple[str, str]]:
    if cluster.running:
        yield f"what is on the cluster in {cluster.directory}", what_is_there(cluster.kubectl)
    if cluster.logs.exists():
        yield f"the ends of the logs in {cluster.logs}", ends_of_logs(cluster.logs)


@pytest.fixture
def make_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MakeCluster]:
    """Start clusters with options of the test's choice; they end with the test."""
    clusters: list[Cluster] = []

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
def folder_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> FolderCluster:
    """Start a cluster of some options, or return the one that another file has begun.

    It ends after the last test of the folder that needs a cluster.
    """
    shared = request.session.stash.setdefault(_SHARED, [])

    def find(options: Options) -> Cluster:
        found = [each for each in shared if each.options == options]
        if not found:
            directory = tmp_path_factory.mktemp("folder-cluster") / "root"
            found = [Cluster.start(directory, options)]
            shared.extend(found)
        return found[0]

    return find


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, None, None]:
    """End what the files of a folder have shared, after the last of them."""
    try:
        yield
    finally:
        if nextitem is None or _folder(nextitem) != _folder(item):
            _end_shared(item.session)


def _folder(item: pytest.Item) -> Path | None:
    """The folder of a test that needs a cluster."""
    return item.path.parent if item.get_closest_marker("controlplane") else None


def _end_shared(session: pytest.Session) -> None:
    shared = session.stash.get(_SHARED, [])
    while shared:
        cluster = shared.pop()
        cluster.stop()
        _clean(cluster, failed=session.testsfailed > 0)


def _clean(cluster: Cluster, *, failed: bool) -> None:
    cluster.remove_data()
    if not failed:
        shutil.rmtree(cluster.directory)
