"""Server-side apply works on pods whose field owners the API server does not track."""

import json

import pytest

from kube.objects import names
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, gang, group

CONFLICT = 409


def owners(pod: Json) -> list[str]:
    """The managers of fields of a pod, by name."""
    return sorted({each["manager"] for each in pod["metadata"].get("managedFields", ())})


def apply(plot: Plot, pod: str, labels: Json, query: str = "") -> int:
    """Apply labels to a pod as a client of its own; returns the status."""
    metadata = {"name": pod, "labels": labels}
    body = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata}).encode()
    path = f"/api/v1/namespaces/{plot.name}/pods/{pod}?fieldManager=somebody{query}"
    with plot.cluster.api.session() as session:
        return session.request("PATCH", path, body, "application/apply-patch+yaml")[0]


def test_the_pods_of_a_gang_have_no_field_owners_from_creation_to_running(plot: Plot) -> None:
    """Patches of ours, of kube-scheduler and of the kubelet bring none back."""
    plot.add_node(3)
    plot.create(gang("light", group(replicas=2)))
    for pod in plot.wait_running("light", 3):
        assert owners(pod) == []


@pytest.mark.variant
def test_a_pod_after_a_server_side_apply_is_tracked_from_then_on_and_still_released(
    plot: Plot,
) -> None:
    """All that was there before is then of `before-first-apply`, and taken only by force."""
    plot.create(gang("applied", group(replicas=1)))
    plot.wait_phase("applied", "Queued")
    first, second = (pod["metadata"]["name"] for pod in plot.wait_pods("applied", 2))
    assert apply(plot, first, {"team": "blue"}) == 200
    assert owners(plot.get("Pod", first)) == ["before-first-apply", "somebody"]
    assert apply(plot, second, {names.RAY_CLUSTER: "another"}) == CONFLICT
    assert apply(plot, second, {names.RAY_CLUSTER: "applied"}, "&force=true") == 200
    plot.add_node(2)
    assert [owners(pod) != [] for pod in plot.wait_running("applied", 2)] == [True, True]
