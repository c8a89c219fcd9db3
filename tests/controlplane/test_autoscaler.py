"""Ray's autoscaler goes on beside Muster, also where Muster took a gang's surplus away."""

import json

import pytest

from testbed.muster import Muster
from tests.controlplane.plot import Plot, is_held
from tests.controlplane.rayclusters import gang, group
from tests.controlplane.test_preemption import linger, uids, urgent, with_queue
from tests.controlplane.test_running import minimums

PATH = "/apis/ray.io/v1/namespaces/{}/rayclusters/{}"
GROUP = "/spec/workerGroupSpecs/0"


def scale(plot: Plot, cluster: str, replicas: int, *deleted: str) -> None:
    """Patch a RayCluster as the KubeRay provider of Ray's autoscaler does (kuberay/ in Ray)."""
    operations = [
        {"op": "replace", "path": f"{GROUP}/replicas", "value": replicas},
        {"op": "replace", "path": f"{GROUP}/scaleStrategy", "value": {"workersToDelete": deleted}},
    ]
    body, path = json.dumps(operations).encode(), PATH.format(plot.name, cluster)
    with plot.cluster.api.session() as session:
        session.call("PATCH", path, body, "application/json-patch+json")


def held(plot: Plot) -> list[str]:
    return [pod["metadata"]["name"] for pod in plot.pods("low", "worker") if is_held(pod)]


def evictions(muster: Muster) -> float:
    """How many evictions the API server has accepted."""
    line = 'muster_evictions_total{outcome="accepted"} '
    found = [each for each in muster.metrics().splitlines() if each.startswith(line)]
    return sum(float(each.removeprefix(line)) for each in found)


@pytest.mark.variant
def test_rays_autoscaler_scales_a_gang_whose_surplus_is_evicted(plot: Plot, muster: Muster) -> None:
    """It does not count pods that are being deleted, and takes gated ones for pending.

    What it asks for moves the surplus and nothing else: the pods of the minimum stay the same.
    """
    plot.add_priority_class("urgent", 1000)
    labels = with_queue(plot, "4500m")  # the head has the autoscaler beside it: half a CPU
    low = gang("low", group(replicas=3, least=1), labels=labels, enableInTreeAutoscaling=True)
    plot.create(low)
    plot.wait_running("low", 4)
    before, asked = [pod["metadata"]["name"] for pod in plot.pods("low")], evictions(muster)

    linger(plot, before, ["example.com/lingers"])
    plot.create(urgent(plot, "urgent", 1, labels))
    plot.wait(lambda: len(plot.pods("low")) == 2, "both surplus workers to be on their way")
    minimum = uids(plot, "low")
    scale(plot, "low", 2)  # one worker is left by its count, and it wants one more
    linger(plot, before, None)
    plot.wait_running("urgent", 2)
    plot.wait(lambda: len(held(plot)) == 1, "one worker to be made again")

    scale(plot, "low", 3)  # the pending one is not enough
    plot.wait(lambda: len(held(plot)) == 2, "another worker to wait")
    given_up = held(plot)[0]
    scale(plot, "low", 2, given_up)  # it was pending for too long
    plot.wait(lambda: len(held(plot)) == 1 and given_up not in held(plot), "that one to be gone")
    scale(plot, "low", 3)
    plot.wait(lambda: len(held(plot)) == 2, "another one to be asked for")
    plot.wait(lambda: minimums(plot, "low")["workers"] == (1, 3), "all workers to be counted")
    assert (uids(plot, "low") & minimum, plot.status("low")["phase"]) == (minimum, "Running")
    assert evictions(muster) == asked + 2

    plot.delete_whole("urgent")
    plot.wait_running("low", 4)
    assert uids(plot, "low") >= minimum
