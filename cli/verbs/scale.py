"""`muster scale NAME GROUP=N`: sets how many workers a Ray cluster has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli.options import cluster_options, epilog, namespace_option, run_writing
from cli.verbs.asking import asks

if TYPE_CHECKING:
    from cli.read.target import Target
    from cli.write.writer import Writer


@click.command(
    epilog=epilog(
        "muster scale team/train workers=8",
        "muster scale train workers=0 --yes",
        "muster scale serve workers=2..16",
    )
)
@click.argument("name", metavar="[NAMESPACE/]NAME")
@click.argument("targets", metavar="GROUP=N...", nargs=-1, required=True)
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask where pods are deleted.")
@namespace_option
@cluster_options
def command(
    *,
    target: Target,
    name: str,
    targets: tuple[str, ...],
    namespace: str,
    dry_run: bool,
    yes: bool,
) -> None:
    """Set the replicas of worker groups; with Ray's autoscaler on, the bounds that it keeps to.

    GROUP=N sets both bounds to N, GROUP=MIN..MAX each. Without the autoscaler it is GROUP=N: more
    replicas start as they fit, and of fewer KubeRay chooses which pods it deletes.
    """

    async def work(writer: Writer) -> None:
        from cli.managing.scaling import scaled  # noqa: PLC0415 - a start must not pay for it
        from cli.managing.written import read_targets  # noqa: PLC0415
        from cli.read.ray.ray_object import read_free  # noqa: PLC0415
        from cli.write.editing import edit  # noqa: PLC0415
        from kube.api.resources import RAY_CLUSTERS  # noqa: PLC0415

        wanted = read_targets(targets)
        found = await read_free(writer.reader, RAY_CLUSTERS, name, namespace)
        await edit(writer, found, scaled(found, wanted), click.echo, asks(dry_run=dry_run, yes=yes))

    run_writing(target, work)
