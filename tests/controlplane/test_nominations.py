"""With the guard Nomination, Muster writes and takes back nominations on a real control plane."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from coordinator.gang.start_window import UNDER_WAY
from kube.objects import names
from testbed.cluster import Cluster
from testbed.components import SCHEDULER
from testbed.muster import Muster, start_muster, with_muster
from testbed.options import Options
from testbed.waiting import wait_until
from tests.controlplane.audit import Audit
from tests.controlplane.plot import Plot, plotted
from tests.controlplane.rayclusters import Json, gang, group

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
ELECTION = {
    "leaderElect": True,
    "leaseDuration": "3s",
    "renewDeadline": "2s",
    "retryPeriod": "500ms",
}


@pytest.fixture(scope="module")
def nominating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Muster]:
    """A cluster of its own, whose kube-scheduler has a Lease as in an installation."""
    audit = Audit(tmp_path_factory.mktemp("nominating-audit"))
    options = Options(
        scheduler_config={"leaderElection": ELECTION}, apiserver_args=audit.apiserver_args
    )
    directory = tmp_path_factory.mktemp("nominating") / "root"
    with Cluster.start(directory, with_muster(options)) as cluster:
        wait_until(lambda: holder(cluster), "kube-scheduler to hold its Lease")
        yield start_muster(cluster, settings={"GUARD": "Nomination"})
        assert audit.forbidden() == []


@pytest.fixture
def plot(nominating: Muster) -> Iterator[Plot]:
    with plotted(nominating.cluster, "nominations") as plot:
        yield plot


def holder(cluster: Cluster) -> str:
    if not cluster.api.exists(LEASE):
        return ""
    return str(cluster.api.get(LEASE)["spec"].get("holderIdentity", ""))


def nominated(plot: Plot) -> list[Json]:
    pods: list[Json] = plot.cluster.api.get(f"/api/v1/namespaces/{plot.name}/pods")["items"]
    return [pod for pod in pods if pod["status"].get("nominatedNodeName")]


def test_gangs_that_wait_for_their_release_are_nominated_and_run_later(plot: Plot) -> None:
    """kube-scheduler stands still, so that the gangs that are released first are not bound.

    Those behind them have their placement, and kube-scheduler is told of it; when it comes back,
    all are bound, and no nomination is left.
    """
    told = holder(plot.cluster)
    plot.cluster.process(SCHEDULER).kill()
    gangs = [f"g{number}" for number in range(UNDER_WAY + 2)]
    plot.add_node(2 * len(gangs))
    for name in gangs:
        plot.create(gang(name, group(replicas=1)))
    wait_until(lambda: nominated(plot), "a pod to be nominated", seen=lambda: nominated(plot))
    for pod in nominated(plot):
        assert pod["status"]["nominatedNodeName"] == plot.node("node")
        assert pod["metadata"]["annotations"][names.TOLD] == told
    plot.cluster.process(SCHEDULER).restart()
    for name in gangs:
        plot.wait_running(name, 2)
    assert nominated(plot) == []
