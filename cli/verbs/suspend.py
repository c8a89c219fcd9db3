"""`muster suspend NAME`: deletes the pods of a Ray cluster, which stays and can be resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli.options import cluster_options, epilog, namespace_option, run_writing
from cli.verbs.asking import asks

if TYPE_CHECKING:
    from cli.read.target import Target
    from cli.write.writer import Writer


@click.command(epilog=epilog("muster suspend team/train", "muster suspend train -n team --yes"))
@click.argument("name", metavar="[NAMESPACE/]NAME")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@namespace_option
@cluster_options
def command(*, target: Target, name: str, namespace: str, yes: bool) -> None:
    """Suspend a RayCluster: KubeRay deletes its pods, and its gang gives its room back.

    `muster resume` starts it again, in its queue. One that Muster holds has no pods and is resumed
    once its gang is admitted, so it cannot be suspended: that is said, and what to do.
    """

    async def work(writer: Writer) -> None:
        from cli.read.ray.ray_object import read_free  # noqa: PLC0415 - a start is to be quick
        from cli.write.plan import carry_out  # noqa: PLC0415
        from cli.write.sleeping import plan_suspension  # noqa: PLC0415
        from kube.api.resources import RAY_CLUSTERS  # noqa: PLC0415

        found = await read_free(writer.reader, RAY_CLUSTERS, name, namespace)
        plan = await plan_suspension(writer, found)
        await carry_out(plan, click.echo, asks(dry_run=False, yes=yes))

    run_writing(target, work)
