"""A group of commands of which each is imported when it is called: a start costs what is used."""

from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """Commands by name, each as the module that defines it (as `command`) and its help."""

    def __init__(self, *args: Any, lazy: dict[str, tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy

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
