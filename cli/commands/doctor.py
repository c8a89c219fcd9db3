"""`muster doctor`: whether everything that Muster needs is there, and what is in its way."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from cli.endings import FINE, NO
from cli.options import cluster_options, epilog, output_option, run

if TYPE_CHECKING:
    from cli.read.reader import Reader
    from cli.read.target import Target
    from cli.report.doctor.checks import DoctorReport


@click.command(
    epilog=epilog(
        "muster doctor",
        "muster doctor -o json | jq '.findings[] | select(.state != \"ok\")'",
    )
)
@cluster_options
@output_option
@click.pass_context
def command(context: click.Context, target: Target, output: str) -> None:
    """Look at versions, definitions, webhooks, certificates, leader, extender and other systems.

    Each finding is ok, warn, fail or unknown, with what to do about it. The exit code is 1 where
    something fails. Nothing is changed.
    """
    from cli.report.doctor.checks import examine  # noqa: PLC0415
    from cli.show.doctor import table  # noqa: PLC0415
    from cli.show.output import show  # noqa: PLC0415

    async def work(reader: Reader) -> DoctorReport:
        from cli.read.examining import read_examined  # noqa: PLC0415

        return examine(await read_examined(reader))

    report = run(context, target, work)
    show(report, output, table(report))
    sys.exit(NO if report.failed else FINE)
