"""Imports each command when it is called, so that a start costs only what it uses."""

from collections.abc import Collection, Sequence
from importlib import import_module
from typing import Any

import click

_VALUED = ("-n", "--namespace", "-o", "--output", "--kubeconfig", "--context", "--request-timeout")
_FLAGS = ("-A", "--all-namespaces", "--json")


def behind_command(arguments: Sequence[str], pairs: Collection[str] = ()) -> list[str]:
    """Move options that commands share behind the command: `muster -n team status`.

    `pairs` are commands of two words, of which it makes one: `queue create`.
    """
    at = 0
    while at < len(arguments) and (count := _words(arguments[at:])):
        at += count
    words = 2 if " ".join(arguments[at : at + 2]) in pairs else 1
    command = [" ".join(arguments[at : at + words])] if at < len(arguments) else []
    return [*command, *arguments[:at], *arguments[at + words :]]


def _words(arguments: Sequence[str]) -> int:
    """Count the words of the shared option that comes first; 0 where none does."""
    first = arguments[0]
    if first in _VALUED:
        return 2 if len(arguments) > 1 else 0
    joined = first.partition("=")[0] in _VALUED or first[:2] in ("-n", "-o")
    return 1 if first in _FLAGS or joined else 0


class LazyGroup(click.Group):
    """Commands by name, each as the module that defines it (as `command`) and its help."""

    def __init__(self, *args: Any, lazy: dict[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take options that commands share before the command too, as kubectl does."""
        return super().parse_args(ctx, behind_command(args, self._lazy))

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted([*super().list_commands(ctx), *self._lazy])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, from its module."""
        if cmd_name not in self._lazy:
            return super().get_command(ctx, cmd_name)
        command: click.Command = import_module(self._lazy[cmd_name][0]).command
        return command

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 - the signature of the library
        formatter: click.HelpFormatter,
    ) -> None:
        """Write the table of commands without importing them."""
        rows = [(name, self._lazy[name][1]) for name in sorted(self._lazy)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
