"""`muster delete NAME`: deletes a Ray cluster or a job, and says before what goes with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli.confirming import confirm
from cli.options import cluster_options, epilog, namespace_option, run_writing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from cli.read.reader import Reader
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
        from cli.write.managing import delete, title  # noqa: PLC0415
        from kube.api import resources  # noqa: PLC0415

        resource = resources.RAY_JOBS if job else resources.RAY_CLUSTERS
        found = await read_free(writer.reader, resource, name, namespace)
        for each in await _lost(writer.reader, found):
            click.echo(f"{'would go' if dry_run else 'goes'} with it: {each}")
        if dry_run:
            return
        if not yes:
            confirm(f"Delete {title(found['kind'], found['metadata'])}?")
        await delete(writer, resource, found)
        click.echo(f"{title(found['kind'], found['metadata'])} deleted")

    run_writing(target, work)


async def _lost(reader: Reader, found: dict[str, Any]) -> Iterator[str]:
    from cli.managing.deleting import goes_with, goes_with_job, hangs  # noqa: PLC0415
    from cli.read.ray.ray_object import list_objects, pods_of  # noqa: PLC0415
    from kube.api.resources import RAY_JOBS  # noqa: PLC0415

    if found["kind"] == "RayJob":
        return goes_with_job(found)
    place, name = found["metadata"]["namespace"], found["metadata"]["name"]
    pods = await pods_of(reader, place, name)
    jobs = await list_objects(reader, RAY_JOBS, place)
    if stuck := hangs(found):
        click.echo(f"Note: {stuck}", err=True)
    return goes_with(found, None if pods is None else len(pods), jobs)
