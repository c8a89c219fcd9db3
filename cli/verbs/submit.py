"""`muster submit NAME -- COMMAND`: submits a job, as a RayJob."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.endings import FINE, NO, Unusable
from cli.options import cluster_options, complete_files, end, epilog, namespace_option, run_writing
from cli.verbs.creating import check_fits, create_told, foretold, print_yaml
from cli.verbs.form_options import form_of, form_options

if TYPE_CHECKING:
    from cli.managing.forms import ClusterForm, JobForm
    from cli.read.reader import Reader
    from cli.read.target import Target
    from cli.write.writer import Writer

Json = dict[str, Any]


@click.command(
    epilog=epilog(
        "muster submit nightly --cluster train -- python train.py --epochs 3",
        "muster submit nightly --group workers,replicas=4,gpus=8 --follow -- python train.py",
        "muster submit nightly --like train --runtime-env env.yaml -- python train.py",
    )
)
@click.argument("name", metavar="[NAMESPACE/]NAME")
@click.argument("words", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED)
@click.option("--cluster", default="", metavar="NAME", help="The RayCluster that runs already.")
@click.option("--like", metavar="NAME", help="One of its own, like this RayCluster.")
@click.option("--cluster-file", shell_complete=complete_files, help="One of its own, of a file.")
@form_options
@click.option("--gang/--no-gang", default=None, help="Whether all of it starts together.")
@click.option("--runtime-env", shell_complete=complete_files, help="A file of YAML.")
@click.option("--entrypoint-cpus", type=float, help="CPUs that Ray keeps for the command.")
@click.option("--entrypoint-gpus", type=float, help="GPUs that Ray keeps for the command.")
@click.option("--retries", type=int, help="Each on a new Ray cluster of its own.")
@click.option("--keep", type=int, help="Seconds for which its own Ray cluster outlives it.")
@click.option("--follow", is_flag=True, help="Print its log until it ends.")
@click.option("--dry-run", is_flag=True, help="Print it as YAML, and submit nothing.")
@click.option("--if-fits", is_flag=True, help="Submit it only where it would start now.")
@click.option("--fit/--no-fit", default=True, show_default=True, help="Say whether it would start.")
@namespace_option
@cluster_options
def command(
    *,
    target: Target,
    name: str,
    namespace: str,
    words: tuple[str, ...],
    follow: bool,
    dry_run: bool,
    if_fits: bool,
    fit: bool,
    **options: Any,
) -> None:
    """Submit a job as a RayJob: to a RayCluster that runs, or to one of its own.

    With --cluster the job runs on that RayCluster, which stays. Without it the job gets its own, of
    the options, which waits as a gang in its queue and goes with the job.
    """
    like, path = options.pop("like"), options.pop("cluster_file")
    job, form = _job_of(options, words), form_of(options)
    if job.cluster and (like or path or not form.is_empty):
        raise click.UsageError("--cluster names one that runs: give it, or options of a new one")
    if if_fits and (job.cluster or not fit):
        raise click.UsageError("--if-fits asks whether a Ray cluster of its own would start now")
    if like and path:
        raise click.UsageError(
            "--cluster-file has a RayCluster, and --like copies one: one of both"
        )

    async def work(writer: Writer) -> int:
        from kube.api.resources import RAY_JOBS  # noqa: PLC0415 - a start must not pay for it

        body = await _job(writer.reader, name, namespace, job, form, like, path)
        if fit and not job.cluster:
            found = await foretold(writer, body, sys.stderr if dry_run else sys.stdout)
            if if_fits:
                check_fits(found)
        if dry_run:
            print_yaml(body)
            return FINE
        await create_told(writer, RAY_JOBS, body)
        return await _follow(writer.reader, body) if follow else FINE

    sys.exit(run_writing(target, work))


def _job_of(options: dict[str, Any], words: tuple[str, ...]) -> JobForm:
    """Take the options of a job out of those of the command."""
    from cli.managing.forms import JobForm  # noqa: PLC0415
    from cli.managing.job import command_of  # noqa: PLC0415

    path = options.pop("runtime_env")
    return JobForm(
        entrypoint=command_of(words) if words else "",
        cluster=options.pop("cluster"),
        runtime_env=_text(path) if path else "",
        entrypoint_cpus=options.pop("entrypoint_cpus"),
        entrypoint_gpus=options.pop("entrypoint_gpus"),
        retries=options.pop("retries"),
        keep_seconds=options.pop("keep"),
    )


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        end(Unusable(f"--runtime-env {path}: {error}"))


async def _job(
    reader: Reader,
    name: str,
    namespace: str,
    job: JobForm,
    form: ClusterForm,
    like: str | None,
    path: str | None,
) -> Json:
    from cli.managing.job import new_job  # noqa: PLC0415
    from cli.read.ray.ray_object import placed  # noqa: PLC0415
    from cli.read.wanted import like_another, of_file, of_form, on_cluster  # noqa: PLC0415

    place, short = placed(name, namespace, reader.namespace)
    if job.cluster:
        body, waiting = await on_cluster(reader, place, short, job)
        if waiting:
            click.echo(f"Note: {waiting}", err=True)
        return body
    if like is not None:
        cluster = await like_another(reader, place, short, like, form)
    elif path is not None:
        cluster = of_file(path, place, "", place, form)
    else:
        cluster = of_form(place, short, form)
    return new_job(short, place, job, cluster)


async def _follow(reader: Reader, body: Json) -> int:
    from cli.read.ray.logs import follow_job  # noqa: PLC0415 - a start must not pay for it
    from cli.report.ray.jobs import ending  # noqa: PLC0415
    from cli.show.log_lines import LogPrinter  # noqa: PLC0415

    (meta, out), params = (body["metadata"], LogPrinter()), {"follow": "true"}
    ended = await follow_job(reader, meta["namespace"], meta["name"], params, out)
    out.say(ending(ended))
    return FINE if ended.succeeded else NO
