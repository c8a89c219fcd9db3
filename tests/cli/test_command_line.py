"""The command line itself: options, completion, help, watches, interruptions."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from cli import endings
from cli.__main__ import run as run_by_name
from cli.endings import CannotRead, NotAllowed
from kube.api.resources import Resource
from tests.children import child
from tests.cli.commands_run import NO, cluster
from tests.cli.fake_reader import FakeReader, run
from tests.cli.objects import gang
from tests.packaging.tree import ROOT


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
        (["muster", "explain", "quota"], "QuotaExceeded QuotaReserved"),
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
