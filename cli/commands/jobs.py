"""`muster jobs`: how far jobs are, the Ray cluster each runs on, and why it waits."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from cli.options import cluster_options, epilog, output_option, run, scope_options

if TYPE_CHECKING:
    from cli.read.reader import Reader
    from cli.read.target import Target
    from cli.report.ray.jobs import JobsReport


@click.command(
    epilog=epilog(
        "muster jobs",
        "muster jobs -n team -o wide",
        "muster jobs -A -o json | jq '.jobs[] | select(.job == \"FAILED\")'",
    )
)
@cluster_options
@scope_options
@output_option
@click.pass_context
def command(
    context: click.Context, target: Target, namespace: str, output: str, *, everywhere: bool
) -> None:
    """Print RayJobs: Ray's state of each and KubeRay's, and while its gang waits, why.

    Jobs that were sent by Ray's own API are none of Kubernetes' objects: Ray's dashboard has them.
    """
    if namespace and everywhere:
        raise click.UsageError("-n names one namespace, -A means all")
    from cli.read.ray.jobs import read_jobs  # noqa: PLC0415 - a start must not pay for it
    from cli.show.jobs import table  # noqa: PLC0415
    from cli.show.output import note, show  # noqa: PLC0415

    async def work(reader: Reader) -> JobsReport:
        return await read_jobs(reader, namespace, everywhere=everywhere)

    report = run(context, target, work)
    note(report.unread)
    show(report, output, table(report, output, time.time()))
