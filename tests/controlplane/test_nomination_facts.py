"""Tries what kube-scheduler makes of `status.nominatedNodeName` of pods that are still gated.

Muster's own nominations rest on these facts (docs/decisions/0036): no KubeRay, no Muster, nothing
but kube-scheduler as it comes.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence

import pytest

from testbed.api import Json
from testbed.cluster import Cluster
from testbed.components import SCHEDULER
from testbed.nodes import NodeSpec
from testbed.options import Options
from testbed.waiting import wait_until
from tests.controlplane.scheduler_versions import notes_gated_pods

pytestmark = [pytest.mark.versions, pytest.mark.long]

GATE = "test.muster.dev/hold"
LABEL = "test.muster.dev/site"
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"
LOW, HIGH = "low", "high"
_NUMBERS = itertools.count(1)


class Site:
    """Nodes of one test, and pods that may run on them only."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.name = f"site-{next(_NUMBERS)}"

    def node(self, name: str) -> str:
        return f"{self.name}-{name}"

    def only(self, name: str) -> Json:
        """Select one node."""
        return {LABEL: self.name, "kubernetes.io/hostname": self.node(name)}

    def add_nodes(self, *names: str) -> None:
        """Add nodes of 4 CPUs."""
        here = {LABEL: self.name}
        self.cluster.add_nodes([NodeSpec(self.node(n), cpus=4, labels=here) for n in names])

    def create(
        self, name: str, cpus: int, *, gated: bool = False, priority: str = "", **spec: object
    ) -> None:
        """Create a pod."""
        whole: Json = {
            "nodeSelector": {LABEL: self.name},
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {"name": "main", "image": "none", "resources": {"requests": {"cpu": str(cpus)}}}
            ],
            **({"schedulingGates": [{"name": GATE}]} if gated else {}),
            **({"priorityClassName": priority} if priority else {}),
            **spec,
        }
        metadata = {"name": self.node(name), "labels": {LABEL: self.name}}
        self.cluster.api.create(PODS, {"metadata": metadata, "spec": whole})

    def pod(self, name: str) -> Json:
        return self.cluster.api.get(f"{PODS}/{self.node(name)}")

    def patch(self, name: str, change: object, path: str = "", form: str = MERGE) -> None:
        with self.cluster.api.session() as session:
            target = f"{PODS}/{self.node(name)}{path}"
            session.call("PATCH", target, json.dumps(change).encode(), form)

    def nominate(self, name: str, node: str) -> None:
        """Write the field as the coordinator would."""
        self.patch(name, {"status": {"nominatedNodeName": self.node(node)}}, "/status")

    def nominated(self, name: str) -> str:
        field: str = self.pod(name)["status"].get("nominatedNodeName", "")
        return field.removeprefix(f"{self.name}-")

    def release(self, name: str, node: str = "") -> None:
        """Take the gate off, and pin the pod where a node is given."""
        operations: list[Json] = [{"op": "remove", "path": "/spec/schedulingGates"}]
        if node:
            pin = {"key": "metadata.name", "operator": "In", "values": [self.node(node)]}
            terms = {"nodeSelectorTerms": [{"matchFields": [pin]}]}
            required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
            affinity = {"nodeAffinity": required}
            operations.append({"op": "add", "path": "/spec/affinity", "value": affinity})
        self.patch(name, operations, form="application/json-patch+json")

    def wait_bound(self, name: str, nodes: Sequence[str]) -> None:
        """Wait until the pod is bound, to one of these nodes."""
        where = wait_until(
            lambda: self.pod(name)["spec"].get("nodeName", ""),
            f"{name} to be bound",
            seen=lambda: self.pod(name),
        )
        assert where in [self.node(each) for each in nodes]

    def wait_refused(self, name: str) -> None:
        """Wait until kube-scheduler has tried the pod and found no node."""
        wait_until(
            lambda: _is_refused(self.pod(name)),
            f"{name} to be Unschedulable",
            seen=lambda: self.pod(name),
        )
        assert "nodeName" not in self.pod(name)["spec"]


def _is_refused(pod: Json) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(each.get("reason") == "Unschedulable" for each in conditions)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("nominations") / "root"
    with Cluster.start(directory, Options(kuberay=False)) as cluster:
        cluster.create_priority_class({"name": LOW}, -100)
        cluster.create_priority_class({"name": HIGH}, 100)
        yield cluster


@pytest.fixture
def site(cluster: Cluster) -> Site:
    return Site(cluster)


def restart_scheduler(cluster: Cluster) -> None:
    cluster.process(SCHEDULER).restart()
    cluster.wait_healthy(SCHEDULER)


def test_a_gated_pod_keeps_its_room_from_pods_up_to_its_priority(site: Site) -> None:
    """Of lower and of equal priority none gets in; a pod of higher priority does."""
    site.add_nodes("a")
    site.create("kept", 3, gated=True)
    site.nominate("kept", "a")
    site.create("equal", 2)
    site.create("lower", 2, priority=LOW)
    site.create("beside", 1)
    site.wait_bound("beside", ["a"])
    site.wait_refused("equal")
    site.wait_refused("lower")
    site.create("higher", 2, priority=HIGH)
    site.wait_bound("higher", ["a"])
    assert site.nominated("kept") == "a"  # nothing was evicted, so nothing is cleared


def test_a_nomination_that_is_taken_back_wakes_those_that_it_kept_out(site: Site) -> None:
    site.add_nodes("a")
    site.create("kept", 3, gated=True)
    site.nominate("kept", "a")
    site.create("equal", 2)
    site.wait_refused("equal")
    site.patch("kept", {"status": {"nominatedNodeName": None}}, "/status")
    site.wait_bound("equal", ["a"])


def test_a_released_pod_goes_where_it_is_nominated_and_its_field_is_cleared(site: Site) -> None:
    """Unpinned, and beside a node that is as good: the nominated one is tried first.

    The API server clears the field at the binding from 1.35 on.
    """
    site.add_nodes("a", "b", "c", "d")
    for name in ("one", "two"):
        site.create(name, 2, gated=True)
        site.nominate(name, "d")
    site.release("one")
    site.release("two")
    site.wait_bound("one", ["d"])
    site.wait_bound("two", ["d"])
    is_cleared = int(site.cluster.api.get("/version")["minor"]) >= 35
    assert site.nominated("one") == site.nominated("two") == ("" if is_cleared else "d")


def test_users_of_a_namespace_cannot_write_the_field(site: Site) -> None:
    """A create drops it, and the roles for users have no right to write a pod's status."""
    site.add_nodes("a")
    wish = {"nominatedNodeName": site.node("a")}
    spec: Json = {"containers": [{"name": "main", "image": "none"}]}
    spec["schedulingGates"] = [{"name": GATE}]
    body = {"metadata": {"name": site.node("wishes")}, "spec": spec, "status": wish}
    site.cluster.api.create(PODS, body)
    assert site.nominated("wishes") == ""
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:aggregate-to"
    for role in ("edit", "admin"):
        rules = site.cluster.api.get(f"{roles}-{role}")["rules"]
        verbs = {verb for rule in rules if _covers(rule) for verb in rule["verbs"]}
        assert verbs <= {"get", "list", "watch"}
        assert any("pods" in rule.get("resources", ()) for rule in rules) or role == "admin"


def _covers(rule: Json) -> bool:
    named = rule.get("resources", ())
    return any(each in named for each in ("pods/status", "pods/*", "*/status", "*"))


def test_a_nomination_to_a_node_that_is_not_there_hinders_nothing(site: Site) -> None:
    site.add_nodes("a")
    site.create("lost", 2, gated=True)
    site.nominate("lost", "gone")
    site.create("other", 2)
    site.wait_bound("other", ["a"])
    site.release("lost")
    site.wait_bound("lost", ["a"])


def test_a_restarted_scheduler_knows_gated_pods_once_they_are_written(site: Site) -> None:
    """Any write to the pod will do, also one that leaves the nomination as it is.

    Up to 1.36 it knows them only then, from 1.37 on at once.
    """
    site.add_nodes("a", "b")
    for name, node in (("unwritten", "a"), ("told", "b")):
        site.create(name, 3, gated=True)
        site.nominate(name, node)
    restart_scheduler(site.cluster)
    site.create("first", 3, nodeSelector=site.only("a"))
    if notes_gated_pods(site.cluster):
        site.wait_refused("first")
    else:
        site.wait_bound("first", ["a"])
    site.patch("told", {"metadata": {"annotations": {"test.muster.dev/told": "1"}}}, "/status")
    site.create("second", 3, nodeSelector=site.only("b"))
    site.wait_refused("second")
    assert (site.nominated("unwritten"), site.nominated("told")) == ("a", "b")


def test_a_preemption_of_higher_priority_clears_the_field_of_gated_pods(site: Site) -> None:
    site.add_nodes("a")
    site.create("victim", 3, priority=LOW)
    site.wait_bound("victim", ["a"])
    site.create("kept", 3, gated=True)
    site.nominate("kept", "a")
    site.create("higher", 3, priority=HIGH)
    site.wait_bound("higher", ["a"])
    wait_until(lambda: site.nominated("kept") == "", "the nomination to be cleared")


def test_a_nominated_pod_counts_beside_pods_that_still_end(site: Site) -> None:
    """So a released pod is refused though its room is free, until that is taken back."""
    site.add_nodes("a")
    site.create("ending", 3)
    site.wait_bound("ending", ["a"])
    site.patch("ending", {"metadata": {"finalizers": ["test.muster.dev/held"]}})
    with site.cluster.api.session() as session:
        session.call("DELETE", f"{PODS}/{site.node('ending')}", b"", "application/json")
    site.create("waiting", 3, gated=True)
    site.nominate("waiting", "a")
    site.create("member", 1, gated=True)
    site.release("member", "a")
    site.wait_refused("member")
    assert "deletionTimestamp" in site.pod("ending")["metadata"]
    site.patch("waiting", {"status": {"nominatedNodeName": None}}, "/status")
    site.wait_bound("member", ["a"])


def test_nominated_siblings_can_make_a_spread_constraint_refuse(site: Site) -> None:
    """They count on the node under test alone: 2 and 2 pods with maxSkew 1 look like 2 and 0.

    The refused pod loses its nomination; it is bound once the sibling's is taken back. Up to 1.35
    that alone wakes no pod that a spread constraint refused; another node does.
    """
    site.add_nodes("a", "b")
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "nodeAffinityPolicy": "Ignore",
        "labelSelector": {"matchLabels": {LABEL: site.name}},
    }
    for name, node in (("a0", "a"), ("a1", "a"), ("b0", "b"), ("b1", "b")):
        site.create(name, 1, gated=True, topologySpreadConstraints=[spread])
        site.nominate(name, node)
    site.release("a0", "a")
    site.wait_refused("a0")
    wait_until(lambda: site.nominated("a0") == "", "the nomination to be cleared")
    site.patch("a1", {"status": {"nominatedNodeName": None}}, "/status")
    site.add_nodes("c")
    site.wait_bound("a0", ["a"])


def test_anti_affinity_of_a_nominated_pod_counts_where_the_plugin_runs(site: Site) -> None:
    """For a pod without terms that is once the anti-affinity of some bound pod picks it."""
    site.add_nodes("a", "b")
    site.create("kept", 1, gated=True, affinity=away_from(site.name))
    site.nominate("kept", "a")
    site.create("before", 1, nodeSelector=site.only("a"))
    site.wait_bound("before", ["a"])
    site.create("elsewhere", 1, nodeSelector=site.only("b"), affinity=away_from(site.name))
    site.wait_bound("elsewhere", ["b"])
    site.create("after", 1, nodeSelector=site.only("a"))
    site.wait_refused("after")


def away_from(label: str) -> Json:
    """Anti-affinity to the pods of a site."""
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {LABEL: label}},
    }
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
