"""`muster defrag`: which gangs, moved to other nodes, would let a waiting one start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cli.endings import Unusable
from cli.imports.outcome import Fault
from cli.options import cluster_options, epilog, namespace_option, output_option, run

if TYPE_CHECKING:
    from cli.read.reader import Reader
    from cli.read.target import Target
    from cli.report.forecast.defrag import DefragReport
    from scheduling.model.gang import GangKey


@click.command(
    epilog=epilog(
        "muster defrag", "muster defrag team/large", "muster defrag -o json | jq '.moves[]'"
    )
)
@click.argument("name", metavar="[[NAMESPACE/]GANG]", default="")
@namespace_option
@cluster_options
@output_option
@click.pass_context
def command(
    context: click.Context, /, *, name: str, namespace: str, target: Target, output: str
) -> None:
    """Say which running gangs to move so that a waiting gang can start, and what that loses.

    Nothing is moved. Without a name it is the waiting gang that starts with the most GPUs for each
    GPU-hour that is lost. It needs the right to list nodes, pods, Gangs, Ray clusters and
    GangQueues of all namespaces.
    """
    from cli.show.forecast.defrag import table  # noqa: PLC0415 - a start must not pay for it
    from cli.show.output import note, show  # noqa: PLC0415

    async def work(reader: Reader) -> DefragReport:
        try:
            return await _asked(reader, _gang(name, namespace or reader.namespace))
        except Fault as fault:
            raise Unusable(str(fault)) from None

    report = run(context, target, work)
    note((*report.notes, *report.unread))
    show(report, output, table(report, output))


def _gang(text: str, namespace: str) -> GangKey | None:
    from scheduling.model.gang import GangKey  # noqa: PLC0415

    if not text:
        return None
    place, slash, name = text.rpartition("/")
    if not name or "/" in place or (slash and not place):
        raise Fault(f"{text}: allowed: GANG or NAMESPACE/GANG")
    return GangKey(place or namespace, name)


async def _asked(reader: Reader, wanted: GangKey | None) -> DefragReport:
    from msgspec.structs import replace  # noqa: PLC0415

    from cli.forecast.defrag import advise  # noqa: PLC0415
    from cli.read.forecast.asking import read_pictured  # noqa: PLC0415

    found = await read_pictured(reader)
    return replace(advise(found.pictured, wanted), unread=found.unread)
