"""Gangs for which Cluster Autoscaler is asked for nodes, with a stand-in that answers."""

from testbed.nodes import NodeSpec
from tests.controlplane.plot import Plot
from tests.controlplane.provisioning import CLASS, Autoscaler
from tests.controlplane.rayclusters import Json, gang, group


def asking(plot: Plot, name: str, workers: int) -> Json:
    """A gang of 1 CPU for its head and for each worker, in a queue that asks for nodes."""
    plot.add_queue("elastic", provisioning={"className": CLASS, "backoffSeconds": 1})
    return gang(name, group(replicas=workers), labels={"muster.dev/queue": plot.queue("elastic")})


def asked_for(autoscaler: Autoscaler, request: Json) -> int:
    """Count the pods that a request is for, all of which have a template."""
    templates, pods = autoscaler.templates(), 0
    for each in request["spec"]["podSets"]:
        spec = templates[each["podTemplateRef"]["name"]]["template"]["spec"]
        assert spec["containers"][0]["resources"]["requests"]["cpu"] == "1"
        assert "schedulingGates" not in spec
        pods += each["count"]
    return pods


def test_nodes_that_come_are_used_at_once_and_the_request_goes(plot: Plot) -> None:
    """Cluster Autoscaler says Provisioned when it has ordered machines, before they are there."""
    autoscaler = Autoscaler(plot)
    plot.add_node(1)
    plot.create(asking(plot, "growing", 3))
    request = autoscaler.wait_asked()
    assert request["spec"]["provisioningClassName"] == CLASS
    assert asked_for(autoscaler, request) == 4
    autoscaler.say(request, "Accepted", "Accepted", "ProvisioningRequest is accepted")
    autoscaler.say(request, "Provisioned", "CapacityIsProvisioned", "Capacity is found")
    plot.wait_message("growing", "the autoscaler says: Provisioned (CapacityIsProvisioned")
    assert len(autoscaler.requests()) == 1
    plot.add_nodes(NodeSpec("new", cpus=3))
    plot.wait_running("growing", 4)
    autoscaler.wait_nothing_asked()


def test_what_fails_is_asked_again_and_goes_with_its_gang(plot: Plot) -> None:
    """The failed request stays until the next one is due, which names another one."""
    autoscaler = Autoscaler(plot)
    plot.add_node(1)
    plot.create(asking(plot, "unlucky", 2))
    first = autoscaler.wait_asked()
    autoscaler.say(first, "Failed", "OutOfStock", "the zone has no machine left")
    second = autoscaler.wait_asked(attempt=2)
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
    assert asked_for(autoscaler, second) == 3
    plot.delete_whole("unlucky")
    autoscaler.wait_nothing_asked()
