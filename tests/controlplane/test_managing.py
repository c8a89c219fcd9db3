"""Three kinds of people manage Ray clusters with the shipped roles: done, or refused."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from cli.endings import FINE, NO
from kube.objects import names
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, gang, group, on_nodes
from tests.controlplane.test_cli import account, bind, define, run
from tests.packaging.tree import ROOT

ROLES = ROOT / "manifests" / "roles" / "rbac.yaml"
PEOPLE = {"admin": "muster-admin", "owner": "muster-namespace-admin", "user": "muster-user"}


def people_of(plot: Plot) -> dict[str, Path]:
    """A kubeconfig of each kind of person: the admin's role holds everywhere."""
    define(plot, "roles/rbac.yaml")
    found = {name: account(plot, name) for name in PEOPLE}
    for name, role in PEOPLE.items():
        bind(plot, name, role, everywhere=name == "admin")
    plot.wait(
        lambda: all(run(each, "jobs").exit_code == FINE for each in found.values()),
        "the roles to take effect",
    )
    return found


@pytest.fixture
def people(plot: Plot) -> dict[str, Path]:
    return people_of(plot)


def written(plot: Plot, path: Path, manifest: Json) -> str:
    """A file with an object whose pods are held to the plot's nodes."""
    manifest["metadata"]["namespace"] = plot.name
    path.write_text(yaml.safe_dump(on_nodes(manifest, plot.selector)))
    return str(path)


def done(kubeconfig: Path, *arguments: str) -> str:
    found = run(kubeconfig, *arguments)
    assert found.exit_code == FINE, found.stderr
    return found.stdout


def refused(kubeconfig: Path, *arguments: str) -> str:
    """One line on standard error, and exit code 1."""
    found = run(kubeconfig, *arguments)
    assert (found.exit_code, found.stderr.count("Error: ")) == (NO, 1), found.stderr
    return found.stderr.splitlines()[-1]


def replicas(plot: Plot, name: str) -> int:
    found: int = plot.get("RayCluster", name)["spec"]["workerGroupSpecs"][0]["replicas"]
    return found


def test_an_owner_lives_with_a_ray_cluster(
    plot: Plot, people: dict[str, Path], tmp_path: Path
) -> None:
    """Created, seen to wait, edited to what fits, run, scaled, suspended, resumed, deleted."""
    owner = people["owner"]
    plot.add_node(4)
    path = written(plot, tmp_path / "train.yaml", gang("train", group(replicas=6)))
    said = run(owner, "create", "-f", path)
    assert "not known whether it would start now: not allowed to read" in said.stderr
    assert f"RayCluster {plot.name}/train created" in said.stdout
    plot.wait_phase("train", "Queued")
    assert "exists already" in refused(owner, "create", "-f", path, "--no-fit")
    assert "6 -> 2" in done(owner, "scale", "train", "workers=2", "--yes")
    plot.wait_running("train", 3)

    edit = ("edit", "train", "--group", "workers,cpus=2", "--queue", "")
    assert "for pods that are made from now on" in done(owner, *edit)
    assert "muster create NEW --like train" in refused(owner, "edit", "train", "--fault-tolerance")
    assert "KubeRay would leave its pods" in refused(
        owner, "edit", "train", "--without-group", "workers"
    )
    done(owner, "suspend", "train", "--yes")
    plot.wait(lambda: not plot.pods("train"), "KubeRay to delete its pods")
    done(owner, "scale", "train", "workers=1", "--yes")
    done(owner, "resume", "train")
    plot.wait(lambda: len(plot.bound("train")) == 2, "it to run again")
    assert "train-2 created" in done(owner, "create", "train-2", "--like", "train", "--no-fit")
    assert replicas(plot, "train-2") == 1
    done(owner, "delete", "train-2", "--yes")
    assert "2 pods" in done(owner, "delete", "train", "--yes")
    assert "may not create gangqueues.muster.dev" in refused(owner, "queue", "create", "x")


@pytest.mark.variant
def test_an_owner_who_may_get_the_queue_is_told_its_answer(
    plot: Plot, people: dict[str, Path], tmp_path: Path
) -> None:
    """By the manifest that is shipped for it; whether nodes have room is not known."""
    owner, labels = people["owner"], {names.QUEUE: plot.queue("q")}
    plot.add_queue("q", quota={"cpu": 2})
    reader = (ROOT / "manifests" / "queue-reader" / "rbac.yaml").read_text()
    reader = reader.replace("research-team", f"system:serviceaccounts:{plot.name}")
    plot.cluster.kubectl("apply", "-f", "-", input=reader.replace("research", plot.queue("q")))
    big = written(plot, tmp_path / "big.yaml", gang("big", group(replicas=5), labels=labels))
    small = written(plot, tmp_path / "small.yaml", gang("small", group(replicas=1), labels=labels))

    def said(path: str) -> str:
        return run(owner, "create", "-f", path, "--if-fits").output

    refusal = "Error: it would not start now, so nothing was created"
    plot.wait(lambda: "does not fit now" in said(big), "the right to take effect")
    assert refusal in said(big)
    assert said(big).count("Note: ") == 1
    assert "not known whether it fits" in said(small)
    assert not plot.all("RayCluster")


@pytest.mark.variant
def test_a_user_submits_jobs_and_changes_no_ray_cluster(
    plot: Plot, people: dict[str, Path], tmp_path: Path
) -> None:
    user = people["user"]
    plot.add_node(8)
    path = written(plot, tmp_path / "train.yaml", gang("train", group(replicas=1)))
    done(people["owner"], "create", "-f", path, "--no-fit")
    plot.wait_running("train", 2)
    for arguments in (
        ("edit", "train", "--queue", "q"),
        ("scale", "train", "workers=2"),
        ("suspend", "train", "--yes"),
    ):
        assert f"may not patch rayclusters.ray.io in namespace {plot.name}" in refused(
            user, *arguments
        )
    assert "may not delete rayclusters" in refused(user, "delete", "train", "--yes")
    assert "may not create rayclusters" in refused(user, "create", "mine", "--no-fit")

    said = done(user, "submit", "nightly", "--cluster", "train", "--", "python", "-c", "pass")
    assert said == f"RayJob {plot.name}/nightly created\n"
    found = plot.get("RayJob", "nightly")["spec"]
    assert found["clusterSelector"] == {names.RAY_CLUSTER: "train"}
    listed = json.loads(done(user, "jobs", "-o", "json"))["jobs"]
    assert [(each["name"], each["cluster"]) for each in listed] == [("nightly", "train")]
    # Simulated nodes have no kubelet to read a log from: the caller may ask, and gets one line.
    asked = run(user, "logs", "--job", "nightly")
    assert ("has no pod" in asked.stderr) != ("cannot be read: 500" in asked.stderr), asked.stderr
    assert asked.stderr.count("Error: ") == 1
    done(user, "delete", "--job", "nightly", "--yes")


@pytest.mark.variant
def test_the_admin_configures_queues_and_all_ray_clusters(
    plot: Plot, people: dict[str, Path], tmp_path: Path
) -> None:
    admin, name = people["admin"], plot.queue("made")
    plot.add_node(8)
    options = ("--namespaces", plot.name, "--quota", "cpu=2")
    done(admin, "queue", "create", name, *options)
    path = written(
        plot, tmp_path / "a.yaml", gang("a", group(replicas=2), labels={names.QUEUE: name})
    )
    done(admin, "create", "-f", path, "--no-fit")
    plot.wait_phase("a", "Queued", "QuotaExceeded")
    done(admin, "queue", "edit", name, "--quota", "cpu=4")
    plot.wait_running("a", 3)
    assert "maxProperties" not in done(admin, "queue", "edit", name, "--stop", "Hold", "--dry-run")
    done(admin, "delete", f"{plot.name}/a", "--yes")
    plot.cluster.kubectl(
        "label", "gangqueue", name, *(f"{k}={v}" for k, v in plot.selector.items())
    )


@pytest.mark.variant
def test_the_verb_names_the_rayjob_that_owns_a_ray_cluster(
    plot: Plot, people: dict[str, Path]
) -> None:
    plot.add_node(8)
    job = {"rayClusterSpec": gang("x", group(replicas=1))["spec"], "entrypoint": "python -c pass"}
    head = {"apiVersion": names.RAY_API_VERSION, "kind": "RayJob"}
    plot.create(
        {**head, "metadata": {"name": "nightly", "labels": {names.OPT_IN: "true"}}, "spec": job}
    )
    made = plot.wait(
        lambda: plot.get("RayJob", "nightly").get("status", {}).get("rayClusterName"), "its cluster"
    )
    plot.wait(lambda: made in {each["metadata"]["name"] for each in plot.all("RayCluster")}, "it")
    assert "belongs to RayJob nightly, and nothing was changed" in refused(
        people["owner"], "scale", made, "workers=2"
    )
    plot.delete("RayJob", "nightly")


def rights() -> Iterator[tuple[str, str, str, str]]:
    """Each right of each role: who, verb, group and resource."""
    people = {role: person for person, role in PEOPLE.items()}
    for role in yaml.safe_load_all(ROLES.read_text()):
        for rule in role["rules"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    person = people[role["metadata"]["name"]]
                    yield person, verb, rule["apiGroups"][0], resource


METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}


def asked(plot: Plot, verb: str, group: str, resource: str) -> tuple[str, str]:
    """Method and path of a request that needs a right, of an object that is not there."""
    kind, _, part = resource.partition("/")
    version = {"": "v1", "ray.io": "v1", "muster.dev": "v1alpha1"}[group]
    base = f"/apis/{group}/{version}" if group else f"/api/{version}"
    place = "" if kind == "gangqueues" else f"/namespaces/{plot.name}"
    path = f"{base}{place}/{kind}"
    if verb == "list":
        return "GET", path
    if verb == "watch":
        return "GET", f"{path}?watch=true&timeoutSeconds=1"
    if verb == "create":
        return "POST", f"{path}?dryRun=All"
    return METHODS.get(verb, "GET"), f"{path}/none{f'/{part}' if part else ''}"


def test_each_right_of_a_role_is_one_and_what_none_has_is_refused(
    plot: Plot, people: dict[str, Path]
) -> None:
    tokens = {
        name: yaml.safe_load(path.read_text())["users"][0]["user"]["token"]
        for name, path in people.items()
    }

    def status(person: str, method: str, path: str) -> int:
        with replace(plot.cluster.api, token=tokens[person]).session() as session:
            return session.request(method, path, b"{}" if method != "GET" else None)[0]

    for person, verb, group_of, resource in rights():
        method, path = asked(plot, verb, group_of, resource)
        assert status(person, method, path) != 403, (person, verb, resource)
    here = f"/namespaces/{plot.name}"
    for path in (
        f"/api/v1{here}/secrets",
        f"/api/v1{here}/services/x/proxy",
        f"/api/v1{here}/pods/x/exec",
        "/api/v1/nodes",
    ):
        assert {status(person, "GET", path) for person in people} == {403}, path
    for path in (f"/apis/ray.io/v1{here}/rayclusters", f"/apis/ray.io/v1{here}/rayservices"):
        assert status("user", "POST", path) == 403
