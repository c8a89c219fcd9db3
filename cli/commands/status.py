"""`muster status`: gangs, queues and GPUs on one screen."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from cli.options import cluster_options, epilog, output_option, run, scope_options

if TYPE_CHECKING:
    from cli.read.reader import Reader
    from cli.read.target import Target
    from cli.report.status import StatusReport


@click.command(
    epilog=epilog(
        "muster status",
        "muster status --watch --interval 5",
        "muster status -n team -o wide",
        "muster status --queue research",
        "muster status -o json | jq .reasons",
    )
)
@cluster_options
@scope_options
@output_option
@click.option("--queue", default="", help="Gangs of this queue alone.")
@click.option("-w", "--watch", is_flag=True, help="Show it again and again, until Ctrl-C.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.5),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Between two looks with --watch.",
)
@click.pass_context
def command(
    context: click.Context,
    target: Target,
    namespace: str,
    output: str,
    queue: str,
    *,
    everywhere: bool,
    watch: bool,
    interval: float,
) -> None:
    """Print gangs by phase, those that wait and those that run, the queues, and the GPUs.

    What the caller may not list is said in one line, and the rest is shown.
    """
    if namespace and everywhere:
        raise click.UsageError("-n names one namespace, -A means all")
    if watch and output in ("json", "yaml"):
        raise click.UsageError("--watch shows tables: -o table or -o wide")
    from cli.read.cluster import read_gangs_anywhere, read_snapshot  # noqa: PLC0415
    from cli.read.devices import with_devices  # noqa: PLC0415
    from cli.report.snapshot import GANGS, NODES, PODS, QUEUES  # noqa: PLC0415
    from cli.report.status import status_report  # noqa: PLC0415
    from cli.show.output import note, show  # noqa: PLC0415
    from cli.show.status import looks, table  # noqa: PLC0415
    from cli.show.watching import watched  # noqa: PLC0415

    async def read(reader: Reader) -> StatusReport:
        kinds = (GANGS, QUEUES, NODES, PODS)
        if everywhere:
            found = await read_snapshot(reader, *kinds)
        else:
            found = await read_gangs_anywhere(reader, *kinds, fallback=namespace)
        return status_report(await with_devices(reader, found), namespace, queue)

    async def work(reader: Reader) -> StatusReport:
        if watch:
            await watched(
                lambda: read(reader), lambda found: looks(found, output, time.time()), interval
            )
        return await read(reader)

    report = run(context, target, work)
    note(report.unread)
    show(report, output, table(report, output, time.time()))
