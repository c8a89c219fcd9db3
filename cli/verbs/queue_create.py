"""`muster queue create NAME`: creates a GangQueue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cli.options import cluster_options, epilog, run_writing
from cli.verbs.creating import create_told, print_yaml
from cli.verbs.queue_options import form_of, queue_options

if TYPE_CHECKING:
    from cli.read.target import Target
    from cli.write.writer import Writer


@click.command(
    epilog=epilog(
        "muster queue create research --parent company --quota nvidia.com/gpu=16 --namespaces a,b",
        "muster queue create company --quota nvidia.com/gpu=64 --dry-run",
    )
)
@click.argument("name")
@queue_options
@click.option("--dry-run", is_flag=True, help="Print it as YAML, and create nothing.")
@cluster_options
def command(*, target: Target, name: str, dry_run: bool, **options: Any) -> None:
    """Create a GangQueue: its quota, the queue to borrow from, who may use it, and its rules."""
    form = form_of(options)

    async def work(writer: Writer) -> None:
        from cli.managing.queue import new_queue  # noqa: PLC0415 - a start must not pay for it
        from kube.api.resources import GANG_QUEUES  # noqa: PLC0415

        body = new_queue(name, form)
        if dry_run:
            print_yaml(body)
            return
        await create_told(writer, GANG_QUEUES, body)

    run_writing(target, work)
