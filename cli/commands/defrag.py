"""`muster defrag`: which gangs to move to other nodes so that a waiting gang can start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli.endings import Unusable
from cli.imports.outcome import Fault
from cli.options import (
    cluster_options,
    epilog,
    namespace_option,
    output_option,
    run,
    run_writing,
)

if TYPE_CHECKING:
    from cli.forecast.move_request import MoveRequest
    from cli.read.reader import Reader
    from cli.read.target import Target
    from cli.report.forecast.defrag import DefragReport, MovedReport
    from cli.write.writer import Writer
    from scheduling.model.gang import GangKey


@click.command(
    epilog=epilog(
        "muster defrag",
        "muster defrag team/large",
        "muster defrag team/large --apply",
        "muster defrag -o json | jq '.moves[]'",
    )
)
@click.argument("name", metavar="[[NAMESPACE/]GANG]", default="")
@click.option("--apply", "is_applied", is_flag=True, help="Move them, and wait until all run.")
@click.option("-y", "--yes", is_flag=True, help="With --apply: do not ask.")
@namespace_option
@cluster_options
@output_option
@click.pass_context
def command(
    context: click.Context,
    /,
    *,
    name: str,
    is_applied: bool,
    yes: bool,
    namespace: str,
    target: Target,
    output: str,
) -> None:
    """Say which running gangs to move so that a waiting gang can start, and what that loses.

    Without --apply nothing is moved. Without a name it is the waiting gang that starts with the
    most GPUs for each GPU-hour that is lost. It needs the right to list nodes, pods, Gangs, Ray
    clusters and GangQueues of all namespaces; --apply that to evict the pods, and to release gangs.
    """
    if yes and not is_applied:
        raise click.UsageError("--yes: allowed with --apply")

    async def work(reader: Reader) -> DefragReport:
        return (await _planned(reader, name, namespace))[0]

    async def apply(writer: Writer) -> DefragReport:
        report, request = await _planned(writer.reader, name, namespace)
        if request is None:
            return report
        if not yes:
            _print(report, output)
        return await _applied(writer, report, request, yes=yes)

    _print(run_writing(target, apply) if is_applied else run(context, target, work), output)


def _print(report: DefragReport, output: str) -> None:
    from cli.show.forecast.defrag import table  # noqa: PLC0415 - a start must not pay for it
    from cli.show.output import note, show  # noqa: PLC0415

    note((*report.notes, *report.unread))
    show(report, output, table(report, output))


async def _applied(
    writer: Writer, report: DefragReport, request: MoveRequest, *, yes: bool
) -> DefragReport:
    from msgspec.structs import replace  # noqa: PLC0415

    from cli.confirming import confirm  # noqa: PLC0415
    from cli.write.moving import carry_out  # noqa: PLC0415

    if not yes:
        names = ", ".join(map(str, request.decided))
        confirm(f"This stops {names}, which loses {report.lost_gpu_hours:g} GPU-hours. Go on?")
    return replace(report, done=await carry_out(writer, request, _say))


def _say(each: MovedReport) -> None:
    where = " ".join(f"{placed.node}:{placed.pods}" for placed in each.nodes)
    click.echo(f"{each.namespace}/{each.name} {each.became} {where}".rstrip(), err=True)


async def _planned(
    reader: Reader, name: str, namespace: str
) -> tuple[DefragReport, MoveRequest | None]:
    try:
        return await _asked(reader, _gang(name, namespace or reader.namespace))
    except Fault as fault:
        raise Unusable(str(fault)) from None


def _gang(text: str, namespace: str) -> GangKey | None:
    from scheduling.model.gang import GangKey  # noqa: PLC0415

    if not text:
        return None
    place, slash, name = text.rpartition("/")
    if not name or "/" in place or (slash and not place):
        raise Fault(f"{text}: allowed: GANG or NAMESPACE/GANG")
    return GangKey(place or namespace, name)


async def _asked(reader: Reader, wanted: GangKey | None) -> tuple[DefragReport, MoveRequest | None]:
    from msgspec.structs import replace  # noqa: PLC0415

    from cli.forecast.defrag import advise_request  # noqa: PLC0415
    from cli.read.forecast.asking import read_pictured  # noqa: PLC0415

    found = await read_pictured(reader)
    report, request = advise_request(found.pictured, wanted)
    return replace(report, unread=found.unread), request
