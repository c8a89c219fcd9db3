"""Constraints that Muster does not model are named, and not taken for satisfied."""

import pytest

from testbed.nodes import NodeSpec
from tests.controlplane.plot import Plot, condition, is_held
from tests.controlplane.rayclusters import Json, gang, group, requests

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
