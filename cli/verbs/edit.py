"""`muster edit NAME`: changes a Ray cluster as far as KubeRay honours it, and says when it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cli.options import (
    cluster_options,
    complete_files,
    epilog,
    namespace_option,
    run_writing,
)
from cli.verbs.asking import asks
from cli.verbs.form_options import form_of, form_options

if TYPE_CHECKING:
    from cli.managing.forms import ClusterForm
    from cli.read.reader import Reader
    from cli.read.target import Target
    from cli.write.writer import Writer

Json = dict[str, Any]


@click.command(
    epilog=epilog(
        "muster edit team/train",
        "muster edit train --group workers,max=16 --idle-timeout 300",
        "muster edit train --group more,replicas=2,gpus=1 --dry-run",
        "muster edit train --delete-pod train-workers-worker-x7k2p",
        "muster edit train -f train.yaml",
    )
)
@click.argument("name", metavar="[NAMESPACE/]NAME")
@form_options
@click.option("--gang/--no-gang", default=None, help="Whether all of it starts together.")
@click.option("--delete-pod", "delete_pods", multiple=True, help="A worker pod to delete.")
@click.option("-f", "--file", shell_complete=complete_files, help="Its spec; - is standard input.")
@click.option("--dry-run", is_flag=True, help="Say what each change does, and change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask where pods are deleted.")
@namespace_option
@cluster_options
def command(
    *,
    target: Target,
    name: str,
    namespace: str,
    delete_pods: tuple[str, ...],
    file: str | None,
    dry_run: bool,
    yes: bool,
    **options: Any,
) -> None:
    """Change a RayCluster by options, by a file, or without either in an editor.

    Of each change it is said whether it holds now, or for pods that are made later only. What
    KubeRay would not do, or leave half done, is refused: then nothing is changed. Under
    upgradeStrategy Recreate a change may delete all pods at once, and it asks first.
    """
    form = form_of({**options, "workers_to_delete": delete_pods})
    if file is not None and not form.is_empty:
        raise click.UsageError("-f has the whole spec: give it alone, or options without it")

    async def work(writer: Writer) -> None:
        from cli.read.ray.ray_object import read_free  # noqa: PLC0415 - a start must not pay for it
        from cli.write.editing import edit  # noqa: PLC0415
        from kube.api.resources import RAY_CLUSTERS  # noqa: PLC0415

        found = await read_free(writer.reader, RAY_CLUSTERS, name, namespace)
        wanted = await _wanted(writer.reader, found, form, file)
        await edit(writer, found, wanted, click.echo, asks(dry_run=dry_run, yes=yes))

    run_writing(target, work)


async def _wanted(reader: Reader, found: Json, form: ClusterForm, file: str | None) -> Json:
    from cli.managing.cluster import changed  # noqa: PLC0415 - a start must not pay for it
    from cli.managing.rewriting import with_file  # noqa: PLC0415
    from cli.read.ray.ray_object import workers_of  # noqa: PLC0415
    from cli.read.wanted import one_object  # noqa: PLC0415

    if file is not None:
        return with_file(found, one_object(file), file)
    if form.is_empty:
        return _edited(found)
    meta = found["metadata"]
    named = form.workers_to_delete
    workers = await workers_of(reader, meta["namespace"], meta["name"]) if named else {}
    return changed(found, form, workers)


def _edited(found: Json) -> Json:
    """Let a person edit it as YAML; what is left unchanged changes nothing."""
    import yaml  # noqa: PLC0415

    from cli.endings import Unusable  # noqa: PLC0415
    from cli.files import objects_of  # noqa: PLC0415
    from cli.imports.outcome import Fault  # noqa: PLC0415
    from cli.managing.rewriting import to_be_edited, with_edited  # noqa: PLC0415

    shown = yaml.safe_dump(to_be_edited(found), sort_keys=False)
    text = click.edit(shown, extension=".yaml")
    if text is None:
        return found
    try:
        (written,) = objects_of("the edited text", text.encode())
    except Fault as fault:
        raise Unusable(str(fault)) from None
    except ValueError:
        raise Unusable("the edited text: allowed: the one object that is edited") from None
    return with_edited(found, written.body, written.place)
