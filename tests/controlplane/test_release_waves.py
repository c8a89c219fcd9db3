"""Gangs start that only one order of binding satisfies.

Workers want a pod of their cluster in their zone, and the head has to be in another one: the first
worker may begin as long as the head is not bound, and no worker may once it is.
"""

import pytest

from kube.objects import names
from testbed.nodes import NodeSpec
from tests.controlplane.plot import Plot, is_held, pin
from tests.controlplane.rayclusters import Json, gang, group, head

pytestmark = pytest.mark.versions

ZONE = "example.com/zone"


def add_zones(plot: Plot) -> None:
    specs = (NodeSpec(f"{zone}-1", cpus=3, labels={ZONE: zone}) for zone in ("red", "blue"))
    plot.add_nodes(*specs)


def apart(workers: int) -> Json:
    """A gang with its head in one zone, and workers in the other with affinity to all of it."""
    term = {"labelSelector": {"matchLabels": {names.RAY_CLUSTER: "apart"}}, "topologyKey": ZONE}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    workers_group = group(replicas=workers, affinity=affinity, nodeSelector={ZONE: "blue"})
    return gang("apart", workers_group, head_group=head(nodeSelector={ZONE: "red"}))


def lose(plot: Plot, pod: Json) -> None:
    """Have a pod be gone at once: one that is being deleted still counts for affinity."""
    name = pod["metadata"]["name"]
    plot.cluster.kubectl("delete", "pod", name, "-n", plot.name, "--grace-period=0", "--force")


def waves(plot: Plot) -> dict[str, int]:
    sets = plot.status("apart")["placement"]["podSets"]
    return {each["name"]: each["assignments"][0].get("wave", 0) for each in sets}


def test_the_head_waits_for_workers_that_could_not_begin_after_it(plot: Plot) -> None:
    """Head first, as gangs are released otherwise, no worker would ever be bound."""
    add_zones(plot)
    plot.create(apart(workers=2))
    pods = plot.wait_running("apart", 3)
    assert waves(plot) == {names.RAY_HEAD_GROUP: 1, "workers": 0}
    nodes = [plot.node("blue-1"), plot.node("blue-1"), plot.node("red-1")]
    assert sorted(pin(pod)[0] for pod in pods) == nodes


@pytest.mark.variant
def test_a_lost_worker_that_cannot_begin_any_more_keeps_its_gate(plot: Plot) -> None:
    """It says why; released to its old slot it would be refused, deleted and made for ever."""
    add_zones(plot)
    plot.create(apart(workers=1))
    plot.wait_running("apart", 2)
    [lost] = plot.pods("apart", "worker")
    lose(plot, lost)
    status = plot.wait_phase("apart", "Running", "NoFeasibleNode")
    assert "affinity between pods" in status["message"]
    [successor] = plot.wait(lambda: plot.pods("apart", "worker"), "the worker's successor")
    assert successor["metadata"]["uid"] != lost["metadata"]["uid"]
    assert is_held(successor)
