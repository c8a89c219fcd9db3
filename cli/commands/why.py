"""`muster why NAME`: why a gang waits, what would help, and what happened to it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from cli.options import (
    cluster_options,
    epilog,
    expected_option,
    namespace_option,
    output_option,
    run,
)

if TYPE_CHECKING:
    from cli.read.reader import Reader
    from cli.read.target import Target
    from cli.report.why import WhyReport


@click.command(
    epilog=epilog(
        "muster why team/train",
        "muster why train -n team",
        "muster why team/train --expected",
        "muster why team/train -o json | jq -r .message",
    )
)
@click.argument("name", metavar="[NAMESPACE/]NAME")
@cluster_options
@namespace_option
@expected_option
@output_option
@click.pass_context
def command(
    context: click.Context,
    *,
    target: Target,
    namespace: str,
    output: str,
    name: str,
    expected: bool,
) -> None:
    """Print why a gang waits: its place, each pod set in numbers, and the holders of the room.

    NAME is that of a RayCluster, a RayJob, a RayService or an AppWrapper. Its namespace is that
    of the kubeconfig's context where none is named. The holders on the nodes that could run the
    gang need the right to list nodes and pods; without it those are shown that the Gang names.
    """
    place, slash, short = name.rpartition("/")
    if not short or "/" in place or (slash and not place):
        raise click.UsageError(f"{name}: allowed: NAME or NAMESPACE/NAME")
    if place and namespace not in ("", place):
        raise click.UsageError(f"{name} is not in namespace {namespace}: name one of the two")
    from cli.read.case import read_case  # noqa: PLC0415
    from cli.read.forecast.asking import with_start  # noqa: PLC0415
    from cli.report.why import why_report  # noqa: PLC0415
    from cli.show.output import note, show  # noqa: PLC0415
    from cli.show.why import table  # noqa: PLC0415

    async def work(reader: Reader) -> WhyReport:
        found, case = await read_case(reader, place or namespace or reader.namespace, short)
        report = why_report(found, case)
        return await with_start(reader, report) if expected and report.waits else report

    report = run(context, target, work)
    note(report.unread)
    show(report, output, table(report, output, time.time()))
