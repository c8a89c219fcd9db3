"""Muster leaves other pods alone. Each is shown to run: a gated pod would never be bound."""

from collections import Counter

import msgspec
import pytest

from kube.codec.pod import pod_shape
from kube.codec.profiles.scheduler_profiles import STOCK
from kube.foreseen.admission import Admission
from kube.foreseen.submitter import submitter_of
from kube.objects import names
from kube.objects.core import Pod
from kube.objects.ray import RayJob
from testbed.following import Follower
from testbed.nodes import NodeSpec
from tests.controlplane.plot import Plot, gates, is_ready, label
from tests.controlplane.rayclusters import (
    GANG,
    Json,
    gang,
    group,
    head,
    on_nodes,
    pod,
    ray_cluster,
    ray_job,
    requests,
)

FORGED = {names.RAY_NODE_TYPE: "worker", names.RAY_CLUSTER: "forged", names.RAY_GROUP: "workers"}


def wait_ready_pod(plot: Plot, name: str) -> None:
    plot.wait(lambda: is_ready(plot.get("Pod", name)), f"pod {name} to be ready")


def test_a_plain_pod_runs(plot: Plot) -> None:
    """A pod that has nothing to do with Ray never meets the webhook."""
    plot.add_node(2)
    assert gates(plot.create(pod("plain"))) == []
    wait_ready_pod(plot, "plain")


def test_a_pod_with_forged_ray_labels_and_no_ray_cluster_runs(plot: Plot) -> None:
    """Labels do not make a gang: tenants write those. Only a RayCluster that owns the pod does."""
    plot.add_node(2)
    assert gates(plot.create(pod("forged", labels={**FORGED, **GANG}))) == []
    wait_ready_pod(plot, "forged")


def test_a_plain_ray_cluster_runs_beside_a_gang_that_waits(plot: Plot) -> None:
    """A RayCluster that did not opt in needs no release, because it has no gate."""
    plot.add_node(3)
    plot.create(gang("waits", group(replicas=8)))
    plot.wait_phase("waits", "Queued")
    plot.create(ray_cluster("plain", group(replicas=2)))
    plot.wait_ready("plain", 3)
    assert "plain" not in plot.gangs()


@pytest.mark.parametrize("template", ["its own", "of KubeRay"])
def test_the_submitter_of_a_ray_job_runs_as_it_was_foreseen(plot: Plot, template: str) -> None:
    """KubeRay makes it once the cluster is ready, though the job is a gang: gating it would be a
    deadlock."""
    plot.add_node(4)
    job = ray_job("job", group(replicas=1), labels=GANG)
    if template == "of KubeRay":
        del job["spec"]["submitterPodTemplate"]
    plot.create(job)

    def submitted() -> list[Json]:
        pods = [p for p in plot.all("Pod") if label(p, "job-name") == "job"]
        assert all(gates(each) == [] for each in pods)
        return [each for each in pods if each["status"]["phase"] == "Succeeded"]

    (pod,) = plot.wait(submitted, "the submitter to have run")
    asked = {**plot.get("RayJob", "job"), "status": {}}
    made = msgspec.json.decode(msgspec.json.encode(asked), type=RayJob)
    found = submitter_of(made, Admission(), STOCK)
    assert found is not None
    assert found.shape == pod_shape(msgspec.convert(pod, Pod))
    assert {*found.labels} <= {*pod["metadata"]["labels"].items()}
    owner = pod["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Job", "job", True)


@pytest.mark.variant
def test_the_submitter_of_a_ray_job_has_room_beside_its_gang(plot: Plot) -> None:
    """KubeRay makes it when the last worker runs: meanwhile no other gang takes its room."""
    plot.add_node(2)
    job = ray_job("job", group(replicas=2), labels=GANG)
    job["metadata"]["annotations"] = {names.MIN_REPLICAS: "workers=1"}
    job["spec"]["submitterPodTemplate"]["spec"]["containers"][0]["resources"] = requests(cpu="1")
    plot.create(job)
    name = plot.wait(lambda: next(iter(plot.gangs()), ""), "the gang of the job")
    plot.wait_message(name, "the gang with its submitter needs 3 cpu in all")
    plot.add_nodes(NodeSpec("second", cpus=1, memory="64Gi"))
    plot.wait(lambda: bound(plot)[name] == 2, "the minimum to be bound")
    plot.create(gang("later"))
    plot.wait_phase("later", "Queued", "InsufficientResources")

    plot.add_nodes(NodeSpec("third", cpus=2, memory="64Gi"))
    plot.wait_running("later", 1)
    plot.wait(lambda: "job" in bound(plot), "the submitter to be bound")
    assert bound(plot) == {name: 3, "later": 1, "job": 1}


def bound(plot: Plot) -> Counter[str]:
    """How many pods of which RayCluster or Job are on nodes."""
    pods = [pod for pod in plot.all("Pod") if "nodeName" in pod["spec"]]
    return Counter(label(pod, "job-name") or label(pod, names.RAY_CLUSTER) for pod in pods)


@pytest.mark.variant
@pytest.mark.parametrize(("cpus", "phase"), [(4, "Running"), (1, "Queued")])
def test_redis_cleanup_runs_when_a_gang_with_fault_tolerance_is_deleted(
    plot: Plot, cpus: int, phase: str
) -> None:
    """The deletion of such a RayCluster waits for this pod, which copies most of the head's
    labels. It goes with the RayCluster as soon as it has run, so only a watch is sure to see it."""
    plot.add_node(cpus)
    options = {"redisAddress": "redis:6379"}
    plot.create(gang("durable", group(replicas=1), gcsFaultToleranceOptions=options))
    plot.wait_phase("durable", phase)
    seen: list[Json] = []

    def see(_: str, found: Json) -> None:
        if label(found, names.RAY_NODE_TYPE) == "redis-cleanup":
            seen.append(found)

    with Follower(plot.cluster.api, f"/api/v1/namespaces/{plot.name}/pods", see) as follower:
        follower.wait_synced()
        plot.delete("RayCluster", "durable")
        plot.wait(
            lambda: any(each["status"]["phase"] == "Succeeded" for each in seen),
            "redis-cleanup to have run",
        )
    assert all(gates(each) == [] for each in seen)
    plot.wait_gone("RayCluster", "durable")


@pytest.mark.variant
def test_a_gated_template_of_a_plain_ray_cluster_keeps_only_its_own_gate(plot: Plot) -> None:
    """A pod held by another controller is left alone, and gets no gate of ours."""
    plot.add_node(4)
    other = [{"name": "example.com/other"}]
    plot.create(ray_cluster("plain", group(replicas=1), head_group=head(schedulingGates=other)))
    plot.wait_pods("plain", 2)
    (found,) = plot.pods("plain", "head")
    assert gates(found) == ["example.com/other"]


def restricted(cluster: Json) -> Json:
    """The RayCluster with pods that our own namespace takes."""
    templates = [cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]]
    for spec in (each["template"]["spec"] for each in templates):
        profile = {"seccompProfile": {"type": "RuntimeDefault"}}
        spec["securityContext"] = {"runAsNonRoot": True, **profile}
        for container in spec["containers"]:
            dropped = {"capabilities": {"drop": ["ALL"]}}
            container["securityContext"] = {"allowPrivilegeEscalation": False, **dropped}
    return cluster


@pytest.mark.parametrize("namespace", [names.KUBE_SYSTEM, names.DEFAULT_NAMESPACE])
def test_what_muster_needs_is_untouched_though_a_label_asks_for_it(
    plot: Plot, namespace: str
) -> None:
    """A RayCluster there runs as if there were no Muster, even where one pod has no room."""
    plot.add_node(2)
    api = plot.cluster.api
    plot.cluster.kubectl("label", "namespace", namespace, f"{names.OPT_IN}=true", "--overwrite")
    made = restricted(on_nodes(gang("needed", group(replicas=2)), plot.selector))
    clusters = f"/apis/ray.io/v1/namespaces/{namespace}/rayclusters"
    api.create(clusters, made)

    def pods() -> list[Json]:
        found: list[Json] = api.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
        return [each for each in found if label(each, names.RAY_CLUSTER) == "needed"]

    plot.wait(lambda: sum("nodeName" in each["spec"] for each in pods()) == 2, "two to be bound")
    plot.create(gang("later"))
    plot.wait_phase("later", "Queued")  # so the RayCluster was heard of before
    assert [gates(each) for each in pods()] == [[]] * 3
    assert api.get(f"/apis/muster.dev/v1alpha1/namespaces/{namespace}/gangs")["items"] == []
    plot.cluster.kubectl("delete", "raycluster", "needed", "-n", namespace)
    plot.wait(lambda: pods() == [], "its pods to be gone")
    plot.cluster.kubectl("label", "namespace", namespace, f"{names.OPT_IN}-")
