"""Constraints that Muster does not model are named, and not taken for satisfied."""

import pytest

from testbed.nodes import NodeSpec
from tests.controlplane.plot import Plot, condition, is_held
from tests.controlplane.rayclusters import Json, gang, group, requests

ELSEWHERE = {
    "labelSelector": {"matchLabels": {"app": "loud"}},
    "topologyKey": "kubernetes.io/hostname",
}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "loud"}},
}
DISK = {"name": "data", "gcePersistentDisk": {"pdName": "data"}}

CONSTRAINTS = [
    ({"schedulerName": "other-scheduler"}, "other-scheduler"),
    ({"volumes": [DISK]}, "gcePersistentDisk (use a PersistentVolumeClaim instead)"),
]


def wait_unsupported(plot: Plot, name: str, word: str) -> None:
    status = plot.wait_phase(name, "Queued", "Unsupported")
    admitted = condition(status, "Admitted")
    assert (admitted["status"], admitted["reason"]) == ("False", "Unsupported")
    assert word.lower() in admitted["message"].lower()
    plot.wait_event(name, "Unsupported", admitted["message"])


@pytest.mark.parametrize(("constraint", "word"), CONSTRAINTS)
def test_an_unsupported_constraint_is_named_and_no_other_gang_waits(
    plot: Plot, constraint: Json, word: str
) -> None:
    """The gang says which constraint it is; one that came later runs."""
    plot.add_node(6)
    plot.create(gang("special", group(replicas=2, **constraint)))
    wait_unsupported(plot, "special", word)
    plot.create(gang("usual", group(replicas=2)))
    plot.wait_running("usual", 3)
    assert all(is_held(pod) for pod in plot.wait_pods("special", 3))


@pytest.mark.variant
def test_pods_with_one_host_port_never_share_a_node(plot: Plot) -> None:
    """Two workers, one node, one port: the gang waits, says that it is a port, others run."""
    plot.add_node(6)
    workers = group(replicas=2)
    container = workers["template"]["spec"]["containers"][0]
    container["ports"] = [{"containerPort": 8000, "hostPort": 8000}]
    plot.create(gang("ports", workers))
    plot.wait_message("ports", "host port 8000/TCP")
    plot.create(gang("usual", group(replicas=2)))
    plot.wait_running("usual", 3)
    assert all(is_held(pod) for pod in plot.wait_pods("ports", 3))


@pytest.mark.variant
def test_workers_that_keep_apart_wait_for_a_node_each(plot: Plot) -> None:
    """Members of a gang count for each other, though none is bound yet."""
    plot.add_node(6)
    term = {
        "labelSelector": {"matchLabels": {"ray.io/group": "workers"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    workers = group(replicas=2, affinity={"podAntiAffinity": {REQUIRED: [term]}})
    plot.create(gang("apart", workers))
    plot.wait_phase("apart", "Queued", "NoFeasibleNode", "between the gang's own pods")
    plot.add_equal_nodes(1, 6)
    plot.wait_running("apart", 3)


@pytest.mark.variant
def test_preferred_constraints_do_not_count(plot: Plot) -> None:
    """What only scores can never make kube-scheduler refuse a node."""
    plot.add_node(3)
    preferred = {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": ELSEWHERE}
            ]
        }
    }
    spread = {**SPREAD, "whenUnsatisfiable": "ScheduleAnyway"}
    workers = group(replicas=2, affinity=preferred, topologySpreadConstraints=[spread])
    plot.create(gang("polite", workers))
    plot.wait_running("polite", 3)


def test_a_resource_of_a_class_without_devices_waits_until_a_device_plugin_has_it(
    plot: Plot,
) -> None:
    """No node has devices of the class; kube-scheduler would find none, either."""
    plot.add_node(6)
    resource = f"example.com/{plot.name}"
    plot.add_device_class("widgets", resource)
    plot.create(gang("widgets", group(replicas=1, resources=requests(**{resource: "1"}))))
    status = plot.wait_phase("widgets", "Queued", "InsufficientResources")
    assert resource in status["message"]
    plot.add_nodes(NodeSpec("plugin", cpus=1, resources={resource: 1}))
    plot.wait_running("widgets", 2)
