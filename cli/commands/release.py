"""`muster release`: takes the gates off pods, of one gang, of a namespace, or of the cluster."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from cli.confirming import confirm
from cli.endings import FINE, NO, Unusable
from cli.options import cluster_options, epilog, namespace_option, run_writing

if TYPE_CHECKING:
    from cli.read.target import Target
    from cli.removal.told import Told
    from cli.write.writer import Writer


@click.command(
    epilog=epilog(
        "muster release --all --dry-run",
        "muster release --all --yes",
        "muster release team/train",
        "muster release -n team",
    )
)
@click.argument("name", metavar="[NAMESPACE/]NAME", required=False, default="")
@click.option(
    "--all", "everywhere", is_flag=True, help="Everything of the cluster: the kill switch."
)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@namespace_option
@cluster_options
def command(
    *, target: Target, name: str, namespace: str, everywhere: bool, dry_run: bool, yes: bool
) -> None:
    """Take Muster's gates off, so that kube-scheduler places the pods as if it were not there.

    With --all: the webhook's configurations are deleted, so that no new pod gets a gate, then the
    bindings of Muster's policies; every coordinator is stopped; held RayClusters and RayJobs that
    Muster suspended are resumed, and the gates of all pods taken off. Applying the manifests again
    starts Muster again.

    With a NAME (a RayCluster, RayJob or RayService), or with -n alone for all gangs of a namespace:
    these are opted out by the label muster.dev/gang: "false", which is all it takes while a
    coordinator runs; where none does, their gates are taken off from here.
    """
    place, short = _chosen(name, namespace, everywhere=everywhere)
    from cli.removal.told import Told  # noqa: PLC0415 - a start without work must not pay for it

    told = Told(click.echo, _progress)

    async def work(writer: Writer) -> None:
        if everywhere:
            await _release_all(writer, told, dry_run=dry_run, yes=yes)
        else:
            chosen = place or writer.reader.namespace
            await _release_some(writer, chosen, short, told, dry_run=dry_run, yes=yes)

    run_writing(target, work)
    finish(told)


def finish(told: Told) -> None:
    """End the command, with what is left where anything is."""
    if told.left:
        click.echo(f"{len(told.left)} left to do; call it again when the cause is gone:", err=True)
        for each in told.left:
            click.echo(f"  {each}", err=True)
    sys.exit(NO if told.left else FINE)


def _chosen(name: str, namespace: str, *, everywhere: bool) -> tuple[str, str]:
    """Return namespace and name; the latter is empty for all gangs of the namespace."""
    place, slash, short = name.rpartition("/")
    if everywhere and (name or namespace):
        raise click.UsageError("--all is the whole cluster: name no gang and no namespace with it")
    if not everywhere and not name and not namespace:
        raise click.UsageError("name a gang, or a namespace with -n, or the whole cluster: --all")
    if name and (not short or "/" in place or (slash and not place)):
        raise click.UsageError(f"{name}: allowed: NAME or NAMESPACE/NAME")
    if place and namespace not in ("", place):
        raise click.UsageError(f"{name} is not in namespace {namespace}: name one of the two")
    return place or namespace, short


def _progress(said: str) -> None:
    if sys.stderr.isatty():
        click.echo(f"  {said}", err=True)


async def _release_all(writer: Writer, told: Told, *, dry_run: bool, yes: bool) -> None:
    from cli.write.releasing import plan, release_all  # noqa: PLC0415
    from cli.write.standstill import give_leases_back  # noqa: PLC0415
    from cli.write.survey import read_survey  # noqa: PLC0415

    survey = await read_survey(writer.reader)
    for each in plan(survey):
        click.echo(f"{'would ' if dry_run else 'will '}{each}" if _is_step(each) else each)
    if dry_run:
        return
    if not yes:
        confirm("Gangs then start in part or not at all. Go on?")
    elsewhere = await release_all(writer, survey, told)
    await give_leases_back(writer, survey, elsewhere, told)
    if not told.left:
        click.echo("no pod has Muster's gate; to start Muster again, apply its manifests again")


def _is_step(said: str) -> bool:
    return said[:1].islower()


async def _release_some(
    writer: Writer, namespace: str, name: str, told: Told, *, dry_run: bool, yes: bool
) -> None:
    from cli.removal.told import counted, named  # noqa: PLC0415
    from cli.write.opting_out import (  # noqa: PLC0415
        find_gangs,
        is_namespace_opted_in,
        opt_out,
        others_gated,
    )

    if not namespace:
        raise Unusable("name a namespace: -n NAMESPACE, or NAMESPACE/NAME")
    owners, clusters = await find_gangs(writer.reader, namespace, name)
    found = named(f"{namespace}/{each.metadata.name}" for each in clusters) or "none"
    count = counted(len(clusters), "RayCluster")
    click.echo(f"{'would' if dry_run else 'will'} opt out {count}: {found}")
    if not name and await is_namespace_opted_in(writer.reader, namespace):
        how = f"kubectl label namespace {namespace} muster.dev/gang-"
        click.echo(f"new Ray clusters of it stay gangs; {how} ends that")
    others = 0 if name else await others_gated(writer.reader, namespace, clusters)
    if others:
        click.echo(f"{counted(others, 'gated pod')} of none of them: muster release --all frees it")
    if dry_run or not (clusters or owners):
        return
    if not yes:
        confirm("Their pods then start as they fit, not together. Go on?")
    await opt_out(writer, owners, clusters, told)
