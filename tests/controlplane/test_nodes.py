"""Pods land only where kube-scheduler takes them, and a waiting gang names the obstacle."""

from typing import Any

import pytest

from testbed.nodes import NodeSpec
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, gang, group, head

RESERVED = "reserved=yes:NoSchedule"
TOLERATES = [{"key": "reserved", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}]


def required(*terms: Json) -> Json:
    """Required node affinity with these terms, of which one must hold."""
    kind = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"nodeAffinity": {kind: {"nodeSelectorTerms": list(terms)}}}


def term(key: str, operator: str, *values: str) -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def test_a_constraint_that_no_node_meets_is_named(plot: Plot) -> None:
    """Not "insufficient resources", for there is plenty: no node is feasible."""
    plot.add_node(8)
    plot.create(gang("nowhere", group(replicas=2, affinity=required(term("disk", "In", "gold")))))
    plot.wait_phase("nowhere", "Queued", "NoFeasibleNode", "does not match the node affinity")


def test_tainted_nodes_take_only_pods_that_tolerate_the_taint(plot: Plot) -> None:
    """A gang without the toleration waits and says so; one with it runs there."""
    plot.add_nodes(NodeSpec("reserved", cpus=3, taints=(RESERVED,)))
    plot.create(gang("stranger", group(replicas=2)))
    plot.wait_phase("stranger", "Queued", "NoFeasibleNode", "has an untolerated taint")
    welcome: dict[str, Any] = {"tolerations": TOLERATES}
    plot.create(gang("guest", group(replicas=2, **welcome), head_group=head(**welcome)))
    plot.wait_running("guest", 3)
    assert plot.bound("stranger") == {}


def test_a_gang_whose_node_is_cordoned_waits_and_starts_after_uncordon(plot: Plot) -> None:
    """kube-scheduler leaves cordoned nodes alone, so no pod is released onto one."""
    plot.add_node(3)
    plot.patch_node("node", {"spec": {"unschedulable": True}})
    plot.create(gang("patient", group(replicas=2)))
    plot.wait_phase("patient", "Queued", "NoFeasibleNode", "is cordoned")
    plot.patch_node("node", {"spec": {"unschedulable": None}})
    plot.wait_running("patient", 3)


@pytest.mark.variant
def test_pods_that_tolerate_everything_start_on_no_node_that_is_being_deleted(plot: Plot) -> None:
    """Karpenter deletes the Node first, and its finalizer holds it while the node is drained."""
    plot.add_node(3)
    plot.patch_node("node", {"metadata": {"finalizers": ["karpenter.sh/termination"]}})
    plot.cluster.kubectl("delete", "node", plot.node("node"), "--wait=false")
    tolerant: dict[str, Any] = {"tolerations": [{"operator": "Exists"}]}
    plot.create(gang("tolerant", group(replicas=2, **tolerant), head_group=head(**tolerant)))
    plot.wait_phase("tolerant", "Queued", "NoFeasibleNode", "is being deleted")
    plot.add_nodes(NodeSpec("another", cpus=3))
    plot.wait_running("tolerant", 3)
    assert set(plot.bound("tolerant").values()) == {"another"}
    plot.patch_node("node", {"metadata": {"finalizers": None}})


@pytest.mark.variant
def test_a_node_that_gets_its_label_later_is_taken_then(plot: Plot) -> None:
    """A changed node is a reason to decide again."""
    plot.add_node(3)
    plot.create(gang("waits", group(replicas=2, nodeSelector={"disk": "ssd"})))
    plot.wait_phase("waits", "Queued", "NoFeasibleNode")
    plot.patch_node("node", {"metadata": {"labels": {"disk": "ssd"}}})
    plot.wait_running("waits", 3)


@pytest.mark.variant
def test_a_node_is_taken_once_it_declares_what_a_pod_needs(plot: Plot) -> None:
    """kube-scheduler 1.36 infers the feature from the pod's restart rules."""
    plot.add_node(3)
    workers = group(replicas=2)
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    container = workers["template"]["spec"]["containers"][0]
    container |= {"restartPolicy": "Never", "restartPolicyRules": [rule]}
    plot.create(gang("restarts", workers))
    said = "does not declare a feature that the pod needs"
    plot.wait_phase("restarts", "Queued", "NoFeasibleNode", said)
    plot.patch_node_status("node", {"declaredFeatures": ["RestartAllContainersOnContainerExits"]})
    plot.wait_running("restarts", 3)
