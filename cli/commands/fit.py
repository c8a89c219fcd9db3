"""`muster fit -f FILE`: whether Ray clusters would start now, in their queues."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from cli.endings import FINE, NO, NOT_READ, Unusable
from cli.imports.outcome import Fault
from cli.options import (
    cluster_options,
    complete_files,
    end,
    epilog,
    namespace_option,
    output_option,
    run,
)

if TYPE_CHECKING:
    from cli.fitting.asked import Asked
    from cli.imports.outcome import Source
    from cli.read.reader import Reader
    from cli.read.target import Target
    from cli.report.fit import FitReport


@click.command(
    epilog=epilog(
        "muster fit -f raycluster.yaml",
        "muster fit -f jobs.yaml -n team -o json",
        "kubectl get rayjob train -o yaml | muster fit -f -",
    )
)
@click.option(
    *("-f", "--file", "files"),
    multiple=True,
    required=True,
    shell_complete=complete_files,
    help="A file; - is standard input.",
)
@click.option(
    "--dry-run/--no-dry-run",
    default=True,
    show_default=True,
    help="Ask the API server too, by dry-run creates.",
)
@namespace_option
@cluster_options
@output_option
@click.pass_context
def command(
    context: click.Context,
    *,
    files: tuple[str, ...],
    namespace: str,
    target: Target,
    output: str,
    dry_run: bool,
) -> None:
    """Say whether RayClusters, RayJobs, RayCronJobs and RayServices of FILE would start now.

    They are judged together, as if all were created now. Nothing is created: their pods are worked
    out from the templates, and decided on as the coordinator would. An object that does not fit has
    the reason, and the largest number of replicas of each worker group that would. So has one that
    the API server refuses in a dry run of the object, or of a pod of each pod set.
    """
    # These import the core, and rich: a start without work must not pay for them.
    from cli.files import read_files  # noqa: PLC0415
    from cli.report.fit import exit_code  # noqa: PLC0415
    from cli.show.fit import table  # noqa: PLC0415
    from cli.show.output import printable, show  # noqa: PLC0415

    try:
        sources = read_files(files)
    except Fault as fault:
        end(Unusable(str(fault)))
    if not sources:
        end(Unusable(f"{', '.join(files)}: there is no object in it"))

    async def work(reader: Reader) -> tuple[FitReport, list[str]]:
        from cli.read.dry_run import ask, ask_nothing  # noqa: PLC0415
        from cli.read.judging import judge  # noqa: PLC0415

        asked, remarks = _asked(sources, namespace or reader.namespace)
        return await judge(reader, asked, ask if dry_run else ask_nothing), remarks

    report, remarks = run(context, target, work)
    for each in (*remarks, *report.not_judged):
        click.echo(f"Note: {printable(each)}", err=True)
    show(report, output, table(report, wide=output == "wide"))
    sys.exit(exit_code(report, fine=FINE, no=NO, not_read=NOT_READ))


def _asked(sources: list[Source], namespace: str) -> tuple[list[Asked], list[str]]:
    from cli.fitting.asked import read_asked  # noqa: PLC0415

    try:
        return read_asked(sources, namespace)
    except Fault as fault:
        raise Unusable(str(fault)) from None
