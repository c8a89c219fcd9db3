"""The testbed starts a real control plane, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.cluster import Cluster
from testbed.errors import TestbedError
from testbed.nodes import GPU, NodeSpec, copies
from testbed.options import Options
from testbed.pytest_plugin import MakeCluster
from testbed.standing import birth
from testbed.waiting import wait_until

pytestmark = pytest.mark.controlplane

ROOT = Path(__file__).parent.parent.parent


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def read(cluster: Cluster, *args: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(cluster.kubectl("get", *args, "-o", "json"))
    return answer


def phase(cluster: Cluster, namespace: str, name: str) -> str:
    return str(read(cluster, "pod", name, "-n", namespace)["status"]["phase"])


def test_nodes_have_their_shape_and_no_taint_but_their_own(shared_cluster: Cluster) -> None:
    spec = NodeSpec(
        name="shaped",
        cpus=96,
        memory="768Gi",
        gpus=8,
        labels={"zone": "a"},
        taints=("reserved=yes:NoSchedule",),
        resources={"example.com/nic": 2},
        allocatable={"cpu": 90},
    )
    shared_cluster.add_nodes([spec])
    node = read(shared_cluster, "node", "shaped")
    assert node["status"]["capacity"]["cpu"] == "96"
    assert node["status"]["allocatable"]["cpu"] == "90"
    assert node["status"]["allocatable"][GPU] == "8"
    assert node["status"]["allocatable"]["example.com/nic"] == "2"
    assert node["metadata"]["labels"]["zone"] == "a"
    assert node["spec"]["taints"] == [{"key": "reserved", "value": "yes", "effect": "NoSchedule"}]


def test_a_pod_is_bound_runs_and_goes(shared_cluster: Cluster) -> None:
    shared_cluster.create_namespace("runs")
    shared_cluster.add_nodes([NodeSpec(name="runs")])
    pinned = pod("pinned", nodeSelector={"kubernetes.io/hostname": "runs"})
    shared_cluster.api.create("/api/v1/namespaces/runs/pods", pinned)
    wait_until(lambda: phase(shared_cluster, "runs", "pinned") == "Running", "the pod to run")
    running = read(shared_cluster, "pod", "pinned", "-n", "runs")
    conditions = {c["type"]: c["status"] for c in running["status"]["conditions"]}
    assert running["spec"]["nodeName"] == "runs"
    assert conditions["Ready"] == conditions["PodScheduled"] == "True"
    assert running["status"]["podIP"]
    shared_cluster.kubectl("delete", "pod", "pinned", "-n", "runs", "--timeout=120s")


def test_a_pod_of_a_job_ends(shared_cluster: Cluster) -> None:
    shared_cluster.create_namespace("jobs")
    shared_cluster.add_nodes([NodeSpec(name="jobs")])
    shared_cluster.kubectl("create", "job", "once", "--image=none", "-n", "jobs")
    shared_cluster.kubectl(
        "wait", "--for=condition=Complete", "job/once", "-n", "jobs", "--timeout=120s"
    )


def test_a_gated_pod_stays_and_is_deleted(shared_cluster: Cluster) -> None:
    shared_cluster.create_namespace("gated")
    gated = pod("gated", schedulingGates=[{"name": "example.com/gate"}])
    shared_cluster.api.create("/api/v1/namespaces/gated/pods", gated)
    assert phase(shared_cluster, "gated", "gated") == "Pending"
    shared_cluster.kubectl("delete", "pod", "gated", "-n", "gated", "--timeout=120s")


def ray_state(cluster: Cluster, name: str) -> str:
    status = read(cluster, "raycluster", name).get("status", {})
    return str(status.get("state", ""))


def test_kuberays_own_sample_becomes_ready_and_goes_with_its_pods(cluster: Cluster) -> None:
    cluster.add_nodes(copies(NodeSpec("node", cpus=4), 2))
    sample = yaml.safe_load((cluster.samples / "ray-cluster.sample.yaml").read_text())
    name = sample["metadata"]["name"]
    cluster.kubectl("apply", "-f", "-", input=json.dumps(sample))
    wait_until(lambda: ray_state(cluster, name) == "ready", "the Ray cluster to be ready")
    pods = read(cluster, "pods", "-l", f"ray.io/cluster={name}")["items"]
    kinds = sorted(pod["metadata"]["labels"]["ray.io/node-type"] for pod in pods)
    assert kinds == ["head", "worker"]
    cluster.kubectl("delete", "raycluster", name)
    # The garbage collector knows the kind from its start, and need not look for it every 30 s.
    wait_until(lambda: not read(cluster, "pods")["items"], "the pods to be collected")


@pytest.mark.parametrize("sample", ["ray-job.sample.yaml", "ray-service.sample.yaml"])
def test_kuberay_makes_ray_clusters_for_jobs_and_services(
    shared_cluster: Cluster, sample: str
) -> None:
    namespace = sample.split(".", maxsplit=1)[0]
    shared_cluster.create_namespace(namespace)
    manifest = str(shared_cluster.samples / sample)
    shared_cluster.kubectl("apply", "-n", namespace, "-f", manifest)
    kind = "rayclusters.ray.io"
    wait_until(
        lambda: read(shared_cluster, kind, "-n", namespace)["items"], f"the cluster of {sample}"
    )


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster without KubeRay that tests may stop and restart, with a user."""
    options = Options(kuberay=False, users={"tenant": ("team-a",)})
    with Cluster.start(tmp_path_factory.mktemp("small") / "root", options) as cluster:
        yield cluster


def test_two_clusters_at_once_know_nothing_of_each_other(
    small: Cluster, make_cluster: MakeCluster
) -> None:
    other = make_cluster(Options(kuberay=False))
    other.add_nodes([NodeSpec("only-here")])
    assert "only-here" in other.kubectl("get", "nodes")
    assert "only-here" not in small.kubectl("get", "nodes")


def test_the_api_server_comes_back_with_its_data(small: Cluster) -> None:
    small.create_namespace("kept")
    small.process("kube-apiserver").restart()
    small.wait_healthy("kube-apiserver")
    assert "kept" in small.kubectl("get", "namespaces")


def test_a_paused_api_server_answers_nothing_until_it_is_resumed(small: Cluster) -> None:
    small.process("kube-apiserver").pause()
    with pytest.raises(TestbedError):
        small.kubectl("get", "namespaces", "--request-timeout=1s")
    small.process("kube-apiserver").resume()
    assert "default" in small.kubectl("get", "namespaces")


def may_list_pods(cluster: Cluster, flag: str) -> bool:
    """What kubectl says with this kubeconfig; a no is an error of its own."""
    with contextlib.suppress(TestbedError):
        return cluster.kubectl("auth", "can-i", "list", "pods", flag).strip() == "yes"
    return False


def test_users_have_the_rights_that_rbac_grants_and_no_others(small: Cluster) -> None:
    small.kubectl("create", "clusterrolebinding", "t", "--clusterrole=view", "--group=team-a")
    flag = f"--kubeconfig={small.user_kubeconfig('tenant')}"
    # The role is put together by a controller, and the API server hears of the binding by a watch.
    wait_until(lambda: may_list_pods(small, flag), "the tenant to have its rights")
    with pytest.raises(TestbedError):
        small.kubectl("auth", "can-i", "delete", "pods", flag)
    with pytest.raises(TestbedError, match="tenant"):
        small.user_kubeconfig("nobody")


def test_a_service_account_connects_as_itself(small: Cluster) -> None:
    path = small.service_account_kubeconfig("default", "default")
    who = small.kubectl("auth", "whoami", f"--kubeconfig={path}")
    assert "system:serviceaccount:default:default" in who


def test_a_scheduler_configuration_is_used(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(Options(kuberay=False, scheduler=False))
    cluster.add_nodes([NodeSpec("node")])
    cluster.start_scheduler({"profiles": [{"schedulerName": "other"}]})
    body = pod("waits", schedulerName="other")
    cluster.api.create("/api/v1/namespaces/default/pods", body)
    wait_until(lambda: phase(cluster, "default", "waits") == "Running", "the pod to run")


OWNER = """
import signal, sys
from pathlib import Path
from testbed.cluster import Cluster
from testbed.options import Options
with Cluster.start(Path(sys.argv[1]), Options(kuberay=False)) as cluster:
    cluster.process("kwok").pause()
    print(*(process.pid for process in cluster.processes.values()), flush=True)
    signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_stays_when_the_owner_dies(number: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path / "root")]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as owner:
        assert owner.stdout
        pids = [int(word) for word in owner.stdout.readline().split()]
        assert len(pids) == 5
        owner.send_signal(number)
        owner.wait()
    wait_until(lambda: not any(birth(pid) for pid in pids), "all processes to be gone")
