"""docs/cli.md: its commands exist with their options, and its exit codes are those of the code."""

import re
import shlex

import click
import pytest

from cli import endings
from cli.__main__ import main
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


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_page_is_one_that_muster_takes(line: str) -> None:
    _, name, *arguments = shlex.split(line)
    command = main.get_command(click.Context(main), name)
    assert command is not None
    command.make_context(name, arguments)


def test_every_command_is_on_the_page() -> None:
    named = set(re.findall(r"^\| \[?`muster ([a-z]+)", TEXT, re.MULTILINE))
    assert named == set(main.list_commands(click.Context(main)))


def test_the_exit_codes_are_those_of_the_commands() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", TEXT, re.MULTILINE)
    told = [line.split(maxsplit=1) for line in endings.TABLE.splitlines()]
    assert [list(row) for row in rows] == told
