"""Every command as table and as data, and how its answers are said."""

import json
import re
import tomllib

import pytest
import yaml

from cli import endings
from cli.endings import CannotRead, NotServed
from cli.report.objects import RayOwner, RayOwnerStatus
from kube.objects.base import ObjectMeta
from tests.cli.commands_run import MESSAGE, cluster
from tests.cli.fake_reader import FakeReader, run
from tests.cli.objects import GPU, Json, gang, node, pod, read
from tests.packaging.tree import ROOT

ALL = (["status"], ["queue"], ["queue", "research"], ["nodes"], ["why", "train"])
every_command = pytest.mark.parametrize("arguments", ALL, ids=" ".join)


@every_command
def test_every_command_answers_as_table_and_as_data(arguments: list[str]) -> None:
    for output in ("table", "wide"):
        done = run(FakeReader(cluster()), *arguments, "-o", output)
        assert (done.exit_code, done.stderr) == (endings.FINE, "")
        assert "\x1b" not in done.stdout
    as_json = json.loads(run(FakeReader(cluster()), *arguments, "-o", "json").stdout)
    assert as_json == yaml.safe_load(run(FakeReader(cluster()), *arguments, "-o", "yaml").stdout)


def test_status_shows_gangs_queues_and_devices() -> None:
    said = run(FakeReader(cluster()), "status").stdout
    assert "2 gangs: 1 Queued, 1 Running" in said
    assert "waiting: 1 InsufficientResources" in said
    assert MESSAGE in said
    assert "research" in said
    assert "[##########..........]" in said
    found = json.loads(run(FakeReader(cluster()), "status", "-o", "json").stdout)
    (pool,) = found["nodes"]["pools"]
    assert (pool["used"], pool["free"], pool["holes"]["8"]) == (8, 8, 1)


def test_a_namespace_is_that_of_the_option_the_name_or_the_context() -> None:
    cluster_of = {"gangs": [gang("g", namespace="x"), gang("g", namespace="team", position=7)]}
    for arguments in (["why", "x/g"], ["why", "g", "-n", "x"]):
        found = json.loads(run(FakeReader(cluster_of), *arguments, "-o", "json").stdout)
        assert (found["namespace"], found["position"]) == ("x", 0)
    found = json.loads(run(FakeReader(cluster_of), "why", "g", "-o", "json").stdout)
    assert (found["namespace"], found["position"]) == ("team", 7)


def test_options_that_name_the_cluster_reach_the_reader() -> None:
    reader = FakeReader(cluster())
    options = ("--kubeconfig", "/k", "--context", "c", "--request-timeout", "3")
    assert run(reader, "status", *options).exit_code == 0
    (target,) = reader.targets
    assert (target.kubeconfig, target.context, target.timeout) == ("/k", "c", 3.0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["why"], "Missing argument"),
        (["why", "a/b/c"], "allowed: NAME or NAMESPACE/NAME"),
        (["why", "x/g", "-n", "y"], "name one of the two"),
        (["status", "-A", "-n", "x"], "-n names one namespace, -A means all"),
        (["status", "--watch", "-o", "json"], "--watch shows tables"),
        (["nodes", "-o", "csv"], "'csv' is not one of"),
        (["status", "--request-timeout", "0"], "0"),
        (["completion", "tcsh"], "tcsh"),
        (["explain", "Nonsense"], "no reason of Muster"),
        (["no-such-command"], "No such command"),
    ],
)
def test_a_wrong_command_line_is_exit_code_2(arguments: list[str], said: str) -> None:
    done = run(FakeReader({}), *arguments)
    assert (done.exit_code, done.stdout) == (endings.WRONG_USE, "")
    assert said in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["why", "absent"], "no gang absent in namespace team"),
        (["queue", "absent"], "no GangQueue absent; there are: research"),
    ],
)
def test_what_is_not_there_is_exit_code_1(arguments: list[str], said: str) -> None:
    done = run(FakeReader(cluster()), *arguments)
    assert (done.exit_code, done.stdout) == (endings.NO, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@every_command
@pytest.mark.parametrize(
    "refusal",
    [
        CannotRead("the API server cannot be reached"),
        NotServed("the cluster does not serve gangs"),
    ],
)
def test_a_cluster_that_cannot_be_read_is_one_line_and_exit_code_3(
    arguments: list[str], refusal: CannotRead
) -> None:
    for place in (("", ""), ("gangs", ""), ("gangs", "team")):
        if place == ("gangs", "team") and arguments[0] != "why":
            continue  # only `why` asks for one namespace first
        done = run(FakeReader(cluster(), {place: refusal}), *arguments)
        assert (done.exit_code, done.stdout) == (endings.NOT_READ, "")
        assert done.stderr == f"Error: {refusal}\n"


def test_what_tenants_write_does_not_reach_the_terminal_as_control_characters() -> None:
    lists = {"gangs": [gang("g", reason="Pending", message="a\x1b[2Jb\nc\x07")]}
    for arguments in (["status"], ["why", "g"]):
        said = run(FakeReader(lists), *arguments, "-o", "wide").stdout
        assert "a [2Jb c" in said
        assert not {"\x1b", "\x07"} & set(said)


def test_why_takes_the_name_of_a_job_or_service_too() -> None:
    owner = RayOwner(
        metadata=ObjectMeta(name="job", namespace="team"),
        status=RayOwnerStatus(ray_cluster_name="train"),
    )
    found = json.loads(
        run(FakeReader({**cluster(), "rayjobs": [owner]}), "why", "job", "-o", "json").stdout
    )
    assert found["name"] == "train"


def test_why_of_a_ray_cluster_that_is_no_gang_says_how_to_make_it_one() -> None:
    owner = RayOwner(metadata=ObjectMeta(name="plain", namespace="team"))
    done = run(FakeReader({**cluster(), "rayclusters": [owner]}), "why", "plain")
    assert done.exit_code == endings.NO
    assert 'rayclusters plain is there and is no gang; set label muster.dev/gang: "true"' in (
        done.stderr
    )


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"spec": {"suspend": True}}, "no RayCluster for it; its spec.suspend is true"),
        (
            {
                "status": {
                    "jobDeploymentStatus": "ValidationFailed",
                    "reason": "ValidationFailed",
                    "message": "no entrypoint",
                }
            },
            "no RayCluster for it; its status is ValidationFailed (no entrypoint)",
        ),
        ({}, "has no gang yet; KubeRay has made no RayCluster for it"),
    ],
)
def test_why_of_a_ray_job_without_a_ray_cluster_says_its_own_state(state: Json, said: str) -> None:
    meta = {"name": "job", "namespace": "team", "labels": {"muster.dev/gang": "true"}}
    owner = read({"metadata": meta, **state}, RayOwner)
    done = run(FakeReader({**cluster(), "rayjobs": [owner]}), "why", "job")
    assert (done.exit_code, said in done.stderr) == (endings.NO, True), done.stderr
    assert "set label" not in done.stderr


def test_why_says_which_opt_out_is_in_the_way() -> None:
    meta = ObjectMeta(name="plain", namespace="team", labels={"muster.dev/gang": "false"})
    done = run(FakeReader({**cluster(), "rayclusters": [RayOwner(metadata=meta)]}), "why", "plain")
    assert 'is no gang: its label muster.dev/gang is "false"; set it to "true"' in done.stderr


def test_the_events_of_an_earlier_ray_cluster_of_the_name_are_left_out() -> None:
    """They are asked for by the uid of this Gang."""
    reader = FakeReader(cluster())
    run(reader, "why", "train")
    asked = [selector for plural, _, selector in reader.asked if plural == "events"]
    assert asked == ["involvedObject.uid=gang-train"]


def test_the_version_is_that_of_the_package() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert run(FakeReader({}), "--version").output == f"muster {version}\n"


def test_nodes_without_the_resource_that_was_asked_for_are_said_by_its_name() -> None:
    done = run(FakeReader(cluster()), "nodes", "--resource", "example.com/x")
    assert (done.exit_code, done.stdout) == (endings.NO, "")
    assert "--resource example.com/x: no node has any; nodes have" in done.stderr
    assert GPU in done.stderr


def test_cpu_and_memory_are_shown_in_usual_units_and_without_sizes_of_pods() -> None:
    """Named, or where no node has an accelerator."""
    plain: dict[str, list[object]] = {"nodes": [node("a", gpus=0)], "pods": [pod("w", "a", 0)]}
    for arguments in (["nodes"], ["nodes", "--resource", "cpu", "--resource", "memory"]):
        said = run(FakeReader(plain), *arguments).stdout
        assert re.search(r"cpu .*\] +4 +0 +92 +96", said), said
        assert re.search(r"memory .*\] +16Gi +0 +752Gi +768Gi", said), said
        assert "FIT" not in said
    assert "752Gi" in run(FakeReader(plain), "status").stdout
