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
from testbed.components import SCHEDULER
from testbed.errors import TestbedError
from testbed.nodes import GPU, NodeSpec, copies
from testbed.standing import birth
from testbed.waiting import wait_until
from tests.children import child

pytestmark = [pytest.mark.controlplane, pytest.mark.variant]

ROOT = Path(__file__).parents[3]


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def read(cluster: Cluster, *args: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(cluster.kubectl("get", *args, "-o", "json"))
    return answer


def phase(cluster: Cluster, namespace: str, name: str) -> str:
    return str(read(cluster, "pod", name, "-n", namespace)["status"]["phase"])


def test_nodes_have_their_shape_and_no_taint_but_their_own(whole: Cluster) -> None:
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
    whole.add_nodes([spec])
    node = read(whole, "node", "shaped")
    assert node["status"]["capacity"]["cpu"] == "96"
    assert node["status"]["allocatable"]["cpu"] == "90"
    assert node["status"]["allocatable"][GPU] == "8"
    assert node["status"]["allocatable"]["example.com/nic"] == "2"
    assert node["metadata"]["labels"]["zone"] == "a"
    assert node["spec"]["taints"] == [{"key": "reserved", "value": "yes", "effect": "NoSchedule"}]


def test_a_pod_is_bound_runs_and_goes(whole: Cluster) -> None:
    whole.create_namespace("runs")
    whole.add_nodes([NodeSpec(name="runs")])
    pinned = pod("pinned", nodeSelector={"kubernetes.io/hostname": "runs"})
    whole.api.create("/api/v1/namespaces/runs/pods", pinned)
    wait_until(lambda: phase(whole, "runs", "pinned") == "Running", "the pod to run")
    running = read(whole, "pod", "pinned", "-n", "runs")
    conditions = {c["type"]: c["status"] for c in running["status"]["conditions"]}
    assert running["spec"]["nodeName"] == "runs"
    assert conditions["Ready"] == conditions["PodScheduled"] == "True"
    assert running["status"]["podIP"]
    whole.kubectl("delete", "pod", "pinned", "-n", "runs", "--timeout=120s")


@pytest.mark.variant
def test_a_pod_of_a_job_ends(whole: Cluster) -> None:
    whole.create_namespace("jobs")
    whole.add_nodes([NodeSpec(name="jobs")])
    whole.kubectl("create", "job", "once", "--image=none", "-n", "jobs")
    whole.kubectl("wait", "--for=condition=Complete", "job/once", "-n", "jobs", "--timeout=120s")


@pytest.mark.variant
def test_a_gated_pod_stays_and_is_deleted(whole: Cluster) -> None:
    whole.create_namespace("gated")
    gated = pod("gated", schedulingGates=[{"name": "example.com/gate"}])
    whole.api.create("/api/v1/namespaces/gated/pods", gated)
    assert phase(whole, "gated", "gated") == "Pending"
    whole.kubectl("delete", "pod", "gated", "-n", "gated", "--timeout=120s")


def ray_state(cluster: Cluster, namespace: str, name: str) -> str:
    status = read(cluster, "raycluster", name, "-n", namespace).get("status", {})
    return str(status.get("state", ""))


def test_kuberays_own_sample_becomes_ready_and_goes_with_its_pods(whole: Cluster) -> None:
    here = ("-n", "sample")
    whole.create_namespace("sample")
    whole.add_nodes(copies(NodeSpec("node", cpus=4), 2))
    sample = yaml.safe_load((whole.samples / "ray-cluster.sample.yaml").read_text())
    name = sample["metadata"]["name"]
    whole.kubectl("apply", *here, "-f", "-", input=json.dumps(sample))
    wait_until(lambda: ray_state(whole, "sample", name) == "ready", "the Ray cluster to be ready")
    pods = read(whole, "pods", *here, "-l", f"ray.io/cluster={name}")["items"]
    kinds = sorted(pod["metadata"]["labels"]["ray.io/node-type"] for pod in pods)
    assert kinds == ["head", "worker"]
    whole.kubectl("delete", "raycluster", *here, name)
    # The garbage collector knows the kind from its start, and need not look for it every 30 s.
    wait_until(lambda: not read(whole, "pods", *here)["items"], "the pods to be collected")


@pytest.mark.parametrize("sample", ["ray-job.sample.yaml", "ray-service.sample.yaml"])
def test_kuberay_makes_ray_clusters_for_jobs_and_services(whole: Cluster, sample: str) -> None:
    namespace = sample.split(".", maxsplit=1)[0]
    whole.create_namespace(namespace)
    manifest = str(whole.samples / sample)
    whole.kubectl("apply", "-n", namespace, "-f", manifest)
    kind = "rayclusters.ray.io"
    wait_until(lambda: read(whole, kind, "-n", namespace)["items"], f"the cluster of {sample}")


@pytest.mark.variant
def test_two_clusters_at_once_know_nothing_of_each_other(small: Cluster, whole: Cluster) -> None:
    whole.add_nodes([NodeSpec("only-here")])
    assert "only-here" in whole.kubectl("get", "nodes")
    assert "only-here" not in small.kubectl("get", "nodes")


@pytest.mark.variant
def test_the_api_server_comes_back_with_its_data(small: Cluster) -> None:
    small.create_namespace("kept")
    small.process("kube-apiserver").restart()
    small.wait_healthy("kube-apiserver")
    assert "kept" in small.kubectl("get", "namespaces")


@pytest.mark.variant
def test_a_paused_api_server_answers_nothing_until_it_is_resumed(small: Cluster) -> None:
    with small.process("kube-apiserver").paused(), pytest.raises(TestbedError):
        small.kubectl("get", "namespaces", "--request-timeout=1s")
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


@pytest.fixture
def unscheduled(small: Cluster) -> Iterator[Cluster]:
    """The small cluster with a node, while its own scheduler does not run."""
    small.process(SCHEDULER).kill()
    small.add_nodes([NodeSpec("node")])
    yield small
    small.kubectl("delete", "pods,nodes", "--all")
    small.process(SCHEDULER).kill()
    small.start_scheduler()


@pytest.mark.variant
def test_a_scheduler_configuration_is_used(unscheduled: Cluster) -> None:
    unscheduled.start_scheduler({"profiles": [{"schedulerName": "other"}]})
    body = pod("waits", schedulerName="other")
    unscheduled.api.create("/api/v1/namespaces/default/pods", body)
    wait_until(lambda: phase(unscheduled, "default", "waits") == "Running", "the pod to run")


# A signal that comes before it waits counts too, which signal.pause() would wait beyond.
OWNER = """
import select, signal, socket, sys
from pathlib import Path
from testbed.cluster import Cluster
from testbed.options import Options
heard, tells = socket.socketpair()
tells.setblocking(False)
signal.set_wakeup_fd(tells.fileno())
with Cluster.start(Path(sys.argv[1]), Options(kuberay=False)) as cluster:
    cluster.process("kwok").pause()
    print(*(process.pid for process in cluster.processes.values()), flush=True)
    select.select([heard], [], [])
"""


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
)
def test_nothing_stays_when_the_owner_dies(number: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path / "root")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with child(command, cwd=ROOT, **pipes) as owner:
        assert owner.stdout
        pids = [int(word) for word in owner.stdout.readline().split()]
        assert len(pids) == 5
        owner.send_signal(number)
        owner.wait()
    wait_until(lambda: not any(birth(pid) for pid in pids), "all processes to be gone")
