"""Creates an object after a preview of whether it would start now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from cli.endings import CannotRead, StandsInTheWay

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cli.report.fit import FitReport, Fits
    from cli.write.writer import Writer
    from kube.api.resources import Resource

Json = dict[str, Any]

_MOST_NOTES: Final = 3


async def foretold(writer: Writer, body: Json, stream: TextIO) -> Fits:
    """Say whether an object would start now, and what is not known of that."""
    # These import the core: a start without work must not pay for it.
    from cli.read.preview import preview  # noqa: PLC0415
    from cli.report.fit import Fits  # noqa: PLC0415

    try:
        report = await preview(writer.reader, body)
    except CannotRead as fault:
        click.echo(f"Note: not known whether it would start now: {fault}", err=True)
        return Fits.UNKNOWN
    _show(report, stream)
    return report.objects[0].fits


def _show(report: FitReport, stream: TextIO) -> None:
    from cli.show.fit import table  # noqa: PLC0415
    from cli.show.output import console, printable  # noqa: PLC0415

    for each in _in_short(report.not_judged):
        click.echo(f"Note: {printable(each)}", err=True)
    table(report, wide=False)(console(stream))


def _in_short(not_judged: Sequence[str]) -> Sequence[str]:
    """Who may read little would otherwise get a page of notes before each creation."""
    if len(not_judged) <= _MOST_NOTES:
        return not_judged
    return (f"judged without {len(not_judged)} things that are not known; `muster fit` names each",)


async def create_told(writer: Writer, resource: Resource, body: Json) -> None:
    """Create an object, and say so."""
    from cli.write.creating import plan_creation  # noqa: PLC0415

    click.echo(await plan_creation(writer, resource, body).do())


def print_yaml(body: Json) -> None:
    """Print an object for `kubectl apply -f -`, or for a file."""
    import yaml  # noqa: PLC0415

    click.echo(yaml.safe_dump(body, sort_keys=False), nl=False)


def check_fits(found: Fits) -> None:
    """End where it was to be created only if it would start now."""
    if found != "Yes":
        raise StandsInTheWay("it would not start now, so nothing was created (--if-fits)")
