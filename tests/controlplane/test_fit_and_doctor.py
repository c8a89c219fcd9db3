"""`muster fit` says what is then decided, and `muster doctor` finds what is missing."""

import json
from pathlib import Path

import pytest
import yaml

from cli.endings import FINE, NO, NOT_READ
from kube.objects import names
from testbed.nodes import NodeSpec, copies
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, gang, group, on_nodes, ray_job
from tests.controlplane.test_cli import ROLES, account, bind, run
from tests.packaging.tree import ROOT

pytestmark = pytest.mark.versions


def asked(plot: Plot, kubeconfig: Path, tmp_path: Path, *manifests: Json) -> tuple[int, list[Json]]:
    """Ask about objects as a test would create them; return the exit code and the answers."""
    path = tmp_path / "asked.yaml"
    placed = [on_nodes(json.loads(json.dumps(each)), plot.selector) for each in manifests]
    path.write_text(yaml.safe_dump_all(placed))
    done = run(kubeconfig, "fit", "-f", str(path), "-n", plot.name, "-o", "json")
    assert done.stdout, done.stderr
    return done.exit_code, json.loads(done.stdout)["objects"]


def create_role(plot: Plot, path: str) -> None:
    """Create the one ClusterRole of a manifest, if no other test has."""
    (role,) = yaml.safe_load_all((ROOT / "manifests" / path).read_text())
    if not plot.cluster.api.exists(f"{ROLES}/clusterroles/{role['metadata']['name']}"):
        plot.cluster.api.create(f"{ROLES}/clusterroles", role)


@pytest.fixture
def reader(plot: Plot) -> Path:
    """The kubeconfig of an account with the role of `muster fit` and nothing else."""
    create_role(plot, "fit/rbac.yaml")
    found = account(plot, "reader")
    bind(plot, "reader", "muster-fit", everywhere=True)
    plot.wait(lambda: run(found, "status").exit_code == FINE, "the role to take effect")
    return found


def test_fit_says_what_is_then_decided(plot: Plot, reader: Path, tmp_path: Path) -> None:
    """With the rights of its role alone; and nothing is created by asking."""
    plot.add_nodes(*copies(NodeSpec("n", cpus=4, memory="64Gi"), 2))
    plot.add_queue("q", quota={"cpu": 7})
    labels = {names.QUEUE: plot.queue("q")}
    plot.create(gang("runs", group(replicas=2), labels=labels))
    plot.wait_running("runs", 3)
    plot.add_queue("wide", quota={"cpu": 100})
    room = gang("room", group(replicas=7), labels={names.QUEUE: plot.queue("wide")})
    quota = gang("quota", group(replicas=4), labels=labels)
    fits = gang("fits", group(replicas=3), labels=labels)
    job = ray_job("job", group(replicas=3), labels={names.OPT_IN: "true", **labels})

    refused = {}
    for each in (room, quota):
        code, (refused[each["metadata"]["name"]],) = asked(plot, reader, tmp_path, each)
        assert code == NO
    code, admitted = asked(plot, reader, tmp_path, fits, job)
    assert (code, [each["fits"] for each in admitted]) == (NO, ["Yes", "No"]), "together too much"
    assert set(plot.gangs()) == {"runs"}

    for each in (room, quota):
        name = each["metadata"]["name"]
        plot.create(each)
        plot.wait_phase(name, "Queued", refused[name]["reason"])
        assert refused[name]["message"] == plot.status(name)["message"], name
        (most,) = refused[name]["largestThatFit"]
        assert most["fit"] == {"room": 4, "quota": 3}[name]
    plot.create(fits)
    plot.wait_running("fits", 4)
    assert sum(each["pods"] for each in admitted[0]["placement"]) == 4


@pytest.mark.variant
def test_a_tenant_is_told_of_the_quota_and_of_what_is_not_judged(
    plot: Plot, tmp_path: Path
) -> None:
    plot.add_node(16)
    plot.add_queue("q", quota={"cpu": 6})
    labels = {names.QUEUE: plot.queue("q")}
    plot.create(gang("runs", group(replicas=2), labels=labels))
    plot.wait_running("runs", 3)
    plot.wait(lambda: plot.queue_status("q").get("usage", {}).get("cpu"), "the queue to count it")
    tenant = account(plot, "tenant")
    bind(plot, "tenant", "view")
    create_role(plot, "base/view-rbac.yaml")
    bind(plot, "tenant", "muster-view", everywhere=True)
    more = gang("more", group(replicas=3), labels=labels)
    plot.wait(lambda: run(tenant, "queue").exit_code == FINE, "the role for queues to take effect")
    plot.wait(lambda: asked(plot, tenant, tmp_path, more)[0] == NO, "all roles to take effect")
    code, (found,) = asked(plot, tenant, tmp_path, more)
    assert (code, found["fits"], found["reason"]) == (NO, "No", "QuotaExceeded")
    assert found["largestThatFit"][0]["fit"] == 2
    code, (found,) = asked(plot, tenant, tmp_path, gang("more", group(replicas=2), labels=labels))
    assert (code, found["fits"]) == (NOT_READ, "Unknown")
    assert "is not judged" in found["message"]

    typo = gang("typo", group(), labels=labels)
    typo["spec"]["workerGroupSpec"] = []
    code, (unknown,) = asked(plot, tenant, tmp_path, typo)
    said = 'the API server would refuse it: unknown field "spec.workerGroupSpec"'
    assert (code, unknown["fits"], unknown["message"]) == (NO, "No", said)

    may_not = f"you may not create rayclusters.ray.io in namespace {plot.name}"
    nor = f"you may not create pods in namespace {plot.name}"
    assert [each.partition(":")[0] for each in found["notes"]] == [may_not, nor]
    _, (same,) = asked(plot, plot.cluster.kubeconfig, tmp_path, gang("more", labels=labels))
    assert same["notes"] == []
    head = {"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper"}
    path = tmp_path / "wrapper.json"
    path.write_text(json.dumps({**head, "metadata": {"name": "w"}, "spec": {"components": []}}))
    done = run(tenant, "fit", "-f", str(path))
    assert done.exit_code == NO
    assert f"the cluster does not serve AppWrapper of {head['apiVersion']}" in done.stdout


@pytest.mark.variant
def test_a_team_that_may_get_its_own_queue_alone_is_told_of_its_quota(
    plot: Plot, tmp_path: Path
) -> None:
    """By the manifest that is shipped for it; the other queue stays closed to the team."""
    plot.add_node(16)
    plot.add_queue("q", quota={"cpu": 6})
    plot.add_queue("other", quota={"cpu": 1})
    labels = {names.QUEUE: plot.queue("q")}
    plot.create(gang("runs", group(replicas=2), labels=labels))
    plot.wait_running("runs", 3)
    plot.create(gang("waits", group(replicas=5), labels=labels))
    plot.wait_phase("waits", "Queued", "QuotaExceeded")
    plot.wait(lambda: plot.queue_status("q").get("usage", {}).get("cpu"), "the queue to count it")
    team = account(plot, "team")
    create_role(plot, "base/view-rbac.yaml")
    bind(plot, "team", "view")
    own = (ROOT / "manifests/queue-reader/rbac.yaml").read_text()
    own = own.replace("research-team", f"system:serviceaccounts:{plot.name}")
    plot.cluster.kubectl("apply", "-f", "-", input=own.replace("research", plot.queue("q")))

    ask = ("queue", plot.queue("q"), "-o", "json")
    plot.wait(lambda: '"3000m"' in run(team, *ask).stdout, "the roles to take effect")
    found = json.loads(run(team, *ask).stdout)
    (cpu,) = found["queue"]["resources"]
    assert (cpu["used"], cpu["quota"]) == ("3000m", "6000m")
    assert [each["name"] for each in found["waiting"]] == ["waits"]
    assert run(team, "queue", plot.queue("other")).exit_code == NO
    why = run(team, "why", "waits")
    assert why.exit_code == FINE
    assert f"only queue {plot.queue('q')} is known" in why.stderr
    code, (found,) = asked(plot, team, tmp_path, gang("more", group(replicas=3), labels=labels))
    assert (code, found["reason"]) == (NO, "QuotaExceeded")
    code, (found,) = asked(plot, team, tmp_path, gang("more", group(replicas=2), labels=labels))
    assert (code, found["fits"]) == (NOT_READ, "Unknown")
    assert "has quota for it" in found["message"]


def test_fit_says_what_the_api_server_refuses(plot: Plot, tmp_path: Path) -> None:
    """For good or by quota, of the object and of its pods; nothing is created by asking."""
    plot.add_node(16)
    kubeconfig = plot.cluster.kubeconfig

    def answered(manifest: Json) -> tuple[str, str, list[str]]:
        _, (found,) = asked(plot, kubeconfig, tmp_path, manifest)
        return found["fits"], found["message"], found["notes"]

    assert answered(gang("fits", group()))[::2] == ("Yes", [])
    typo = gang("typo", group())
    typo["spec"]["workerGroupSpec"] = []
    assert answered(typo)[0] == "No"
    assert 'unknown field "spec.workerGroupSpec"' in answered(typo)[1]
    nobody = gang("nobody", group())
    nobody["spec"]["headGroupSpec"]["template"]["spec"]["serviceAccountName"] = "nobody"
    assert answered(nobody)[0] == "No"
    assert 'serviceaccount "nobody" not found' in answered(nobody)[1]

    level = "pod-security.kubernetes.io/enforce"
    plot.cluster.kubectl("label", "namespace", plot.name, f"{level}=restricted")
    plot.wait(lambda: answered(gang("fits"))[0] == "No", "Pod Security to take effect")
    assert "the API server refuses a pod of headgroup" in answered(gang("fits"))[1]
    assert "violates PodSecurity" in answered(gang("fits"))[1]
    plot.cluster.kubectl("label", "namespace", plot.name, f"{level}-")
    plot.wait(lambda: answered(gang("fits"))[0] == "Yes", "Pod Security to end")

    hard = "--hard=count/rayclusters.ray.io=0"
    plot.cluster.kubectl("create", "quota", "none", "-n", plot.name, hard)
    plot.wait(lambda: answered(gang("fits"))[0] == "No", "the quota to take effect")
    assert answered(gang("fits"))[1].startswith("not now, for want of quota: ")
    plot.cluster.kubectl("delete", "quota", "none", "-n", plot.name)
    plot.wait(lambda: answered(gang("fits"))[0] == "Yes", "the quota to end")
    plot.create(gang("fits", group()))
    plot.wait_phase("fits", "Running")
    (note,) = answered(gang("fits", group()))[2]
    assert note == f"RayCluster {plot.name}/fits exists: judged as another one beside it"
    assert set(plot.gangs()) <= {"fits"}


def test_the_doctor_knows_a_testbed_and_finds_what_is_missing(plot: Plot) -> None:
    """Here Muster's programs are processes: no Deployment and no Service stands for them."""
    done = run(plot.cluster.kubeconfig, "doctor", "-o", "json")
    found = {each["check"]: each for each in json.loads(done.stdout)["findings"]}
    states = {name: each["state"] for name, each in found.items()}
    assert {name for name, state in states.items() if state == "ok"} >= {
        "Kubernetes",
        "KubeRay",
        "programs",
        "gangs.muster.dev",
        "gangqueues.muster.dev",
        "gate.muster.dev",
        "hold.muster.dev",
        "certificate authority",
        "leader",
        "extender",
        "other gang systems",
    }, found
    assert "testbed" in found["programs"]["message"]
    assert states["kube-scheduler"] == "unknown"
    assert "fail" not in states.values(), found
    assert done.exit_code == FINE
    nothing = run(account(plot, "nothing"), "doctor", "-o", "json")
    said = {each["state"] for each in json.loads(nothing.stdout)["findings"]}
    assert said <= {"unknown", "ok"}, nothing.stdout
    assert nothing.exit_code == FINE
