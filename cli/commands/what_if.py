"""`muster what-if`: what changes of the cluster would do to its gangs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli.endings import Unusable
from cli.imports.outcome import Fault
from cli.options import (
    add_options,
    cluster_options,
    complete_files,
    epilog,
    namespace_option,
    output_option,
    run,
)

if TYPE_CHECKING:
    from cli.imports.outcome import Source
    from cli.read.reader import Reader
    from cli.read.target import Target
    from cli.report.forecast.what_if import WhatIfReport

_OPTIONS = (
    click.option("--cordon", multiple=True, metavar="NODE", help="No new pods on it."),
    click.option("--drain", multiple=True, metavar="NODE", help="The same, and its pods go."),
    click.option("--add-nodes", multiple=True, metavar="N=NODE", help="N more like that one."),
    click.option(
        "--quota", multiple=True, metavar="QUEUE:RESOURCE=AMOUNT", help="Another quota of a queue."
    ),
    click.option("--stop", multiple=True, metavar="[NAMESPACE/]GANG", help="It ends now."),
    click.option(
        *("-f", "--file", "files"),
        multiple=True,
        shell_complete=complete_files,
        help="Ray clusters, jobs or services to submit; - is standard input.",
    ),
)


@click.command(
    name="what-if",
    epilog=epilog(
        "muster what-if --drain gpu-7",
        "muster what-if --add-nodes 4=gpu-1",
        "muster what-if --quota research:nvidia.com/gpu=32 -f job.yaml",
        "muster what-if --stop team/train -o json | jq '.effects[]'",
    ),
)
@namespace_option
@cluster_options
@output_option
@click.pass_context
def command(
    context: click.Context,
    /,
    *,
    files: tuple[str, ...],
    namespace: str,
    target: Target,
    output: str,
    **said: tuple[str, ...],
) -> None:
    """Say which gangs would start, stop or wait longer if all of these changes were made now.

    Nothing is changed. The coordinator's rules are run forward on a picture of the cluster, with
    the changes and without them. What starts and stops at once is exact for the picture; later
    starts depend on how long gangs run. It needs the right to list nodes, pods, Gangs, Ray clusters
    and GangQueues of all namespaces.
    """
    from cli.read.forecast.changes import read_changes  # noqa: PLC0415 - a start must not pay for it
    from cli.read.forecast.what_if import read_what_if  # noqa: PLC0415
    from cli.show.forecast.what_if import table  # noqa: PLC0415
    from cli.show.output import note, show  # noqa: PLC0415

    if not (any(said.values()) or files):
        raise click.UsageError(
            "what is to be changed? allowed: --cordon, --drain, --add-nodes, --quota, --stop, -f"
        )

    async def work(reader: Reader) -> WhatIfReport:
        try:
            changes = read_changes(said, _sources(files), namespace or reader.namespace)
            return await read_what_if(reader, changes)
        except Fault as fault:
            raise Unusable(str(fault)) from None

    report = run(context, target, work)
    note((*report.notes, *report.unread))
    show(report, output, table(report, output))


def _sources(files: tuple[str, ...]) -> list[Source]:
    from cli.files import read_files  # noqa: PLC0415

    found = read_files(files)
    if files and not found:
        raise Fault(f"{', '.join(files)}: there is no object in it")
    return found


command = add_options(command, _OPTIONS)
