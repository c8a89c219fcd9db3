"""The commands with a reader of hand-made objects: output, exit codes, and what is not allowed."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli import endings
from cli.__main__ import run as run_by_name
from cli.endings import CannotRead, NotAllowed, NotServed
from cli.report.objects import RayOwner, RayOwnerStatus
from kube.api.resources import Resource
from kube.objects.base import ObjectMeta
from tests.children import child
from tests.cli.fake_reader import FakeReader, run
from tests.cli.objects import GPU, Json, gang, node, placement, pod, queue, read
from tests.packaging.tree import ROOT

MESSAGE = "0 of 2 workers fit: each needs 8 nvidia.com/gpu on one node"


def cluster() -> dict[str, list[object]]:
    return {
        "gangs": [
            gang("train", position=1, reason="InsufficientResources", message=MESSAGE),
            gang("runs", "Running", placement=placement(gpus=8, a=1)),
        ],
        "gangqueues": [queue("research", {GPU: 16}, usage={GPU: "8"}, pending=1, admitted=1)],
        "nodes": [node("a"), node("b")],
        "pods": [pod("runs-w", "a", 8, of="runs", pinned="a")],
    }


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


NO = NotAllowed("not allowed to read these")


def test_a_tenant_without_nodes_is_told_so_in_a_line_and_shown_the_rest() -> None:
    done = run(FakeReader(cluster(), {("nodes", ""): NO, ("pods", ""): NO}), "status")
    assert done.exit_code == endings.FINE
    assert done.stderr == f"Note: {NO}\n" * 2
    assert MESSAGE in done.stdout
    assert "GPUs of nodes are not known: nodes and pods cannot be listed" in done.stdout


def test_nodes_that_may_not_be_listed_are_no_answer() -> None:
    done = run(FakeReader(cluster(), {("nodes", ""): NO, ("pods", ""): NO}), "nodes")
    assert done.exit_code == endings.NOT_READ
    assert "muster queue NAME says how many pods still fit" in done.stdout


def test_a_tenant_of_one_namespace_is_shown_its_gangs() -> None:
    refusals = {("gangs", ""): NO, ("nodes", ""): NO, ("pods", ""): NO, ("gangqueues", ""): NO}
    lists = cluster() | {"gangs": [*cluster()["gangs"], gang("far", namespace="elsewhere")]}
    done = run(FakeReader(lists, refusals), "status", "-o", "json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["namespace"], found["gangs"]) == (endings.FINE, "team", 2)
    assert "only gangs of namespace team count here" in done.stderr
    assert run(FakeReader(lists, refusals), "status", "-A").exit_code == endings.NOT_READ
    assert run(FakeReader(lists, refusals), "why", "train").exit_code == endings.FINE


@pytest.mark.parametrize("arguments", [["queue", "research"], ["queue"], ["why", "train"]])
def test_a_tenant_that_may_get_its_own_queue_alone_sees_its_quota(arguments: list[str]) -> None:
    refusals = {("gangs", ""): NO, ("nodes", ""): NO, ("pods", ""): NO, ("gangqueues", ""): NO}
    others = [queue("product", {GPU: 4}), *cluster()["gangqueues"]]
    reader = FakeReader({**cluster(), "gangqueues": others}, refusals)
    reader.gets = ("research",)
    done = run(reader, *arguments, "-o", "json")
    assert done.exit_code == endings.FINE, done.stderr
    assert f"{NO}: only queue research is known, not what others lend" in done.stderr
    found = json.loads(done.stdout)
    if arguments[0] == "queue":
        (shown,) = found.get("queues") or [found["queue"]]
        (resource,) = shown["resources"]
        assert (shown["name"], resource["used"], resource["quota"]) == ("research", "8", "16")


def test_the_quota_of_another_queue_is_not_shown_to_a_tenant() -> None:
    refusals = {("gangs", ""): NO, ("gangqueues", ""): NO}
    reader = FakeReader({**cluster(), "gangqueues": [queue("product", {GPU: 4})]}, refusals)
    done = run(reader, "queue", "product")
    assert (done.exit_code, done.stdout) == (endings.NO, "")
    assert "gangqueues cannot be listed" in done.stderr


@pytest.mark.parametrize("command", ["status", "queue"])
def test_queues_that_may_not_be_listed_are_not_said_to_be_absent(command: str) -> None:
    for gangs in ((), cluster()["gangs"]):
        done = run(FakeReader({**cluster(), "gangs": gangs}, {("gangqueues", ""): NO}), command)
        assert "built-in" not in done.stdout
        assert ("gangqueues cannot be listed" in done.stdout) is (not gangs)
        assert f"Note: {NO}" in done.stderr
    assert "built-in" in run(FakeReader({}), command).stdout


def test_a_caller_who_may_list_no_gangs_at_all_is_told_which() -> None:
    done = run(FakeReader(cluster(), {("gangs", ""): NO, ("gangs", "team"): NO}), "queue")
    assert (done.exit_code, done.stderr) == (endings.NOT_READ, f"Error: {NO}\n")


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


@pytest.mark.parametrize(
    "before",
    [
        ["-n", "x", "--kubeconfig", "f", "--json"],
        ["-nx", "--kubeconfig=f", "-ojson"],
        ["--namespace=x", "--kubeconfig", "f", "-o", "json"],
    ],
)
def test_shared_options_may_stand_before_the_command(before: list[str]) -> None:
    reader = FakeReader({"gangs": [gang("g", namespace="x")]})
    for arguments in ([*before, "why", "g"], ["why", *before, "g"], ["why", "g", *before]):
        done = run(reader, *arguments)
        assert (done.exit_code, json.loads(done.stdout)["namespace"]) == (endings.FINE, "x")
    assert {each.kubeconfig for each in reader.targets} == {"f"}


def test_an_option_before_the_command_that_it_does_not_know_is_told() -> None:
    assert "No such option" in run(FakeReader({}), "-n", "x", "explain").stderr
    assert "No such option" in run(FakeReader({}), "--wide", "status").stderr


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("/usr/local/bin/muster", "muster"),
        ("/home/me/.krew/bin/kubectl-muster", "kubectl muster"),
        ("./muster-0.1.0-python3.13-Linux-x86_64.pyz", "muster"),
    ],
)
def test_it_calls_itself_what_it_was_called_by(
    file: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    entry = f"{run_by_name.__module__}:{run_by_name.__name__}"
    assert (scripts["muster"], scripts["kubectl-muster"]) == (entry, entry)
    monkeypatch.setattr(sys, "argv", [file, "why", "--help"])
    with pytest.raises(SystemExit, match="0"):
        run_by_name()
    assert capsys.readouterr().out.startswith(f"Usage: {said} why [OPTIONS]")


@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_completion_is_a_script_that_asks_muster(shell: str) -> None:
    done = run(FakeReader({}), "completion", shell)
    assert done.exit_code == endings.FINE
    assert "_MUSTER_COMPLETE" in done.stdout


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["muster", "st"], "status"),
        (["muster", "status", "--wat"], "--watch"),
        (["muster", "status", "-o", ""], "table wide json yaml"),
        (["muster", "explain", "quota"], "QuotaExceeded"),
        (["muster", "import", ""], "kueue mcad volcano"),
    ],
)
def test_a_real_bash_completes_once_it_has_sourced_the_script(
    typed: list[str], offered: str, tmp_path: Path
) -> None:
    """The function that the script binds is called as bash calls it after Tab."""
    start = "from cli.__main__ import main; main(prog_name='muster')"
    (tmp_path / "muster").write_text(f'#!/bin/sh\nexec {sys.executable} -c "{start}" "$@"\n')
    (tmp_path / "muster").chmod(0o755)
    asks = """
    source <(muster completion bash)
    [[ $(complete -p muster) =~ -F\\ ([_a-z]+) ]]
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    ${BASH_REMATCH[1]} muster
    echo "${COMPREPLY[*]}"
    """
    path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    command = ["bash", "--norc", "-c", asks, "bash", *typed]
    done = subprocess.run(command, capture_output=True, text=True, env=path, check=False)
    assert (done.stdout, done.stderr) == (f"{offered}\n", "")


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


def test_help_has_examples_and_exit_codes() -> None:
    for arguments in ([], ["status"], ["queue"], ["why"], ["nodes"], ["explain"], ["completion"]):
        said = run(FakeReader({}), *arguments, "--help").output
        assert "Examples:" in said
        assert [line for line in endings.TABLE.splitlines() if line not in said] == []


class Interrupted(FakeReader):
    """One look that succeeds, one that fails, one more, and then Ctrl-C."""

    looks = 0

    async def list(self, resource: Resource, as_: type[Any], **where: Any) -> tuple[Any, ...]:
        if resource.plural == "gangs":
            self.looks += 1
        if self.looks == 2:
            raise CannotRead("the API server cannot be reached")
        if self.looks == 4:
            raise KeyboardInterrupt
        return await super().list(resource, as_, **where)


def test_a_watch_looks_again_also_after_a_fault_until_it_is_interrupted() -> None:
    done = run(Interrupted(cluster()), "status", "--watch", "--interval", "0.5")
    assert done.exit_code == endings.INTERRUPTED
    assert done.stdout.count("2 gangs: 1 Queued, 1 Running") == 2
    assert done.stdout.count("the API server cannot be reached") == 1


def test_a_watch_says_at_each_look_what_could_not_be_read() -> None:
    refusals = {("nodes", ""): NO, ("gangqueues", ""): NotAllowed("no queues")}
    done = run(Interrupted(cluster(), refusals), "status", "--watch", "--interval", "0.5")
    assert (done.stdout.count(f"Note: {NO}\n"), done.stdout.count("Note: no queues\n")) == (2, 2)


def test_a_watch_that_cannot_begin_ends() -> None:
    refusals = {("gangs", ""): CannotRead("the API server cannot be reached")}
    done = run(FakeReader(cluster(), refusals), "status", "--watch")
    assert (done.exit_code, done.stdout) == (endings.NOT_READ, "")


def test_a_page_whose_address_is_not_taken_ends_without_a_word(tmp_path: Path) -> None:
    """As in `muster dashboard | true`."""
    config = tmp_path / "config"
    config.write_text(
        json.dumps(
            {
                "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "users": [{"name": "u", "user": {}}],
                "current-context": "c",
            }
        )
    )
    command = [sys.executable, "-m", "cli", "dashboard", "--port", "0", "--kubeconfig", str(config)]
    pipe = subprocess.PIPE
    with child(command, cwd=ROOT, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == endings.NOT_TAKEN


@pytest.mark.parametrize("output", ["table", "json", "yaml"])
def test_output_that_is_not_taken_ends_it_without_a_word(output: str) -> None:
    """As in `muster explain | head -1`: 1 would say that the answer is no."""
    command = [sys.executable, "-m", "cli", "explain", "-o", output]
    pipe = subprocess.PIPE
    with child(command, cwd=ROOT, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == endings.NOT_TAKEN
