"""Overlays and combinations are taken by a real API server, and the one without a webhook works.

One cluster of its own: the overlay with the policy is applied whole, and its pods, which kwok runs,
are admitted to the restricted namespace. The coordinator that works runs out of the cluster, under
the account and with the variables that the overlay gives it. All others are applied as a dry run.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kube.objects import names
from testbed.cluster import Cluster
from testbed.errors import TestbedError
from testbed.manifests import MANIFESTS, apply, built, combination
from testbed.muster import ELECTION_PACE, NAMESPACE, with_muster
from testbed.nodes import NodeSpec
from testbed.options import Options
from testbed.waiting import wait_until
from tests.controlplane.plot import Plot, gates, is_held, pin, plotted
from tests.controlplane.rayclusters import GANG, Json, gang, group, ray_cluster

OVERLAYS = MANIFESTS / "overlays"
POLICY = OVERLAYS / "mutating-admission-policy"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
OF_OTHERS = ("cert-manager.io/v1", "monitoring.coreos.com/v1")
"""Their definitions are not part of the testbed: such objects are built, and not applied."""

COMBINATIONS = {
    "everything": [
        *(
            "extender",
            "guard-extender",
            "app-wrapper",
            "wrapped-secrets",
            "provisioning",
            "dashboard",
        ),
        *("viewer", "fit"),
        *("monitoring", "network-policies", "cert-manager", "cert-manager-extender", "ha"),
    ],
    "policy": ["scheduler", "network-policies", "mutating-admission-policy", "ha"],
}
"""Components in the order of docs/install.md."""

DRY_RUN = ("--dry-run=server", "--request-timeout=240s")
"""kubectl gives the API server 32 s for its schemas; on a busy machine they take longer."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster in which the overlay without a webhook is applied."""
    directory = tmp_path_factory.mktemp("overlays") / "root"
    with Cluster.start(directory, with_muster(Options())) as cluster:
        cluster.add_nodes([NodeSpec("system-0", cpus=8), NodeSpec("system-1", cpus=8)])
        cluster.kubectl("apply", "--warnings-as-errors", "-k", str(POLICY))
        yield cluster
    shutil.rmtree(directory, ignore_errors=True)


def variables(objects: list[Json], program: str) -> dict[str, str]:
    """The variables that an overlay gives a program, but for those that the pod is to fill in."""
    (found,) = [each for each in objects if each["metadata"]["name"] == f"muster-{program}"
                and each["kind"] == "Deployment"]  # fmt: skip
    (container,) = found["spec"]["template"]["spec"]["containers"]
    return {each["name"]: each["value"] for each in container["env"] if "value" in each}


@pytest.fixture(scope="module")
def gated(cluster: Cluster) -> Cluster:
    """The same, with the coordinator that decides."""
    own = {
        "KUBECONFIG": str(cluster.service_account_kubeconfig(NAMESPACE, "muster-coordinator")),
        "NAMESPACE": NAMESPACE,
        "IDENTITY": "out-of-the-cluster",
        "LISTEN_ADDRESS": "127.0.0.1",
        "LISTEN_PORT": str(cluster.ports.allocate()),
        "BIND_PATIENCE": "1",
        **ELECTION_PACE,
    }
    given = variables(built(cluster, POLICY), "coordinator")
    environment = given | {f"MUSTER_COORDINATOR_{name}": value for name, value in own.items()}
    root = str(MANIFESTS.parent)
    command = [sys.executable, "-m", "coordinator"]
    cluster.spawn("coordinator", command, environment | {"PYTHONPATH": root})
    wait_policy(cluster, "default")
    return cluster


@pytest.fixture
def plot(gated: Cluster, request: pytest.FixtureRequest) -> Iterator[Plot]:
    """A namespace and nodes of one test's own."""
    number = request.session.items.index(request.node)
    with plotted(gated, f"policy-{number}") as plot:
        yield plot


OWNER: Json = {
    "apiVersion": names.RAY_API_VERSION,
    "kind": "RayCluster",
    "name": "a",
    "uid": "1",
    "controller": True,
}


def made(
    cluster: Cluster,
    namespace: str = "default",
    owner: Json = OWNER,
    node_type: str = "worker",
    **spec: Any,
) -> Json:
    """A pod as it would be created; nothing is. It may do so little that any namespace takes it."""
    metadata = {
        "name": "asked",
        "labels": {names.RAY_NODE_TYPE: node_type},
        "ownerReferences": [owner],
    }
    locked = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    content = {
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "main", "image": "none", "securityContext": locked}],
    }
    path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
    return cluster.api.create(path, {"metadata": metadata, "spec": {**content, **spec}})


def is_gated(cluster: Cluster, namespace: str) -> bool:
    """Whether a pod that a RayCluster controls would be gated there."""
    return is_held(made(cluster, namespace))


def wait_policy(cluster: Cluster, namespace: str, *, gates: bool = True) -> None:
    """Wait until the policy gates, or does not gate, pods of RayClusters."""
    wait_until(lambda: is_gated(cluster, namespace) is gates, "the API server to know the policy")


# ---- what is applied


def test_all_pods_of_an_installation_are_admitted_and_run(cluster: Cluster) -> None:
    """To a namespace that takes restricted pods only, with a priority class of the system's."""
    cluster.kubectl(
        *("wait", "deployment", "--all", "-n", NAMESPACE),
        *("--for=condition=Available", "--timeout=120s"),
    )
    found = cluster.api.get(DEPLOYMENTS)["items"]
    assert [each["metadata"]["name"] for each in found] == ["muster-coordinator"]
    accounts = cluster.api.get(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts")["items"]
    assert {each["metadata"]["name"] for each in accounts} == {"default", "muster-coordinator"}
    pods = cluster.api.get(f"/api/v1/namespaces/{NAMESPACE}/pods")["items"]
    assert {pod["spec"]["nodeName"] for pod in pods} == {"system-0", "system-1"}


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(each.name for each in OVERLAYS.iterdir()))
def test_an_overlay_is_taken_without_a_warning(cluster: Cluster, name: str) -> None:
    assert taken(cluster, OVERLAYS / name) == {"muster:dev"}


@pytest.mark.parametrize("name", sorted(COMBINATIONS))
def test_a_combination_is_taken_without_a_warning(
    cluster: Cluster, tmp_path: Path, name: str
) -> None:
    """One image name in the operator's overlay is enough for all programs."""
    images = [{"name": "muster", "newName": "registry.example.com/muster", "newTag": "1"}]
    overlay = combination(tmp_path / "overlay", COMBINATIONS[name], images=images)
    assert taken(cluster, overlay) == {"registry.example.com/muster:1"}


def taken(cluster: Cluster, overlay: Path) -> set[str]:
    """Have the API server judge an overlay and its pods; returns the images that are ours."""
    objects = built(cluster, overlay)
    known = (each for each in objects if each["apiVersion"] not in OF_OTHERS)
    apply(cluster, known, *DRY_RUN)
    pods = [pod_of(each) for each in objects if each["kind"] == "Deployment"]
    apply(cluster, pods, *DRY_RUN)
    containers = [each for pod in pods for each in pod["spec"]["containers"]]
    return {each["image"] for each in containers if "kube-scheduler" not in each["image"]}


def pod_of(deployment: Json) -> Json:
    """A pod as the Deployment's controller would make it; its account need not exist for this."""
    template, metadata = deployment["spec"]["template"], deployment["metadata"]
    spec = {k: v for k, v in template["spec"].items() if k != "serviceAccountName"}
    made: dict[str, Any] = {"name": metadata["name"], "namespace": metadata["namespace"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**made, "labels": template["metadata"]["labels"]},
        "spec": spec,
    }


def test_a_pod_that_may_do_more_would_not_be_admitted(cluster: Cluster) -> None:
    """What shows that the tests above prove something."""
    (found,) = cluster.api.get(DEPLOYMENTS)["items"]
    pod = pod_of(found)
    del pod["spec"]["securityContext"]["seccompProfile"]
    with pytest.raises(TestbedError, match="violates PodSecurity"):
        apply(cluster, [pod], "--dry-run=server")


# ---- gates without a webhook


def test_a_gang_starts_whole_without_a_webhook(plot: Plot) -> None:
    """Opted in by an annotation, which no parameter of a policy could be selected by."""
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    assert plot.cluster.api.get(path)["items"] == []
    plot.add_node(2)
    plot.create(ray_cluster("gang", group(replicas=2), annotations=GANG))
    plot.wait_phase("gang", "Queued")
    pods = plot.wait_pods("gang", 3)
    assert all(is_held(pod) for pod in pods)
    assert not any("managedFields" in pod["metadata"] for pod in pods)
    plot.add_equal_nodes(1, cpus=1)
    pods = plot.wait_running("gang", 3)
    assert [gates(pod) for pod in pods] == [[]] * 3
    assert all(pin(pod) for pod in pods)


@pytest.mark.variant
def test_pods_of_no_gang_are_let_go_in_a_namespace_of_gangs(plot: Plot) -> None:
    """A label of the namespace makes gangs, and one of a RayCluster takes it out of them."""
    plot.add_node(2)
    plot.cluster.kubectl("label", "namespace", plot.name, f"{names.OPT_IN}=true")
    plot.create(ray_cluster("silent", group(replicas=2)))
    plot.wait_phase("silent", "Queued")
    plot.create(ray_cluster("out", group(replicas=1), labels={names.OPT_IN: "false"}))
    pods = plot.wait_ready("out", 2)
    assert [pin(pod) for pod in pods] == [[], []]
    assert {*plot.gangs()} == {"silent"}
    assert all(is_held(pod) for pod in plot.wait_pods("silent", 3))


@pytest.mark.variant
def test_members_that_no_policy_gated_are_told_and_made_again(plot: Plot) -> None:
    """What came while the policy was not in force; those without room come back gated."""
    plot.add_node(2)
    plot.cluster.kubectl("delete", BINDINGS.rpartition("/")[2], "muster-gate")
    try:
        wait_policy(plot.cluster, plot.name, gates=False)
        plot.create(gang("late", group(replicas=2)))
        plot.wait_phase("late", "Queued", "NotReleasedByMuster", "1 pod was not released")
    finally:
        plot.cluster.kubectl("apply", "-k", str(POLICY))
    wait_policy(plot.cluster, plot.name)
    plot.wait(lambda: sum(map(is_held, plot.pods("late"))) == 1, "the pod without room to be gated")
    plot.add_equal_nodes(1, cpus=1)
    pods = plot.wait_running("late", 3)
    assert sorted(len(pin(pod)) for pod in pods) == [0, 0, 1]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, [names.GATE]),
        ({"node_type": "head"}, [names.GATE]),
        ({"owner": {**OWNER, "apiVersion": "ray.io/v1alpha1"}}, [names.GATE]),
        ({"schedulingGates": [{"name": "example.com/other"}]}, ["example.com/other", names.GATE]),
        ({"schedulingGates": [{"name": names.GATE}]}, [names.GATE]),
        ({"nodeName": "system-0"}, []),
        ({"node_type": "redis-cleanup"}, []),
        ({"owner": {**OWNER, "controller": False}}, []),
        ({"owner": {**OWNER, "kind": "RayJob"}}, []),
        ({"owner": {**OWNER, "apiVersion": "ray.io.example.com/v1"}}, []),
    ],
)
def test_the_policy_gates_what_the_webhook_looks_at(
    gated: Cluster, changed: Json, expected: list[str]
) -> None:
    """The rest is left alone: nothing would take the gate off, or it could not have one."""
    assert gates(made(gated, **changed)) == expected


@pytest.mark.parametrize("namespace", [names.KUBE_SYSTEM, names.DEFAULT_NAMESPACE])
def test_what_muster_needs_is_never_gated(gated: Cluster, namespace: str) -> None:
    """Even where a label asks for it."""
    gated.kubectl("label", "namespace", namespace, f"{names.OPT_IN}=true", "--overwrite")
    assert is_gated(gated, "default")
    assert not is_gated(gated, namespace)
