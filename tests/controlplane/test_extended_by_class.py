"""Gangs that ask for extended resources which a DeviceClass gives: kube-scheduler claims them."""

from testbed.nodes import NodeSpec
from tests.controlplane.claimed_devices import add_class, add_slice, given
from tests.controlplane.plot import Plot, is_held
from tests.controlplane.quotas import add_quota
from tests.controlplane.rayclusters import Json, gang, group, requests

THREE = ("gpu-0", "gpu-1", "gpu-2")


def workers(plot: Plot, count: int) -> Json:
    return group(replicas=count, resources=requests(**{resource(plot): "1"}))


def resource(plot: Plot) -> str:
    return f"example.com/{plot.name}"


def test_a_gang_gets_what_a_class_gives_beside_what_a_device_plugin_lists(plot: Plot) -> None:
    """Three devices and one that is listed are four; a second gang waits for them, in numbers."""
    listed = {resource(plot): 1}
    plot.add_nodes(NodeSpec("devices", cpus=16), NodeSpec("plugin", cpus=16, resources=listed))
    add_slice(plot, "devices", THREE)
    of_class = add_class(plot, resource=resource(plot))
    plot.create(gang("first", workers(plot, 4)))
    plot.wait_running("first", 5)
    assert given(plot) == list(THREE)
    plot.create(gang("second", workers(plot, 2)))
    status = plot.wait_phase("second", "Queued", "InsufficientResources")
    assert resource(plot) in status["message"] or of_class in status["message"]
    assert all(is_held(pod) for pod in plot.pods("second"))
    plot.delete_whole("first")
    plot.wait_running("second", 3)


def test_a_gang_waits_where_a_quota_has_no_room_for_what_kube_scheduler_would_claim(
    plot: Plot,
) -> None:
    """The claims are made after the release, so it is asked before."""
    plot.add_node(16)
    add_slice(plot, "node", THREE)
    of_class = f"{add_class(plot, resource=resource(plot))}.deviceclass.resource.k8s.io/devices"
    add_quota(plot, "few", {of_class: 1})
    plot.create(gang("two", workers(plot, 2)))
    plot.wait_message("two", f"ResourceQuota few has 0 of 1 {of_class} left")
    assert all(is_held(pod) for pod in plot.wait_pods("two", 3))
    plot.patch("ResourceQuota", "few", {"spec": {"hard": {of_class: "2"}}})
    plot.wait_running("two", 3)
    assert given(plot) == list(THREE[:2])
