"""Upgrade, kill switch and removal on the real control plane, with a coordinator alive and dead.

A hundred gated pods wait in a queue without quota, and held Ray clusters beside them: there is room
for all of them, so that nothing but Muster keeps them.
"""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
import yaml

from kube.objects import names
from kube.objects.crds.muster import gang_crd
from testbed.cluster import Cluster
from testbed.muster import BASE, NAMESPACE, ROOT, Muster, start_muster, with_muster
from testbed.nodes import NodeSpec, copies
from testbed.options import Options
from testbed.pytest_plugin import MakeCluster
from testbed.waiting import wait_until
from tests.controlplane.rayclusters import GANG, Json, gang, group

TEAM, QUEUE = "team", "nothing"
GANGS, PODS = 10, 100
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
RAY = f"/apis/ray.io/v1/namespaces/{TEAM}/rayclusters"


def run(cluster: Cluster, *arguments: str) -> str:
    """A command as an admin calls it; returns all that it said, and fails where it does."""
    done = subprocess.run(
        [sys.executable, "-m", "cli", *arguments, "--kubeconfig", str(cluster.kubeconfig)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def install(cluster: Cluster) -> None:
    """All of the base but the webhook's configuration, which the testbed points at itself."""
    rendered = yaml.safe_load_all(cluster.kubectl("kustomize", str(BASE)))
    mine = [each for each in rendered if each["kind"] != "MutatingWebhookConfiguration"]
    text = "\n---\n".join(json.dumps(each) for each in mine)
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=text)


def pods(cluster: Cluster) -> list[Json]:
    found: list[Json] = cluster.api.get(f"/api/v1/namespaces/{TEAM}/pods")["items"]
    return found


def gated(cluster: Cluster) -> int:
    gate = {"name": names.GATE}
    return sum(gate in each["spec"].get("schedulingGates", ()) for each in pods(cluster))


def bound(cluster: Cluster) -> int:
    return sum(bool(each["spec"].get("nodeName")) for each in pods(cluster))


def suspended(cluster: Cluster) -> set[str]:
    found = cluster.api.get(RAY)["items"]
    return {each["metadata"]["name"] for each in found if each["spec"].get("suspend")}


def let_wait(cluster: Cluster, prefix: str) -> None:
    """Ten gangs of ten pods, and two that are held; all of them wait for quota."""
    marks = {**GANG, names.QUEUE: QUEUE}
    for number in range(GANGS):
        made = gang(f"{prefix}-{number}", group(replicas=9))
        made["metadata"]["labels"] = marks
        cluster.api.create(RAY, made)
    for number in range(2):
        made = gang(f"{prefix}-held-{number}", group(replicas=2))
        made["metadata"] |= {
            "labels": marks,
            "annotations": {names.CREATE_PODS: names.CREATE_WHEN_ADMITTED},
        }
        cluster.api.create(RAY, made)
    wait_until(lambda: gated(cluster) == PODS, "100 gated pods", seen=lambda: gated(cluster))
    expected = {f"{prefix}-held-0", f"{prefix}-held-1"}
    wait_until(lambda: suspended(cluster) == expected, "two held Ray clusters")


def wait_released(cluster: Cluster, count: int) -> None:
    assert gated(cluster) == 0
    assert suspended(cluster) == set()
    wait_until(lambda: bound(cluster) == count, f"{count} bound pods", seen=lambda: bound(cluster))


@pytest.mark.long
@pytest.mark.controlplane
def test_release_and_uninstall_leave_nothing_that_waits(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(with_muster(Options()))
    cluster.add_nodes(copies(NodeSpec("n", cpus=64, memory="512Gi"), 5))
    cluster.create_namespace(TEAM)
    muster = start_muster(cluster, coordinators=0)
    install(cluster)
    lead_on_no_older_definition(cluster, muster)
    webhooks = cluster.api.get(f"{WEBHOOKS}/muster-webhook")
    quota = {"quota": {"cpu": "0"}, "namespaceSelector": {}}
    queue = {"apiVersion": names.API_VERSION, "kind": "GangQueue", "metadata": {"name": QUEUE}}
    cluster.api.create("/apis/muster.dev/v1alpha1/gangqueues", {**queue, "spec": quota})
    release_while_a_coordinator_leads(cluster, muster)
    start_again_and_kill(cluster, muster, webhooks)
    uninstall_while_none_runs(cluster)


def lead_on_no_older_definition(cluster: Cluster, muster: Muster) -> None:
    """It says which field is missing, and leads once the definition of this release is there."""
    older = copy.deepcopy(gang_crd())
    schema = older["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    del schema["status"]["properties"]["decided"]
    apply(cluster, older)
    muster.start_coordinator()
    port = muster.coordinator_health[0]
    said = "definition gangs.muster.dev lacks .status.decided"
    wait_until(lambda: said in answer(port), said, seen=lambda: answer(port))
    assert muster.leader() == ""
    apply(cluster, gang_crd())
    muster.wait_ready()
    muster.wait_led()


def apply(cluster: Cluster, crd: Json) -> None:
    text = json.dumps(crd)
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=text)


def answer(port: int) -> str:
    """What a coordinator says of its readiness."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as said:
            return str(said.read().decode())
    except urllib.error.HTTPError as error:
        return error.read().decode()
    except OSError:
        return ""


def keep_what_a_newer_release_wrote(cluster: Cluster) -> None:
    """A newer definition has a field that this release knows nothing of, and a leader wrote it."""
    newer = copy.deepcopy(gang_crd())
    schema = newer["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    schema["status"]["properties"]["future"] = {"type": "string"}
    apply(cluster, newer)
    path = f"/apis/muster.dev/v1alpha1/namespaces/{TEAM}/gangs/a-0"
    patch = ("patch", "gang", "a-0", "-n", TEAM, "--subresource=status", "--type=merge", "-p")

    def written() -> bool:
        cluster.kubectl(*patch, json.dumps({"status": {"future": "kept"}}))
        return bool(cluster.api.get(path)["status"].get("future") == "kept")

    wait_until(written, "the newer definition to be served")
    before = cluster.api.get(path)["status"]
    quota = {"spec": {"quota": {"cpu": "1"}}}
    cluster.kubectl("patch", "gangqueue", QUEUE, "--type=merge", "-p", json.dumps(quota))

    def rewritten() -> bool:
        return bool(cluster.api.get(path)["status"]["message"] != before["message"])

    wait_until(rewritten, "the coordinator to write the Gang")
    assert cluster.api.get(path)["status"]["future"] == "kept"


def release_while_a_coordinator_leads(cluster: Cluster, muster: Muster) -> None:
    let_wait(cluster, "a")
    keep_what_a_newer_release_wrote(cluster)
    said = run(cluster, "release", "--all", "--dry-run")
    assert f"would take Muster's gate off {PODS} pods" in said
    assert gated(cluster) == PODS
    said = run(cluster, "release", "--all", "--yes")
    assert "no pod has Muster's gate" in said
    wait_released(cluster, PODS + 6)
    assert muster.coordinators[0].running
    assert muster.leader() == names.STOPPED
    assert "gates taken off 0 pods" in run(cluster, "release", "--all", "--yes")


def start_again_and_kill(cluster: Cluster, muster: Muster, webhooks: Json) -> None:
    """A new coordinator leads once the Lease is gone, and dies when the gangs wait."""
    meta = {"name": webhooks["metadata"]["name"]}
    cluster.api.create(WEBHOOKS, {**webhooks, "metadata": meta})
    cluster.kubectl("delete", "lease", "muster-coordinator", "-n", NAMESPACE)
    muster.start_coordinator()
    muster.wait_ready()
    wait_until(lambda: muster.leader() == "coordinator-1", "the new coordinator to lead")
    let_wait(cluster, "b")
    for each in muster.coordinators:
        each.kill()


def uninstall_while_none_runs(cluster: Cluster) -> None:
    said = run(cluster, "uninstall", "--yes")
    assert "nothing of Muster is left" in said
    wait_released(cluster, 2 * (PODS + 6))
    every = cluster.kubectl("api-resources", "--verbs=list", "-o", "name").split()
    label = f"{names.PART_OF}={names.PART_OF_MUSTER}"
    left = cluster.kubectl("get", ",".join(every), "-A", "-l", label, "-o", "name")
    assert left == ""
    left = cluster.kubectl("get", "crd,namespace,clusterrole,clusterrolebinding", "-o", "name")
    assert "muster" not in left
    assert len(cluster.api.get(RAY)["items"]) == 2 * (GANGS + 2)
