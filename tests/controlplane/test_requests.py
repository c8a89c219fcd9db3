"""Muster counts what KubeRay adds to pods, and agrees with kube-scheduler to the last milli."""

from typing import Any

import pytest

from testbed.nodes import GPU, NodeSpec, copies
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import (
    Json,
    gang,
    group,
    pod,
    ray_cluster,
    requests,
)

# head 1 + autoscaler 500m; worker max(100m, wait-gcs-ready 200m). The same for memory.
EXACT_CPU, EXACT_MEMORY = "1700m", "1792Mi"
SMALL_WORKER = requests(cpu="100m", memory="128Mi")


def autoscaled(make: Any, name: str) -> Json:
    """A head with the autoscaler beside it and a worker smaller than its init container."""
    workers = group(replicas=1, least=1, resources=SMALL_WORKER)
    made: Json = make(name, workers, enableInTreeAutoscaling=True)
    return made


@pytest.mark.variant
@pytest.mark.parametrize(
    ("cpus", "memory", "fits"),
    [
        (EXACT_CPU, EXACT_MEMORY, True),
        ("1699m", EXACT_MEMORY, False),
        (EXACT_CPU, "1791Mi", False),
    ],
)
def test_side_cars_and_init_containers_count_as_kube_scheduler_counts_them(
    plot: Plot, cpus: str, memory: str, fits: bool
) -> None:
    """The node that kube-scheduler fills exactly takes the gang, the one that lacks 1 does not."""
    plot.add_node(cpus, memory=memory)
    plot.create(autoscaled(ray_cluster, "stock"))
    if fits:
        plot.wait_ready("stock", 2)
    else:
        plot.wait_unschedulable("stock")
    plot.delete("RayCluster", "stock")
    plot.wait_no_pods()
    plot.create(autoscaled(gang, "gang"))
    if fits:
        plot.wait_running("gang", 2)
    else:
        plot.wait_phase("gang", "Queued", "NeverFits", "the gang needs")


def test_extended_resources_must_be_on_one_node(plot: Plot) -> None:
    """Four GPUs on each of two nodes are no eight GPUs; the message says so in numbers."""
    plot.add_nodes(*copies(NodeSpec("four", cpus=8, gpus=4), 2))
    plot.create(gang("wide", group(replicas=1, resources=requests(**{GPU: "8"}))))
    largest = plot.node("four-0")
    said = f"workers needs 8 {GPU} on one node; the largest node that could run it, {largest}, has"
    plot.wait_phase("wide", "Queued", "NeverFits", said)
    plot.wait_event("wide", "NeverFits", said)
    plot.add_nodes(NodeSpec("eight", cpus=8, gpus=8))
    plot.wait_running("wide", 2)
    assert list(plot.bound("wide", "worker").values()) == ["eight"]


def test_the_holders_of_the_room_are_named_and_written_down(plot: Plot) -> None:
    """A gang and a bare pod share the node; the schema of the Gang takes the numbers."""
    plot.add_node(4)
    plot.create(pod("bare"))
    plot.wait(lambda: "nodeName" in plot.get("Pod", "bare")["spec"], "the bare pod to be bound")
    plot.create(gang("runs", group(replicas=1)))
    plot.wait_running("runs", 2)
    plot.create(gang("waits", group(replicas=1)))
    gang_held, bare_held = f"RayCluster {plot.name}/runs", f"Namespace {plot.name}"
    plot.wait_message("waits", f"2 of 4 cpu are held by {gang_held}, 1 by {bare_held}")
