"""`muster delete NAME`: deletes a Ray cluster or a job, and says before what goes with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli.confirming import confirm
from cli.options import cluster_options, epilog, namespace_option, run_writing

if TYPE_CHECKING:
    from cli.read.target import Target
    from cli.write.writer import Writer


@click.command(
    epilog=epilog(
        "muster delete team/train",
        "muster delete train -n team --yes",
        "muster delete --job team/nightly",
    )
)
@click.argument("name", metavar="[NAMESPACE/]NAME")
@click.option("--job", is_flag=True, help="NAME is that of a RayJob.")
@click.option("--dry-run", is_flag=True, help="Say what would go, and delete nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@namespace_option
@cluster_options
def command(
    *, target: Target, name: str, namespace: str, job: bool, dry_run: bool, yes: bool
) -> None:
    """Delete a RayCluster, or with --job a RayJob, and say before what goes with it.

    What belongs to another object is left alone, and the owner is named.
    """

    async def work(writer: Writer) -> None:
        from cli.read.ray.ray_object import read_free  # noqa: PLC0415 - it imports the client
        from cli.write.deleting import plan_deletion, plan_job_deletion  # noqa: PLC0415
        from kube.api import resources  # noqa: PLC0415

        resource = resources.RAY_JOBS if job else resources.RAY_CLUSTERS
        found = await read_free(writer.reader, resource, name, namespace)
        plan = await (plan_job_deletion if job else plan_deletion)(writer, found)
        for each in plan.notes:
            click.echo(f"Note: {each}", err=True)
        for each in plan.said:
            click.echo(f"{'would go' if dry_run else 'goes'} with it: {each}")
        if dry_run:
            return
        if not yes:
            confirm(plan.asks)
        click.echo(await plan.do())

    run_writing(target, work)
