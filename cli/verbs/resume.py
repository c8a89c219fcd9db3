"""`muster resume NAME`: starts a suspended Ray cluster again, in its queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli.options import cluster_options, epilog, namespace_option, run_writing

if TYPE_CHECKING:
    from cli.read.target import Target
    from cli.write.writer import Writer

_HELD = "Muster held it: its pods are created now, gated, and it is held no longer"


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
        from cli.managing.suspending import is_held, resumption  # noqa: PLC0415 - as in suspend
        from cli.read.ray.ray_object import held_phase, read_free  # noqa: PLC0415
        from cli.write.managing import change, title  # noqa: PLC0415
        from kube.api.resources import RAY_CLUSTERS  # noqa: PLC0415

        found = await read_free(writer.reader, RAY_CLUSTERS, name, namespace)
        meta = found["metadata"]
        patch, called = resumption(found), title("RayCluster", meta)
        if not patch:
            click.echo(f"{called} is not suspended")
            return
        held = is_held(found, await held_phase(writer.reader, meta["namespace"], meta["name"]))
        await change(writer, RAY_CLUSTERS, found, patch)
        click.echo(f"{called} resumed{f'; {_HELD}' if held else ''}")

    run_writing(target, work)
