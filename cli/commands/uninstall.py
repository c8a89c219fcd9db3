"""`muster uninstall`: removes Muster in the right order, and leaves nothing that waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli.commands.release import finish
from cli.confirming import confirm
from cli.options import cluster_options, epilog, run_writing

if TYPE_CHECKING:
    from cli.read.target import Target
    from cli.write.writer import Writer


@click.command(
    epilog=epilog(
        "muster uninstall --dry-run",
        "muster uninstall",
        "muster uninstall --keep-crds --yes",
    )
)
@click.option(
    "--keep-crds", is_flag=True, help="Keep the definitions, and the GangQueues with them."
)
@click.option(
    "--extender-is-out",
    is_flag=True,
    help="kube-scheduler's configuration does not name the extender any more.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@cluster_options
def command(
    *, target: Target, keep_crds: bool, extender_is_out: bool, dry_run: bool, yes: bool
) -> None:
    """Remove Muster: gates and what is held first, then all of its objects, in their order.

    First the steps of `muster release --all`; then GangQueues are let go and deleted, the programs,
    rights, policies and all else with Muster's label, the definitions of Gang and GangQueue, and
    the namespace. Ray clusters and their pods stay, AppWrappers too. What Helm installed is left to
    `helm uninstall`, which is named. It can be called again after a fault.
    """
    from cli.removal.told import Told  # noqa: PLC0415 - a start without work must not pay for it

    told = Told(click.echo)

    async def work(writer: Writer) -> None:
        from cli.write.survey import read_survey  # noqa: PLC0415
        from cli.write.uninstalling import (  # noqa: PLC0415
            check_extender,
            read_inventory,
            steps,
            uninstall,
            uses_second_scheduler,
        )

        survey = await read_survey(writer.reader)
        await check_extender(writer.reader, survey.home, is_out=extender_is_out)
        found = await read_inventory(writer, survey.home)
        for each in steps(survey, found, keep_crds=keep_crds):
            click.echo(f"{'would' if dry_run else 'will'} {each}" if each[:1].islower() else each)
        waiting = await uses_second_scheduler(writer.reader)
        if waiting:
            click.echo(f"{waiting} pods wait for the scheduler muster-scheduler, which goes too")
        if dry_run:
            return
        if not yes:
            confirm("Go on?")
        await uninstall(writer, survey, found, told, keep_crds=keep_crds)
        if not told.left and not found.releases:
            click.echo("nothing of Muster is left")

    run_writing(target, work)
    finish(told)
