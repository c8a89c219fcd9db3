"""docs/cli.md: its commands exist, its outputs are theirs, its exit codes those of the code."""

import re
import shlex
import time

import click
import pytest

from cli import endings
from cli.__main__ import main
from kube.codec.fields import moment_of
from tests.cli.fake_reader import run
from tests.cli.shown_world import NOW, world
from tests.packaging.tree import ROOT

TEXT = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
COMMANDS = sorted(
    {
        line.partition(" | ")[0]
        for block in BLOCKS
        for line in block.splitlines()
        if line.startswith("muster ")
    }
)


OUTPUTS = re.findall(r"^```\n\$ muster (.*?)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("command", "shown"), OUTPUTS, ids=[each for each, _ in OUTPUTS])
def test_an_output_of_the_page_is_what_the_command_prints(
    command: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: moment_of(NOW))
    done = run(world(), *shlex.split(command))
    assert done.exit_code == endings.FINE, done.stderr
    assert [line.rstrip() for line in done.stdout.splitlines()] == shown.splitlines()


def test_the_page_shows_every_command_that_reads() -> None:
    assert {command.split()[0] for command, _ in OUTPUTS} >= {"status", "queue", "why", "nodes"}


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_page_is_one_that_muster_takes(line: str) -> None:
    _, name, *arguments = shlex.split(line)
    command = main.get_command(click.Context(main), name)
    assert command is not None
    command.make_context(name, arguments)


def test_every_command_is_on_the_page() -> None:
    cells = re.findall(r"^\| (\[?`muster [^|]*) \|", TEXT, re.MULTILINE)
    codes = [code for cell in cells for code in re.findall(r"`([^`]+)`", cell)]
    named = {re.match(r"(?:muster )?([a-z-]+(?: [a-z]+)?)", each)[1] for each in codes}  # type: ignore[index]
    assert named == set(main.list_commands(click.Context(main)))


def test_the_exit_codes_are_those_of_the_commands() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", TEXT, re.MULTILINE)
    told = [line.split(maxsplit=1) for line in endings.TABLE.splitlines()]
    assert [list(row) for row in rows] == told
