"""`muster explain REASON`: what a reason means and what to do about it. Reads no cluster."""

from __future__ import annotations

import click

from cli.endings import Unusable
from cli.options import end, epilog, output_option


def _reasons(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete a reason; the shell drops what begins in another case."""
    from cli.report.reasons import EXPLANATIONS  # noqa: PLC0415

    names = (each.value for each in EXPLANATIONS)
    return [each for each in names if each.lower().startswith(incomplete.lower())]


@click.command(
    epilog=epilog(
        "muster explain InsufficientResources",
        "muster explain -o json",
        "kubectl get gangs -A -o jsonpath='{.items[*].status.reason}' | xargs -n1 muster explain",
    )
)
@click.argument("reason", default="", metavar="[REASON]", shell_complete=_reasons)
@output_option
def command(reason: str, output: str) -> None:
    """Print what REASON means and what to do about it; without it all reasons.

    A reason is the word that `muster why` and `kubectl get gangs` show: case does not matter.
    """
    # These import the core, and rich: a start without work must not pay for them.
    from cli.report.explained import explained  # noqa: PLC0415
    from cli.show.explained import table  # noqa: PLC0415
    from cli.show.output import show  # noqa: PLC0415

    try:
        found = explained(reason)
    except Unusable as ending:
        end(ending)
    show(found, output, table(found))
