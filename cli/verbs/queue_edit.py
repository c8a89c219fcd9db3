"""`muster queue edit NAME`: changes a GangQueue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cli.options import cluster_options, epilog, run_writing
from cli.verbs.asking import asks
from cli.verbs.creating import print_yaml
from cli.verbs.queue_options import form_of, queue_options

if TYPE_CHECKING:
    from cli.read.target import Target
    from cli.write.writer import Writer


@click.command(
    epilog=epilog(
        "muster queue edit research --quota nvidia.com/gpu=24",
        "muster queue edit research --stop Hold",
        'muster queue edit research --quota cpu= --parent "" --dry-run',
    )
)
@click.argument("name")
@queue_options
@click.option("--dry-run", is_flag=True, help="Print what it would be, and change nothing.")
@cluster_options
def command(*, target: Target, name: str, dry_run: bool, **options: Any) -> None:
    """Change a GangQueue; what no option names stays, an empty value takes a field away.

    The quota of gangs that run is not taken from them; what waits is decided anew.
    """
    form = form_of(options)
    if form.is_empty:
        raise click.UsageError("name what is to change: --quota, --parent, --stop and so on")

    async def work(writer: Writer) -> None:
        from cli.read.ray.ray_object import read_object  # noqa: PLC0415 - for a quick start
        from cli.write.creating import plan_queue_edit  # noqa: PLC0415
        from cli.write.plan import carry_out  # noqa: PLC0415
        from kube.api.resources import GANG_QUEUES  # noqa: PLC0415

        found = await read_object(writer.reader, GANG_QUEUES, "", name)
        plan, would_be = await plan_queue_edit(writer, found, form)
        if dry_run and plan.carry_out is not None:
            print_yaml({**found, "metadata": {"name": name}, "spec": would_be["spec"]})
            return
        await carry_out(plan, click.echo, asks(dry_run=False, yes=True))

    run_writing(target, work)
