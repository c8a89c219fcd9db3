"""With the guard Nomination, Muster writes and takes back nominations on a real control plane."""

from __future__ import annotations

import http
import itertools
import json
from collections.abc import Iterator
from functools import partial

import pytest

from kube.objects import names
from testbed.cluster import Cluster
from testbed.components import SCHEDULER
from testbed.muster import Muster, start_muster, with_muster
from testbed.options import Options
from testbed.waiting import wait_until
from tests.controlplane.audit import Audit
from tests.controlplane.plot import Plot, plotted
from tests.controlplane.rayclusters import Json, gang, group
from tests.controlplane.test_preemption import urgent, with_queue

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
_NUMBERS = itertools.count(1)
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmission"
MERGE = "application/merge-patch+json"
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
    with plotted(nominating.cluster, f"nominations-{next(_NUMBERS)}") as plot:
        yield plot


def holder(cluster: Cluster) -> str:
    if not cluster.api.exists(LEASE):
        return ""
    return str(cluster.api.get(LEASE)["spec"].get("holderIdentity", ""))


def nominated(plot: Plot) -> list[Json]:
    pods: list[Json] = plot.cluster.api.get(f"/api/v1/namespaces/{plot.name}/pods")["items"]
    return [pod for pod in pods if pod["status"].get("nominatedNodeName")]


def refuse_releases(plot: Plot) -> None:
    """Have the API server refuse that a pod of the plot loses its gates."""
    here = {"matchLabels": {"kubernetes.io/metadata.name": plot.name}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"]}
    rules = [{**rule, "resources": ["pods"]}]
    kept = "!has(oldObject.spec.schedulingGates) || has(object.spec.schedulingGates)"
    spec = {
        "matchConstraints": {"resourceRules": rules, "namespaceSelector": here},
        "validations": [{"expression": kept}],
    }
    api = plot.cluster.api
    api.create(f"{POLICIES}policies", {"metadata": {"name": plot.name}, "spec": spec})
    bound = {"policyName": plot.name, "validationActions": ["Deny"]}
    api.create(f"{POLICIES}policybindings", {"metadata": {"name": plot.name}, "spec": bound})
    gated = pod("asked", plot, schedulingGates=[{"name": "test.muster.dev/hold"}])
    api.create(f"/api/v1/namespaces/{plot.name}/pods", gated)
    wait_until(lambda: not may_be_released(plot, "asked"), "the policy to be in force")


def may_be_released(plot: Plot, name: str) -> bool:
    change = json.dumps({"spec": {"schedulingGates": None}}).encode()
    path = f"/api/v1/namespaces/{plot.name}/pods/{name}?dryRun=All"
    with plot.cluster.api.session() as session:
        return session.request("PATCH", path, change, MERGE)[0] == http.HTTPStatus.OK


def pod(name: str, plot: Plot, **spec: object) -> Json:
    """A pod of one CPU that may run on the plot's nodes only."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    whole = {"nodeSelector": plot.selector, "containers": [container], **spec}
    return {"metadata": {"name": name}, "spec": whole}


def is_refused(plot: Plot, name: str) -> bool:
    found = plot.cluster.api.get(f"/api/v1/namespaces/{plot.name}/pods/{name}")
    reasons = [each.get("reason") for each in found["status"].get("conditions", ())]
    return "Unschedulable" in reasons


def keeps_out(plot: Plot, name: str) -> None:
    """See that kube-scheduler, which was told, finds no room for another pod; it goes again."""
    holding = holder(plot.cluster)
    wait_until(
        lambda: told(plot) == [holding] * 3,
        f"{holding} to be told of three nominations",
        seen=lambda: nominated(plot),
    )
    assert {each["status"]["nominatedNodeName"] for each in nominated(plot)} == {plot.node("node")}
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
    refuse_releases(plot)
    plot.create(gang("kept", group(replicas=2)))
    keeps_out(plot, "first")
    before = holder(plot.cluster)
    plot.cluster.process(SCHEDULER).restart()
    wait_until(lambda: holder(plot.cluster) != before, "another kube-scheduler to lead")
    keeps_out(plot, "second")
    with plot.cluster.api.session() as session:
        session.call("DELETE", f"{POLICIES}policybindings/{plot.name}")
    plot.wait_running("kept", 3)
    assert nominated(plot) == []


FINALIZER = "test.muster.dev/slow"


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
    for number, victim in enumerate(victims):
        plot.patch("Pod", victim, {"metadata": {"finalizers": None}})
        plot.wait_gone("Pod", victim)
        filler = f"filler-{number}"
        body = pod(filler, plot, priorityClassName=f"{plot.name}-urgent")
        plot.cluster.api.create(pods, body)
        plot.wait(partial(is_refused, plot, filler), f"{filler} to be Unschedulable")
    plot.wait_running("urgent", 4)
    assert nominated(plot) == []
