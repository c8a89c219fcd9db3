"""`muster completion SHELL`: the script by which a shell completes commands and options."""

import click
from click.shell_completion import get_completion_class

from cli.options import epilog

SHELLS = ("bash", "fish", "zsh")


@click.command(
    epilog=epilog(
        "source <(muster completion bash)",
        "muster completion zsh > ~/.zfunc/_muster",
        "muster completion fish > ~/.config/fish/completions/muster.fish",
    )
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script of a SHELL.

    bash needs version 4.4 or later. For `kubectl muster` kubectl asks a program of its own, which
    is not part of this.
    """
    found = get_completion_class(shell)
    assert found is not None, f"click completes {SHELLS}"
    root = context.find_root()
    click.echo(found(root.command, {}, "muster", "_MUSTER_COMPLETE").source())
