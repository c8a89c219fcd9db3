"""`muster queue [NAME]`: quota, usage and waiting gangs of queues."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from cli.options import cluster_options, epilog, expected_option, output_option, run

if TYPE_CHECKING:
    from cli.read.reader import Reader
    from cli.read.target import Target
    from cli.report.queues import OneQueueReport, QueuesReport


@click.command(
    epilog=epilog(
        "muster queue",
        "muster queue research",
        "muster queue research -o wide",
        "muster queue research --expected",
        "muster queue -o json | jq '.queues[] | select(.active | not) | .fault'",
    )
)
@click.argument("name", default="", metavar="[NAME]")
@cluster_options
@expected_option
@output_option
@click.pass_context
def command(
    context: click.Context, *, target: Target, output: str, name: str, expected: bool
) -> None:
    """Print all queues; of the queue NAME also the gangs that wait in it, in their order.

    MAY TAKE is what a queue may still take now, with what it may borrow. Gangs of namespaces that
    the caller may not list are counted and not named.
    """
    if expected and not name:
        raise click.UsageError("--expected: allowed with the name of a queue")
    from cli.read.cluster import read_gangs_anywhere  # noqa: PLC0415
    from cli.read.forecast.asking import with_starts  # noqa: PLC0415
    from cli.read.own_queues import with_own_queues  # noqa: PLC0415
    from cli.report.gangs import queue_of  # noqa: PLC0415
    from cli.report.queues import one_queue_report, queues_report  # noqa: PLC0415
    from cli.report.snapshot import GANGS, QUEUES  # noqa: PLC0415
    from cli.show.output import note, show  # noqa: PLC0415
    from cli.show.queues import table  # noqa: PLC0415

    async def work(reader: Reader) -> QueuesReport | OneQueueReport:
        listed = await read_gangs_anywhere(reader, GANGS, QUEUES)
        mine = {name} if name else {queue_of(each) for each in listed.gangs}
        found = await with_own_queues(reader, listed, mine)
        if not name:
            return queues_report(found)
        report = one_queue_report(found, name)
        return await with_starts(reader, report) if expected and report.waiting else report

    report = run(context, target, work)
    note(report.unread)
    show(report, output, table(report, output, time.time()))
