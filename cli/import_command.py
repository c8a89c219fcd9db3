"""`muster import SYSTEM`: prints GangQueues for the queues of MCAD, Kueue or Volcano."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

import click

from cli import files
from cli.imports.manifest import document, one_line, remarks
from cli.imports.naming import several
from cli.imports.objects import placed
from cli.imports.outcome import Fault, NotRead, Outcome, Source
from cli.imports.systems import SYSTEMS, System

ALL_MAPPED = 0
LEFT_OUT = 1
BAD_INPUT = 2
NO_CLUSTER = 3

_HELP = """Print GangQueues for the queues of {title}.

Objects that are read: {kinds}; from files, or from the cluster that the kubeconfig names.
"""
_AFTER = """\b
Exit code:
  0  all is mapped
  1  the queues are printed, and something is left out
  2  the input or the command line cannot be used
  3  the cluster cannot be read

\b
Examples:
  muster import {name} > queues.yaml
  muster import {name} -f queues-of-{name}.yaml | kubectl apply --dry-run=server -f -
  kubectl get {plurals} -A -o yaml | muster import {name} -f -
"""


@click.group()
def command() -> None:
    """Print GangQueues for the queues of another system.

    Nothing is changed: the output is for `kubectl apply -f -`, after a look at it. What has no
    counterpart is listed in comments above it, and on standard error.
    """


def _command_of(name: str, system: System) -> click.Command:
    def run(file: tuple[str, ...], kubeconfig: str | None, context: str | None) -> None:
        if file and (kubeconfig or context):
            raise click.UsageError("-f reads files; --kubeconfig and --context read the cluster")
        sys.exit(_import(system, file, kubeconfig, context))

    return click.Command(
        name,
        callback=run,
        params=[
            click.Option(["-f", "--file"], multiple=True, help="A file; - is standard input."),
            click.Option(["--kubeconfig"], help="Default: KUBECONFIG, then ~/.kube/config."),
            click.Option(["--context"], help="Default: the kubeconfig's current context."),
        ],
        help=_HELP.format(title=system.title, kinds=several(system.kinds)),
        epilog=_AFTER.format(name=name, plurals=system.plurals),
        short_help=f"From {several(system.kinds)} of {system.title}.",
    )


for _name, _system in SYSTEMS.items():
    command.add_command(_command_of(_name, _system))


def _import(
    system: System, paths: Sequence[str], kubeconfig: str | None, context: str | None
) -> int:
    """Print the queues; returns the exit code."""
    try:
        if paths:
            sources, where = files.read_files(paths), ", ".join(paths)
        else:
            # Importing the API's client takes longer than all else here.
            from cli.cluster import read_cluster  # noqa: PLC0415

            sources, where = read_cluster(system, kubeconfig, context), "the cluster"
        return _print(_outcome(system, sources, where))
    except (Fault, NotRead) as error:
        click.echo(f"Error: {one_line(str(error), 600)}", err=True)
        return BAD_INPUT if isinstance(error, Fault) else NO_CLUSTER


def _print(outcome: Outcome) -> int:
    for line in remarks(outcome):
        click.echo(line, err=True)
    click.echo(document(outcome), nl=False)
    return LEFT_OUT if outcome.left_out else ALL_MAPPED


def _outcome(system: System, sources: Sequence[Source], where: str) -> Outcome:
    mine = [each for each in sources if each.group == system.group and each.kind in system.kinds]
    if not mine:
        raise Fault(f"{where}: there is no object to import; allowed: {system.plurals}")
    try:
        outcome: Outcome = import_module(system.module).read(mine)
    except Fault as fault:
        raise placed(fault, mine) from None
    others = {f"{each.kind}.{each.group}" for each in sources} - {
        f"{each.kind}.{each.group}" for each in mine
    }
    if others:
        outcome.advise(where, "kind", several(others), "not read: only objects of queues are")
    return outcome
