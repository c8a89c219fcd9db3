"""`muster resume NAME`: starts a suspended Ray cluster again, in its queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli.options import cluster_options, epilog, namespace_option, run_writing
from cli.verbs.asking import asks

if TYPE_CHECKING:
    from cli.read.target import Target
    from cli.write.writer import Writer


@click.command(epilog=epilog("muster resume team/train", "muster resume train -n team"))
@click.argument("name", metavar="[NAMESPACE/]NAME")
@namespace_option
@cluster_options
def command(*, target: Target, name: str, namespace: str) -> None:
    """Resume a suspended RayCluster: its pods are created, and its gang waits for its place.

    One that Muster holds is resumed by itself once it is admitted. Resumed by hand it waits as any
    other gang, with its pods created.
    """

    async def work(writer: Writer) -> None:
        from cli.read.ray.ray_object import read_free  # noqa: PLC0415 - as in suspend
        from cli.write.plan import carry_out  # noqa: PLC0415
        from cli.write.sleeping import plan_resumption  # noqa: PLC0415
        from kube.api.resources import RAY_CLUSTERS  # noqa: PLC0415

        found = await read_free(writer.reader, RAY_CLUSTERS, name, namespace)
        plan = await plan_resumption(writer, found)
        await carry_out(plan, click.echo, asks(dry_run=False, yes=True))

    run_writing(target, work)
