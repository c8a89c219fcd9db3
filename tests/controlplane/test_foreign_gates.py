"""Pods with gates of other controllers are not released, and those gates stay."""

import pytest

from kube.objects import names
from tests.controlplane.plot import Plot, condition, gates
from tests.controlplane.rayclusters import Json, gang, group

OTHER = "example.com/other"
HELD = [{"name": OTHER}]


def let_go(plot: Plot) -> None:
    """Remove the other gate from every pod, as its owner would."""

    def without(pod: Json) -> None:
        kept = [gate for gate in pod["spec"]["schedulingGates"] if gate["name"] != OTHER]
        pod["spec"]["schedulingGates"] = kept

    for pod in plot.all("Pod"):
        if OTHER in gates(pod):
            plot.replace("Pod", pod["metadata"]["name"], without)


def test_a_gang_with_another_gate_waits_and_names_it_then_runs_when_it_is_removed(
    plot: Plot,
) -> None:
    """No pod of the gang is released before all can be: the head waits with its workers."""
    plot.add_node(3)
    plot.create(gang("held", group(replicas=2, schedulingGates=HELD)))
    status = plot.wait_phase("held", "Queued", "ForeignGates", OTHER)
    assert condition(status, "Gathered")["status"] == "True"
    pods = plot.wait_pods("held", 3)
    assert sorted(gates(pod) for pod in pods) == [[OTHER, names.GATE]] * 2 + [[names.GATE]]
    let_go(plot)
    plot.wait_running("held", 3)


@pytest.mark.variant
def test_a_gang_whose_minimum_is_free_of_other_gates_runs_without_the_rest(plot: Plot) -> None:
    """Surplus pods with foreign gates do not hold the minimum back."""
    plot.add_node(3)
    minimum = {names.MIN_REPLICAS: "workers=0"}
    plot.create(gang("free", group(replicas=2, schedulingGates=HELD), annotations=minimum))
    plot.wait_phase("free", "Running")
    plot.wait_pods("free", 3)
    assert len(plot.bound("free", "head")) == 1
    assert [gates(pod) for pod in plot.pods("free", "worker")] == [[OTHER, names.GATE]] * 2
    let_go(plot)
    plot.wait_running("free", 3)


@pytest.mark.variant
def test_opting_out_leaves_the_gates_of_others_where_they_are(plot: Plot) -> None:
    """Only our own gate is ever removed."""
    plot.create(gang("leaves", group(replicas=1, schedulingGates=HELD)))
    plot.wait_phase("leaves", "Queued", "ForeignGates")
    plot.patch("RayCluster", "leaves", {"metadata": {"labels": {names.OPT_IN: "false"}}})
    plot.wait_no_gang("leaves")
    plot.wait(
        lambda: sorted(gates(pod) for pod in plot.pods("leaves")) == [[], [OTHER]],
        "only the other gate to be left",
    )
