"""The API server takes Muster's manifests, and Muster needs nothing beside them."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from testbed.audit import asked
from testbed.cluster import Cluster
from testbed.errors import TestbedError
from testbed.manifests import DEFAULT
from testbed.muster import NAMESPACE, ROOT, Muster
from testbed.options import Options
from testbed.pytest_plugin import MakeCluster
from testbed.waiting import wait_until
from tests.controlplane.plot import Plot, conditions
from tests.controlplane.rayclusters import Json, gang

CRDS = ("gangs.muster.dev", "gangqueues.muster.dev")


def differs(cluster: Cluster) -> str:
    """What `kubectl diff` says of the manifests; it fails where anything differs."""
    try:
        return cluster.kubectl("diff", "-k", str(DEFAULT))
    except TestbedError as error:
        return str(error)


def gang_object(**spec: object) -> Json:
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "Gang",
        "metadata": {"name": "made-by-hand"},
        "spec": spec,
    }


def apply_gang(plot: Plot, made: Json, *args: str) -> None:
    plot.cluster.kubectl(
        "apply", "-n", plot.name, "--server-side", *args, "-f", "-", input=json.dumps(made)
    )


def test_one_kubectl_apply_installs_everything_and_a_second_changes_nothing(
    make_cluster: MakeCluster,
) -> None:
    """As an operator would install it, on an API server without anything of Muster."""
    bare = make_cluster(Options(kuberay=False, kwok=False, scheduler=False))
    first = bare.kubectl("apply", "-k", str(DEFAULT)).splitlines()
    assert [line for line in first if not line.endswith(" created")] == []
    for kind in (
        "deployment.apps/muster-coordinator",
        "deployment.apps/muster-certs",
        "gangs.muster",
    ):
        assert any(kind in line for line in first)
    bare.kubectl("apply", "--dry-run=server", "-k", str(DEFAULT))
    # The controllers still write the status of what was applied, which shows as a difference.
    wait_until(lambda: differs(bare) == "", "no difference", seen=lambda: differs(bare))


def overlay(directory: Path, image: str) -> Path:
    """One of all that there is with this image, as the documentation has it."""
    if not (directory / "manifests").exists():
        shutil.copytree(ROOT / "manifests", directory / "manifests")
    made = directory / "overlay"
    made.mkdir(exist_ok=True)
    name, tag = image.rsplit(":", 1)
    narrowed = policies()
    text = {
        "resources": ["../manifests/base"],
        **narrowed,
        "components": [
            "../manifests/extender",
            "../manifests/guard-extender",
            *narrowed["components"],
        ],
        "images": [{"name": "muster", "newName": name, "newTag": tag}],
    }
    (made / "kustomization.yaml").write_text(json.dumps(text))  # JSON is YAML
    return made


def policies() -> Json:
    """The network policies, narrowed as docs/network.md does it."""
    section = (ROOT / "docs" / "network.md").read_text().split("\n## Network policies\n")[1]
    (text,) = re.findall(r"^```yaml\n(.*?)^```", section, flags=re.MULTILINE | re.DOTALL)
    found = yaml.safe_load(text)
    return {key: found[key] for key in ("components", "patches")}


def images(cluster: Cluster) -> dict[str, str]:
    """The image of each workload of ours."""
    found = cluster.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments")["items"]
    jobs = cluster.api.get(f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs")["items"]
    return {
        each["metadata"]["name"]: each["spec"]["template"]["spec"]["containers"][0]["image"]
        for each in (*found, *jobs)
    }


def guard(cluster: Cluster) -> str:
    """What the coordinator is told of the guard."""
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/muster-coordinator"
    (container,) = cluster.api.get(path)["spec"]["template"]["spec"]["containers"]
    given = {each["name"]: each.get("value", "") for each in container["env"]}
    return str(given["MUSTER_COORDINATOR_GUARD"])


def removal(directory: Path) -> list[list[str]]:
    """The commands with which docs/removal.md removes everything, in their order."""
    text = (ROOT / "docs/removal.md").read_text()
    section = text.split("\n## Remove\n")[1].split("\n## ")[0]
    commands = re.findall(r"`kubectl (delete [^`]*)`", section)
    return [shlex.split(each.replace("overlay", str(directory))) for each in commands]


@pytest.mark.long
def test_a_wrong_image_is_corrected_by_applying_again_and_removal_ends_well(
    make_cluster: MakeCluster, tmp_path: Path
) -> None:
    bare = make_cluster(Options(kuberay=False, kwok=False, scheduler=False))
    bare.kubectl("apply", "-k", str(overlay(tmp_path, "registry.example.com/typo:1")))
    right = overlay(tmp_path, "registry.example.com/muster:0.1.0")
    bare.kubectl("apply", "-k", str(right))
    assert set(images(bare).values()) == {"registry.example.com/muster:0.1.0"}
    assert {"muster-certs", "muster-extender-certs", "muster-webhook"} <= images(bare).keys()
    assert guard(bare) == "Extender"

    first, *others = removal(right)
    assert "mutatingwebhookconfiguration" in first
    assert any("-k" in each for each in others)
    for command in (first, *others):
        bare.kubectl(*command)  # raises where it does not end with 0
    assert of_muster(bare) == []

    bare.kubectl("apply", "-k", str(right))
    said = uninstall(bare)
    assert "--extender-is-out" in said.stderr
    assert f"namespace/{NAMESPACE}" in of_muster(bare)
    said = uninstall(bare, "--extender-is-out")
    assert (said.returncode, said.stderr) == (0, ""), said.stdout
    assert of_muster(bare) == []


def of_muster(cluster: Cluster) -> list[str]:
    """What is left of Muster, of the kinds that are in no namespace."""
    kinds = (
        "crd,namespace,clusterrole,clusterrolebinding,validatingadmissionpolicy,"
        "mutatingwebhookconfiguration,validatingwebhookconfiguration"
    )
    found = cluster.kubectl("get", kinds, "-o", "name").split()
    return [each for each in found if "muster" in each]


def uninstall(cluster: Cluster, *options: str) -> subprocess.CompletedProcess[str]:
    """`muster uninstall` as an admin calls it."""
    command = [sys.executable, "-m", "cli", "uninstall", "--yes", *options]
    return subprocess.run(
        [*command, "--kubeconfig", str(cluster.kubeconfig)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.parametrize("name", CRDS)
def test_the_crds_are_structural_and_served(muster: Muster, name: str) -> None:
    """The API server says so itself, and says nothing else against them."""
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
    said = conditions(muster.cluster.api.get(path))
    assert said["Established"] == said["NamesAccepted"] == "True"
    assert "NonStructuralSchema" not in said
    assert "KubernetesAPIApprovalPolicyConformant" not in said


def test_a_gang_with_a_minimum_above_its_count_is_refused(plot: Plot) -> None:
    """The rule of the schema, judged by the API server."""
    fine = gang_object(podSets=[{"name": "workers", "count": 2, "minimum": 2}])
    apply_gang(plot, fine, "--dry-run=server")
    wrong = gang_object(podSets=[{"name": "workers", "count": 2, "minimum": 3}])
    with pytest.raises(TestbedError, match="minimum must not exceed count"):
        apply_gang(plot, wrong, "--dry-run=server")


def test_the_epoch_of_a_gang_never_decreases(plot: Plot) -> None:
    """An earlier leader's late write fails, whatever else is in it."""
    plot.add_node(1)
    plot.create(gang("led"))
    plot.wait_running("led", 1)
    epoch = plot.status("led")["epoch"]
    with pytest.raises(TestbedError, match="epoch must not decrease"):
        plot.cluster.kubectl(
            *("patch", "gang", "led", "-n", plot.name, "--subresource=status", "--type=merge"),
            *("-p", json.dumps({"status": {"epoch": epoch - 1}})),
        )


def test_a_phase_that_does_not_exist_is_refused(plot: Plot) -> None:
    """A status written by hand is refused with the allowed values."""
    plot.add_node(1)
    plot.create(gang("led"))
    plot.wait_running("led", 1)
    with pytest.raises(TestbedError, match="Unsupported value"):
        plot.cluster.kubectl(
            *("patch", "gang", "led", "-n", plot.name, "--subresource=status", "--type=merge"),
            *("-p", '{"status": {"phase": "Happy"}}'),
        )


def test_muster_asks_for_nothing_that_its_manifests_do_not_grant(plot: Plot) -> None:
    """Both programs run under their own service accounts; the webhook only ever reads."""
    plot.add_node(1)
    plot.create(gang("any"))
    plot.wait_running("any", 1)
    found = {*asked(plot.cluster.directory)}
    assert [each for each in found if not each.allowed] == []
    verbs = {
        account: {each.verb for each in found if each.account == f"muster-{account}"}
        for account in ("coordinator", "webhook")
    }
    assert {"watch", "create", "patch"} <= verbs["coordinator"]
    assert verbs["webhook"] <= {"get", "list", "watch"}
    assert "watch" in verbs["webhook"]
