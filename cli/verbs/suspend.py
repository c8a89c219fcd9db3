"""`muster suspend NAME`: deletes the pods of a Ray cluster, which stays and can be resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli.confirming import confirm
from cli.options import cluster_options, epilog, namespace_option, run_writing

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
        from cli.managing.suspending import suspension  # noqa: PLC0415 - a start is to be quick
        from cli.read.ray.ray_object import held_phase, read_free  # noqa: PLC0415
        from cli.write.managing import change, title  # noqa: PLC0415
        from kube.api.resources import RAY_CLUSTERS  # noqa: PLC0415

        found = await read_free(writer.reader, RAY_CLUSTERS, name, namespace)
        meta = found["metadata"]
        phase = await held_phase(writer.reader, meta["namespace"], meta["name"])
        patch, called = suspension(found, phase), title("RayCluster", meta)
        if not patch:
            click.echo(f"{called} is suspended already")
            return
        if not yes:
            confirm(f"KubeRay deletes ALL pods of {called}, with what runs there. Go on?")
        await change(writer, RAY_CLUSTERS, found, patch)
        click.echo(f"{called} suspended; muster resume starts it again, in its queue")

    run_writing(target, work)
