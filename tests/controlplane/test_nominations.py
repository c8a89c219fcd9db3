"""With the guard Nomination, Muster writes and takes back nominations on a real control plane."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial

import pytest

from kube.objects import names
from testbed.cluster import Cluster
from testbed.components import SCHEDULER
from testbed.muster import Muster, start_muster, with_muster
from testbed.options import Options
from testbed.waiting import wait_until
from tests.controlplane.forbidden_releases import forbidden_releases
from tests.controlplane.plot import Plot, is_held, plotted
from tests.controlplane.rayclusters import Json, gang, group
from tests.controlplane.scheduler_versions import notes_gated_pods
from tests.controlplane.test_preemption import urgent, with_queue

pytestmark = [pytest.mark.versions, pytest.mark.long]

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
_NUMBERS = itertools.count(1)
FINALIZER = "test.muster.dev/slow"
WAITING = 200
"""Pods that wait for the room that victims free."""
GAP = 20.0
"""Seconds for which a new kube-scheduler may lead before it was told of all nominations.

Its Lease is read every 2 s, and three pods are written then. The rest is for a busy machine.
"""
ELECTION = {
    "leaderElect": True,
    "leaseDuration": "9s",
    "renewDeadline": "8s",
    "retryPeriod": "500ms",
}


@pytest.fixture(scope="module")
def nominating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Muster]:
    """A cluster of its own, whose kube-scheduler has a Lease as in an installation."""
    options = Options(scheduler_config={"leaderElection": ELECTION})
    directory = tmp_path_factory.mktemp("nominating") / "root"
    with Cluster.start(directory, with_muster(options)) as cluster:
        wait_until(lambda: holder(cluster), "kube-scheduler to hold its Lease")
        yield start_muster(cluster, settings={"GUARD": "Nomination"})


@pytest.fixture
def plot(nominating: Muster) -> Iterator[Plot]:
    with plotted(nominating.cluster, f"nominations-{next(_NUMBERS)}") as plot:
        yield plot


def holder(cluster: Cluster) -> str:
    if not cluster.api.exists(LEASE):
        return ""
    return str(cluster.api.get(LEASE)["spec"].get("holderIdentity", ""))


def nominated(plot: Plot) -> list[Json]:
    """The pods with nominations that keep room: up to 1.34 the field of a bound pod stays."""
    pods: list[Json] = plot.cluster.api.get(f"/api/v1/namespaces/{plot.name}/pods")["items"]
    waiting = (pod for pod in pods if not pod["spec"].get("nodeName"))
    return [pod for pod in waiting if pod["status"].get("nominatedNodeName")]


def pod(name: str, plot: Plot, **spec: object) -> Json:
    """A pod of one CPU that may run on the plot's nodes only."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    whole = {"nodeSelector": plot.selector, "containers": [container], **spec}
    return {"metadata": {"name": name}, "spec": whole}


def is_refused(plot: Plot, name: str) -> bool:
    found = plot.cluster.api.get(f"/api/v1/namespaces/{plot.name}/pods/{name}")
    reasons = [each.get("reason") for each in found["status"].get("conditions", ())]
    return "Unschedulable" in reasons


def refused(plot: Plot) -> set[str]:
    """The pods of which kube-scheduler says that they are Unschedulable."""
    return {
        each["metadata"]["name"]
        for each in plot.all("Pod")
        if any(c.get("reason") == "Unschedulable" for c in each["status"].get("conditions", ()))
    }


def wait_told(plot: Plot) -> str:
    """Wait until the kube-scheduler that leads was told of three pods on one node; return that."""
    holding = holder(plot.cluster)
    wait_until(
        lambda: told(plot) == [holding] * 3 and len(set(fields(plot))) == 1,
        f"{holding} to be told of three nominations to one node",
        seen=lambda: nominated(plot),
    )
    return fields(plot)[0]


def fields(plot: Plot) -> list[str]:
    return [each["status"]["nominatedNodeName"] for each in nominated(plot)]


def led_for(cluster: Cluster) -> float:
    """For how many seconds the kube-scheduler has led that leads now."""
    acquired = datetime.fromisoformat(cluster.api.get(LEASE)["spec"]["acquireTime"])
    return (datetime.now(UTC) - acquired).total_seconds()


def keeps_out(plot: Plot, name: str) -> None:
    """See that kube-scheduler, which was told, finds no room for another pod; it goes again."""
    assert wait_told(plot) == plot.node("node")
    pods = f"/api/v1/namespaces/{plot.name}/pods"
    plot.cluster.api.create(pods, pod(name, plot))
    wait_until(lambda: is_refused(plot, name), f"{name} to be Unschedulable")
    with plot.cluster.api.session() as session:
        session.call("DELETE", f"{pods}/{name}?gracePeriodSeconds=0")


def told(plot: Plot) -> list[str]:
    """The kube-schedulers that were told of the nominations."""
    return [each["metadata"].get("annotations", {}).get(names.TOLD) for each in nominated(plot)]


def test_a_gang_whose_release_is_refused_keeps_its_room(plot: Plot) -> None:
    """kube-scheduler keeps other pods out while all of the gang is gated, and is told again when
    it starts anew. Once the release is let through, the gang runs, and no nomination is left."""
    plot.add_node(3)
    with forbidden_releases(plot, "kept"):
        plot.create(gang("kept", group(replicas=2)))
        keeps_out(plot, "first")
        restart_scheduler(plot.cluster)
        wait_told(plot)
        assert led_for(plot.cluster) < GAP
        keeps_out(plot, "second")
    plot.wait_running("kept", 3)
    assert nominated(plot) == []


def restart_scheduler(cluster: Cluster) -> None:
    before = holder(cluster)
    cluster.process(SCHEDULER).restart()
    wait_until(lambda: holder(cluster) != before, "another kube-scheduler to lead")


@contextlib.contextmanager
def kept_on_one_of_two(plot: Plot) -> Iterator[tuple[str, str]]:
    """A gang with room on each of two nodes, nominated to one of them; tells that one first.

    Its releases are refused until the block ends.
    """
    plot.add_priority_class("high", 1000)
    plot.add_equal_nodes(2, 3)
    with forbidden_releases(plot, "kept"):
        plot.create(gang("kept", group(replicas=2)))
        where = wait_told(plot)
        [other] = {plot.node("n-0"), plot.node("n-1")} - {where}
        yield where, other


def create_taker(plot: Plot, node: str, **spec: object) -> None:
    """Create a pod that may run on one node, all of which it takes."""
    only = {**plot.selector, "kubernetes.io/hostname": node}
    taker = pod("taker", plot, nodeSelector=only, **spec)
    taker["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "3"}}
    plot.cluster.api.create(f"/api/v1/namespaces/{plot.name}/pods", taker)


def wait_taken(plot: Plot, node: str) -> None:
    plot.wait(lambda: plot.get("Pod", "taker")["spec"].get("nodeName") == node, "it to be bound")


def wait_nominated_to(plot: Plot, node: str) -> None:
    """Wait until the whole gang is nominated to a node."""
    plot.wait(lambda: fields(plot) == [node] * 3, f"the gang to be nominated to {node}")


def wait_runs_on(plot: Plot, node: str) -> None:
    plot.wait_running("kept", 3)
    assert {plot.node(each) for each in plot.bound("kept").values()} == {node}
    assert nominated(plot) == []


def test_a_pod_of_higher_priority_takes_the_room_and_the_gang_is_placed_anew(plot: Plot) -> None:
    with kept_on_one_of_two(plot) as (where, other):
        create_taker(plot, where, priorityClassName=f"{plot.name}-high")
        wait_taken(plot, where)
        wait_nominated_to(plot, other)
    wait_runs_on(plot, other)


def test_a_new_kube_scheduler_that_nobody_tells_may_let_others_in(
    plot: Plot, nominating: Muster
) -> None:
    """It starts while the coordinator stands still. Up to 1.36 it knows of no nomination, so the
    gang is placed anew; from 1.37 on it reads them from the pods."""
    [coordinator] = nominating.coordinators
    with kept_on_one_of_two(plot) as (where, other):
        with coordinator.paused():
            restart_scheduler(plot.cluster)
            create_taker(plot, where)
            if notes_gated_pods(plot.cluster):
                plot.wait(partial(is_refused, plot, "taker"), "it to be Unschedulable")
                goes_to = where
            else:
                wait_taken(plot, where)
                goes_to = other
        wait_nominated_to(plot, goes_to)
    wait_runs_on(plot, goes_to)


def test_nominations_end_with_a_ray_cluster_that_is_being_deleted(plot: Plot) -> None:
    """A finalizer holds it, and with it the pods, which stay gated."""
    with kept_on_one_of_two(plot):
        plot.patch("RayCluster", "kept", {"metadata": {"finalizers": [FINALIZER]}})
        plot.delete("RayCluster", "kept")
        plot.wait(lambda: nominated(plot) == [], "the nominations to be taken back")
        assert [is_held(each) for each in plot.pods("kept")] == [True] * 3
    plot.patch("RayCluster", "kept", {"metadata": {"finalizers": None}})
    plot.wait_gone("RayCluster", "kept")


def test_nominations_end_with_the_opt_out(plot: Plot) -> None:
    """The pods stay gated, for their release is refused still."""
    with kept_on_one_of_two(plot):
        plot.patch("RayCluster", "kept", {"metadata": {"labels": {names.OPT_IN: "false"}}})
        plot.wait(lambda: nominated(plot) == [], "the nominations to be taken back")
        assert [is_held(each) for each in plot.pods("kept")] == [True] * 3
    plot.wait(lambda: len(plot.bound("kept")) == 3, "the pods to be bound")


def end_slowly(plot: Plot, cluster: str) -> list[str]:
    """Have the pods of a RayCluster stay when they are deleted; returns their names."""
    pods = [each["metadata"]["name"] for each in plot.pods(cluster)]
    for name in pods:
        plot.patch("Pod", name, {"metadata": {"finalizers": [FINALIZER]}})
    return pods


def test_room_that_victims_free_goes_to_the_gang_that_they_are_stopped_for(plot: Plot) -> None:
    """The gang waits gated until the last of them is gone; pods of its priority want the room."""
    plot.add_priority_class("urgent", 1000)
    labels = with_queue(plot, 4)
    plot.create(gang("low", group(replicas=3), labels=labels))
    plot.wait_running("low", 4)
    victims = end_slowly(plot, "low")
    plot.create(urgent(plot, "urgent", 3, labels))
    holding = holder(plot.cluster)
    plot.wait(lambda: told(plot) == [holding] * 4, "the pods of urgent to be nominated")
    pods = f"/api/v1/namespaces/{plot.name}/pods"
    waiting = [f"waiting-{number}" for number in range(WAITING)]
    for name in waiting:
        plot.cluster.api.create(pods, pod(name, plot, priorityClassName=f"{plot.name}-urgent"))
    plot.wait(lambda: refused(plot) >= {*waiting}, "all that wait to be Unschedulable")
    for number, victim in enumerate(victims):
        plot.patch("Pod", victim, {"metadata": {"finalizers": None}})
        plot.wait_gone("Pod", victim)
        filler = f"filler-{number}"
        body = pod(filler, plot, priorityClassName=f"{plot.name}-urgent")
        plot.cluster.api.create(pods, body)
        plot.wait(partial(is_refused, plot, filler), f"{filler} to be Unschedulable")
    plot.wait_running("urgent", 4)
    assert nominated(plot) == []
    assert not [each for each in plot.all("Pod") if is_bound(each, waiting)]


def is_bound(found: Json, among: Sequence[str]) -> bool:
    return found["metadata"]["name"] in among and "nodeName" in found["spec"]
