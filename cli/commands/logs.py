"""`muster logs NAME`: the logs of a Ray cluster's pods, or of a job."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from cli.endings import FINE, NO
from cli.options import cluster_options, epilog, namespace_option, run

if TYPE_CHECKING:
    from cli.read.reader import Reader
    from cli.read.target import Target


@click.command(
    epilog=epilog(
        "muster logs team/train",
        "muster logs train --group workers --tail 100",
        "muster logs train --all --follow",
        "muster logs --job nightly --follow",
    )
)
@click.argument("name", metavar="[NAMESPACE/]NAME")
@click.option("--job", is_flag=True, help="NAME is that of a RayJob: what its command printed.")
@click.option("--group", default="", help="The workers of this group, not the head.")
@click.option("--all", "every", is_flag=True, help="Every pod of the Ray cluster.")
@click.option("-c", "--container", default="", help="Default: the one in which Ray runs.")
@click.option("-f", "--follow", is_flag=True, help="Go on as more is written, until it ends.")
@click.option("--tail", type=click.IntRange(min=0), help="The last lines alone.")
@click.option("--previous", is_flag=True, help="Of the container before its last restart.")
@namespace_option
@cluster_options
@click.pass_context
def command(
    context: click.Context,
    /,
    *,
    target: Target,
    name: str,
    namespace: str,
    job: bool,
    follow: bool,
    **options: Any,
) -> None:
    """Print the log of the head of a RayCluster, of its workers, or of a RayJob.

    With several pods each line begins with its pod. A job is followed from before it begins, and
    the exit code is 1 where it failed.
    """
    group, every, container = (options[each] for each in ("group", "every", "container"))
    if job and (group or every or container):
        raise click.UsageError("--job has one log: --group, --all and -c are for Ray clusters")
    if group and every:
        raise click.UsageError("--group names one group, --all means every pod")
    params = _params(options["tail"], follow=follow, previous=options["previous"])

    async def work(reader: Reader) -> int:
        from cli.read.ray.logs import cluster_logs, follow_job, job_logs, pass_all  # noqa: PLC0415
        from cli.read.ray.ray_object import placed  # noqa: PLC0415
        from cli.report.ray.jobs import ending  # noqa: PLC0415
        from cli.show.log_lines import LogPrinter  # noqa: PLC0415

        (place, short), out = placed(name, namespace, reader.namespace), LogPrinter()
        if job and follow:
            ended = await follow_job(reader, place, short, params, out)
            out.say(ending(ended))
            return FINE if ended.succeeded else NO
        if job:
            sources = await job_logs(reader, place, short)
        else:
            sources = await cluster_logs(reader, place, short, group, container, every=every)
        await pass_all(reader, place, sources, params, out)
        return FINE

    sys.exit(run(context, target, work))


def _params(tail: int | None, *, follow: bool, previous: bool) -> dict[str, str]:
    """Return the query of the API server's log."""
    said = {"follow": follow, "previous": previous}
    found = {key: "true" for key, value in said.items() if value}
    return found if tail is None else {**found, "tailLines": str(tail)}
