"""`muster import`: output, remarks and exit codes."""

import subprocess
import sys

import click
import pytest
import yaml
from click.testing import CliRunner, Result

from cli import import_command
from cli.__main__ import main
from cli.imports.systems import SYSTEMS
from tests.packaging.tree import ROOT

TREE = """
apiVersion: quota.codeflare.dev/v1alpha1
kind: QuotaSubtree
metadata: {name: root, namespace: kube-system, labels: {tree: context}}
spec: {children: [{name: company, quotas: {requests: {cpu: 4}}}]}
"""
BEYOND = """---
apiVersion: quota.codeflare.dev/v1alpha1
kind: QuotaSubtree
metadata: {name: teams, namespace: kube-system, labels: {tree: context}}
spec: {parent: company, children: [{name: gold, quotas: {requests: {cpu: 5}}}]}
"""
OTHER = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n"


def run(*arguments: str, text: str = "") -> Result:
    return CliRunner().invoke(main, ["import", *arguments], input=text)


def test_queues_go_to_standard_output_and_remarks_to_both() -> None:
    done = run("mcad", "-f", "-", text=TREE + OTHER)
    assert done.exit_code == import_command.ALL_MAPPED
    (queue,) = yaml.safe_load_all(done.stdout)
    assert queue["spec"]["quota"] == {"cpu": 4}
    comments = [line for line in done.stdout.splitlines() if line.startswith("#")]
    assert comments == [f"# {line}" for line in done.stderr.splitlines()]
    assert "to do: -: kind = ConfigMap.: not read" in done.stderr


def test_something_that_is_left_out_is_exit_code_1() -> None:
    done = run("mcad", "-f", "-", text=TREE + BEYOND)
    assert done.exit_code == import_command.LEFT_OUT
    assert len(list(yaml.safe_load_all(done.stdout))) == 2
    assert done.stderr.startswith("left out: QuotaSubtree kube-system/root: spec.children[0]")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "Error: standard input: line 2, column 1: "),
        (OTHER, "Error: -: there is no object to import; allowed: quotasubtrees.quota.codeflare"),
        (
            TREE.replace("cpu: 4", "cpu: 4x"),
            "Error: standard input: document 1: QuotaSubtree kube-system/root: spec.children[0].",
        ),
        (
            TREE + BEYOND.replace("[{name", "[7, {name"),
            "Error: standard input: document 2: QuotaSubtree: spec.children[0]: Expected `object`",
        ),
    ],
)
def test_bad_input_is_one_line_with_its_place_and_exit_code_2(text: str, said: str) -> None:
    done = run("mcad", "-f", "-", text=text)
    assert (done.exit_code, done.stdout) == (import_command.BAD_INPUT, "")
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1


def test_files_and_a_cluster_at_once_are_a_wrong_command_line() -> None:
    done = run("mcad", "-f", "x", "--context", "c")
    assert done.exit_code == import_command.BAD_INPUT
    assert "-f reads files" in done.stderr


@pytest.mark.parametrize("system", sorted(SYSTEMS))
def test_help_has_the_exit_codes_and_examples(system: str) -> None:
    done = run(system, "--help")
    assert done.exit_code == 0
    assert "1  the queues are printed, and something is left out" in done.output
    assert f"muster import {system} -f -" in done.output
    for kind in SYSTEMS[system].kinds:
        assert kind in done.output


def test_every_command_is_there_and_its_help_is_known_without_importing_it() -> None:
    assert run("--help").exit_code == 0
    done = CliRunner().invoke(main, ["--help"])
    assert "import" in done.output
    for name in main.list_commands(click.Context(main)):
        assert main.get_command(click.Context(main), name) is not None


HEAVY = ("numpy", "aiohttp", "kubernetes", "pydantic", "rich", "asyncio")
"""Importing one of these takes longer than all else; a command that needs it imports it itself."""

PROBE = """
import sys
from cli.__main__ import main
main(standalone_mode=False, args=sys.argv[2:])
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["status", "--help"],
        ["why", "--help"],
        ["completion", "bash"],
        ["import", "mcad", "-f", "-"],
    ],
)
def test_a_start_imports_nothing_that_is_slow(arguments: list[str]) -> None:
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print(*sorted({*sys.argv[1].split(',')} & {*sys.modules}), "
        "sep=',', file=sys.stderr))\n" + PROBE
    )
    done = subprocess.run(
        [sys.executable, "-c", code, ",".join(HEAVY), *arguments],
        cwd=ROOT,
        input=TREE,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout
    assert done.stderr.splitlines()[-1] == ""
