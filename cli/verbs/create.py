"""`muster create NAME`: creates a Ray cluster, and says before whether it would start now."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from cli.options import (
    cluster_options,
    complete_files,
    epilog,
    namespace_option,
    run_writing,
)
from cli.verbs.creating import check_fits, create_told, foretold, print_yaml
from cli.verbs.form_options import form_of, form_options

if TYPE_CHECKING:
    from cli.managing.forms import ClusterForm
    from cli.read.target import Target
    from cli.write.writer import Writer

Json = dict[str, Any]


@click.command(
    epilog=epilog(
        "muster create team/train --group workers,replicas=4,gpus=8,cpus=32,memory=256Gi",
        "muster create train --queue research --autoscaler --group workers,min=1,max=8,gpus=1",
        "muster create train-2 --like train --fault-tolerance --dry-run > train-2.yaml",
        "muster create -f train-2.yaml --if-fits",
    )
)
@click.argument("name", metavar="[NAMESPACE/]NAME", default="")
@form_options
@click.option("--gang/--no-gang", default=None, help="Whether all of it starts together.")
@click.option(
    "-f", "--file", shell_complete=complete_files, help="A RayCluster; - is standard input."
)
@click.option("--like", metavar="NAME", help="A RayCluster of the same namespace to copy.")
@click.option("--dry-run", is_flag=True, help="Print it as YAML, and create nothing.")
@click.option("--if-fits", is_flag=True, help="Create it only where it would start now.")
@click.option("--fit/--no-fit", default=True, show_default=True, help="Say whether it would start.")
@namespace_option
@cluster_options
def command(
    *,
    target: Target,
    name: str,
    namespace: str,
    file: str | None,
    like: str | None,
    dry_run: bool,
    if_fits: bool,
    fit: bool,
    **options: Any,
) -> None:
    """Create a RayCluster of options, of a file, or like one that exists.

    It is a gang in its queue. Before it is created it is said whether it would start now, as
    `muster fit` says it; without the right to read nodes that is the queue's answer. What waits is
    created all the same, unless --if-fits is given.
    """
    form = form_of(options)
    if file and like:
        raise click.UsageError("-f has a RayCluster, and --like copies one: give one of the two")
    if file is None and not name:
        raise click.UsageError("give it a NAME, or a file with -f")
    if if_fits and not fit:
        raise click.UsageError("--if-fits asks whether it fits, and --no-fit does not")
    # The client takes longer to import than all else.
    from kube.api.resources import RAY_CLUSTERS  # noqa: PLC0415

    async def work(writer: Writer) -> None:
        body = await _asked_for(writer, name, namespace, form, file, like)
        found = await foretold(writer, body, sys.stderr if dry_run else sys.stdout) if fit else None
        if if_fits and found is not None:
            check_fits(found)
        if dry_run:
            print_yaml(body)
            return
        await create_told(writer, RAY_CLUSTERS, body)

    run_writing(target, work)


async def _asked_for(
    writer: Writer,
    name: str,
    namespace: str,
    form: ClusterForm,
    file: str | None,
    like: str | None,
) -> Json:
    from cli.read.ray.ray_object import placed  # noqa: PLC0415 - it imports the client
    from cli.read.wanted import like_another, of_file, of_form  # noqa: PLC0415

    usual = writer.reader.namespace
    if file is not None and not name:
        return of_file(file, namespace, "", usual, form)
    place, short = placed(name, namespace, usual)
    if file is not None:
        return of_file(file, place, short, place, form)
    if like is not None:
        return await like_another(writer.reader, place, short, like, form)
    return of_form(place, short, form)
