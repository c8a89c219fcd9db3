"""What the commands show is right by counts of their own, and rights decide how much it is."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from cli.__main__ import main
from cli.endings import FINE, NO, NOT_READ
from kube.objects import names
from testbed.nodes import GPU, NodeSpec, copies
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, gang, group, requests
from tests.packaging.tree import ROOT

PRODUCT = "nvidia.com/gpu.product"
ROLES = "/apis/rbac.authorization.k8s.io/v1"


def run(kubeconfig: Path, *arguments: str) -> Result:
    """Run a command as it is; its output is on one side, notes and errors on the other."""
    return CliRunner().invoke(main, ["--kubeconfig", str(kubeconfig), *arguments])


def answer(plot: Plot, *arguments: str) -> Json:
    """The answer of a command that may read everything, as data."""
    done = run(plot.cluster.kubeconfig, *arguments, "-o", "json")
    assert done.exit_code == FINE, done.stderr
    found: Json = json.loads(done.stdout)
    return found


def with_gpus(plot: Plot, queue: str, name: str, workers: int, gpus: int) -> Json:
    """A gang of workers with so many GPUs each, in a queue of the plot."""
    asked = requests(**{GPU: str(gpus)})
    labels = {names.QUEUE: plot.queue(queue)}
    return gang(name, group(replicas=workers, resources=asked), labels=labels)


@pytest.fixture
def busy(plot: Plot) -> Plot:
    """Three nodes with GPUs and a cordoned one, a gang that runs, and two that wait."""
    label = {PRODUCT: plot.name}
    gpus = NodeSpec("gpu", cpus=64, memory="512Gi", gpus=8, labels=label)
    plot.add_nodes(*copies(gpus, 3), NodeSpec("off", cpus=64, gpus=8, labels=label))
    plot.patch_node("off", {"spec": {"unschedulable": True}})
    plot.add_queue("wide", quota={GPU: 64})
    plot.add_queue("narrow", quota={GPU: 2})
    plot.create(with_gpus(plot, "wide", "runs", workers=3, gpus=4))
    plot.wait_running("runs", 4)
    plot.create(with_gpus(plot, "wide", "room", workers=3, gpus=8))
    plot.wait_phase("room", "Queued", "InsufficientResources")
    plot.create(with_gpus(plot, "narrow", "quota", workers=1, gpus=4))
    plot.wait_phase("quota", "Queued", "QuotaExceeded")
    plot.wait(lambda: plot.queue_status("wide").get("pending") == 1, "the queue to count it")
    plot.wait(lambda: plot.queue_status("narrow").get("pending") == 1, "the queue to count it")
    return plot


def gpus_of(pod: Json) -> int:
    return sum(
        int(each["resources"].get("requests", {}).get(GPU, 0)) for each in pod["spec"]["containers"]
    )


def used_by_node(plot: Plot) -> Counter[str]:
    """The GPUs of bound pods, from the API server's own lists."""
    pods = plot.cluster.api.get("/api/v1/pods")["items"]
    return Counter(
        {
            node: sum(gpus_of(each) for each in pods if each["spec"].get("nodeName") == node)
            for node in {each["spec"].get("nodeName", "") for each in pods}
        }
    )


def nodes_of(plot: Plot) -> Iterator[Json]:
    for each in plot.cluster.api.get("/api/v1/nodes")["items"]:
        if each["metadata"]["labels"].get(PRODUCT) == plot.name:
            yield each


def test_each_command_shows_what_the_api_server_has(busy: Plot) -> None:
    plot, used = busy, used_by_node(busy)
    on = {each["metadata"]["name"]: each for each in nodes_of(plot)}
    free = {
        name: int(each["status"]["allocatable"][GPU]) - used[name]
        for name, each in on.items()
        if not each["spec"].get("unschedulable")
    }

    nodes = answer(plot, "nodes")
    shown = {each["name"]: each for each in nodes["nodes"] if each["name"] in on}
    assert {name: each["used"] for name, each in shown.items()} == {n: used[n] for n in on}
    assert {name: each["free"] for name, each in shown.items() if not each["off"]} == free
    (pool,) = (each for each in nodes["pools"] if each["name"] == plot.name)
    assert (pool["nodes"], pool["allocatable"]) == (4, 32)
    assert (pool["used"], pool["free"], pool["unschedulable"]) == (12, sum(free.values()), 8)
    assert pool["holes"] == {
        str(size): sum(each // size for each in free.values()) for size in (1, 2, 4, 8)
    }

    gangs = plot.gangs()
    status = answer(plot, "status", "-n", plot.name)
    assert status["phases"] == Counter(each["status"]["phase"] for each in gangs.values())
    assert status["reasons"] == {"InsufficientResources": 1, "QuotaExceeded": 1}
    assert {each["name"] for each in status["waiting"]} == {"room", "quota"}

    wide = answer(plot, "queue", plot.queue("wide"))
    assert [each["name"] for each in wide["waiting"]] == ["room"]
    assert {each["name"]: each["holds"][GPU] for each in wide["holding"]} == {"runs": "12"}
    (resource,) = wide["queue"]["resources"]
    assert (resource["used"], resource["quota"], resource["mayTake"]) == ("12", "64", "52")
    queues = {each["name"]: each for each in answer(plot, "queue")["queues"]}
    assert queues[plot.queue("narrow")]["pending"] == 1


def test_why_tells_the_place_the_numbers_the_holders_and_what_helps(busy: Plot) -> None:
    plot = busy
    found = answer(plot, "why", f"{plot.name}/room")
    said = plot.status("room")
    assert (found["waits"], found["reason"], found["message"]) == (
        *(True, said["reason"]),
        said["message"],
    )
    assert (found["position"], found["of"]) == (1, 1)
    workers = next(each for each in found["podSets"] if each["name"] == "workers")
    short = workers["short"]
    assert (short["resource"], short["each"], short["isJudged"]) == (GPU, "8", True)
    assert short["nodes"] == 3
    used = used_by_node(plot)
    holders = {each["name"]: int(each["amount"]) for each in short["holders"]}
    assert holders == {"runs": sum(used[each["metadata"]["name"]] for each in nodes_of(plot))}
    assert found["helps"] == [_help(plot, used)]
    text = run(plot.cluster.kubeconfig, "why", "room", "-n", plot.name).stdout
    for part in (said["message"].split(".")[0], f"RayCluster {plot.name}/runs", "to do: wait"):
        assert part in text

    plot.wait(
        lambda: any(
            each["reason"] == "InsufficientResources"
            for each in answer(plot, "why", f"{plot.name}/room")["history"]
        ),
        "the Gang to have an Event of it",
    )


def _help(plot: Plot, used: Counter[str]) -> str:
    """Every node that runs anything of it has room for one pod of 8 once it ends."""
    more = sum(used[each["metadata"]["name"]] > 0 for each in nodes_of(plot))
    pods = "1 more pod" if more == 1 else f"{more} more pods"
    return f"if RayCluster {plot.name}/runs ended, {pods} of workers would have the {GPU} they need"


def define(plot: Plot, manifest: str) -> None:
    """Create the ClusterRoles of a manifest, where they are not there yet."""
    for each in yaml.safe_load_all((ROOT / "manifests" / manifest).read_text()):
        if not plot.cluster.api.exists(f"{ROLES}/clusterroles/{each['metadata']['name']}"):
            plot.cluster.api.create(f"{ROLES}/clusterroles", each)


def bind(plot: Plot, account: str, role: str, *, everywhere: bool = False) -> None:
    """Give an account of the plot a ClusterRole, in the plot's namespace or in all."""
    kind = "ClusterRoleBinding" if everywhere else "RoleBinding"
    place = ROLES if everywhere else f"{ROLES}/namespaces/{plot.name}"
    subject = {"kind": "ServiceAccount", "name": account, "namespace": plot.name}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    body = {
        "metadata": {"name": f"{plot.name}-{account}-{role}"},
        "roleRef": reference,
        "subjects": [subject],
    }
    plot.cluster.api.create(f"{place}/{kind.lower()}s", body)


def account(plot: Plot, name: str) -> Path:
    """A kubeconfig of a new ServiceAccount, with the plot's namespace as that of its context."""
    accounts = f"/api/v1/namespaces/{plot.name}/serviceaccounts"
    plot.cluster.api.create(accounts, {"metadata": {"name": name}})
    path = plot.cluster.service_account_kubeconfig(plot.name, name)
    config = yaml.safe_load(path.read_text())
    for each in config["contexts"]:
        each["context"]["namespace"] = plot.name
    path.write_text(json.dumps(config))
    return path


def test_rights_decide_what_is_shown_and_a_line_says_what_is_not(busy: Plot) -> None:
    plot = busy
    nothing = account(plot, "nothing")
    for arguments in (["status"], ["queue"], ["nodes"], ["why", "room"]):
        done = run(nothing, *arguments)
        assert (done.exit_code, done.stdout) == (NOT_READ, ""), arguments
        assert done.stderr.startswith("Error: not allowed to read gangs.muster.dev in namespace")
        assert done.stderr.count("\n") == 1

    tenant = account(plot, "tenant")
    define(plot, "base/view-rbac.yaml")  # kube-controller-manager adds it to `view`
    bind(plot, "tenant", "view")
    plot.wait(lambda: run(tenant, "why", "room").exit_code == FINE, "the role to take effect")
    done = run(tenant, "why", "room")
    assert "InsufficientResources" in done.stdout
    assert "not allowed to read nodes in all namespaces" in done.stderr
    done = run(tenant, "status")
    assert (done.exit_code, done.stdout.splitlines()[0]) == (
        FINE,
        f"3 gangs in namespace {plot.name}: 2 Queued, 1 Running",
    )
    assert "GPUs of nodes are not known" in done.stdout
    assert run(tenant, "why", "absent").exit_code == NO

    viewer = account(plot, "viewer")
    define(plot, "viewer/rbac.yaml")
    bind(plot, "viewer", "muster-viewer", everywhere=True)
    plot.wait(lambda: not run(viewer, "nodes").stderr, "the role to take effect")
    for arguments in (["status"], ["queue"], ["nodes"], ["why", "room"]):
        done = run(viewer, *arguments)
        assert (done.exit_code, done.stderr) == (FINE, ""), arguments


def test_a_token_that_is_refused_is_said_in_one_line(plot: Plot, tmp_path: Path) -> None:
    config = yaml.safe_load(plot.cluster.kubeconfig.read_text())
    config["users"][0]["user"]["token"] = "expired"
    path = tmp_path / "config"
    path.write_text(json.dumps(config))
    done = run(path, "status")
    assert (done.exit_code, done.stdout) == (NOT_READ, "")
    assert "the credentials are wrong or have expired, log in again" in done.stderr
    assert done.stderr.count("\n") == 1
