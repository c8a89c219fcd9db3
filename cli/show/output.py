"""Prints a report: for people through rich, for programs as JSON or YAML.

Importing rich costs as much as the rest of a start: commands import this module when they print.
"""

import os
import sys
from collections.abc import Callable, Iterable
from typing import NoReturn, TextIO

import click
import msgspec
from rich.console import Console

from cli.endings import NOT_TAKEN

PIPED_WIDTH = 400
"""Columns where the output is no terminal: rows are for other programs, and are not broken."""


class _Screen(Console):
    """Ends the program where its output is not taken."""

    def on_broken_pipe(self) -> NoReturn:
        """End without a word."""
        not_taken()


def not_taken() -> NoReturn:
    """End the program, with nothing left to be written at the end, which would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(NOT_TAKEN)


def console(stream: TextIO | None = None) -> Console:
    """Return what tables are printed on: colours on a terminal alone, and not with NO_COLOR."""
    file = stream or sys.stdout
    terminal = file.isatty()
    return _Screen(
        file=file,
        force_terminal=terminal,
        no_color=bool(os.environ.get("NO_COLOR")),
        width=None if terminal else PIPED_WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
    )


def show(report: msgspec.Struct, output: str, table: Callable[[Console], None]) -> None:
    """Print a report in the form that `-o` names; `table` prints it for people."""
    screen = console()
    try:
        match output:
            case "json":
                click.echo(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
            case "yaml":
                click.echo(_yaml(report), nl=False)
            case _:
                table(screen)
    except BrokenPipeError:
        not_taken()


def note(unread: Iterable[str]) -> None:
    """Say on standard error what the answer is made without."""
    for each in unread:
        click.echo(f"Note: {printable(each)}", err=True)


def printable(text: str) -> str:
    """Take out what a terminal would obey: messages repeat what tenants write."""
    return "".join(each if each.isprintable() else " " for each in text)


def _yaml(report: msgspec.Struct) -> str:
    import yaml  # noqa: PLC0415 - only this form needs it

    text: str = yaml.safe_dump(msgspec.to_builtins(report), sort_keys=False, allow_unicode=True)
    return text
