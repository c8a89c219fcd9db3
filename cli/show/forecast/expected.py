"""Prints when waiting gangs are expected to start."""

from __future__ import annotations

from rich.console import Console

from cli.show.parts import Most, left_out
from cli.show.table import Cell, cut, line, number, rows, title
from cli.show.words import clock
from forecast.expected import ExpectedReport, ForecastReport, Sure

_STYLES = {Sure.NOW: "green", Sure.UNKNOWN: "yellow"}


def one(console: Console, key: str, forecast: ForecastReport | None) -> None:
    """Print the estimate of one gang, and of which picture it is, where it was asked for."""
    found = forecast.by_key.get(key) if forecast is not None else None
    if forecast is not None and found is not None:
        said = f"{moment(found)}: {found.why}" if found.at else found.why
        line(console, f"expected start: {said}", _STYLES.get(found.sure, ""))
        line(console, f"  {picture(forecast)}")


def many(console: Console, forecast: ForecastReport, queue: str, output: str, limits: Most) -> None:
    """Print the estimates of a queue, in its order."""
    mine = [each for each in forecast.gangs if each.queue == queue]
    shown = mine[: limits.gangs]
    console.print()
    title(console, "expected starts")
    cells: list[list[Cell | str]] = [
        [
            number(each.position or None),
            each.key,
            Cell(clock(each.at) if each.at else "-", _STYLES.get(each.sure, "")),
            clock(each.earliest) if each.earliest else "-",
            clock(each.latest) if each.latest else "-",
            each.sure.value,
            cut(each.why, output),
        ]
        for each in shown
    ]
    rows(console, ("POS", "GANG", "START", "FROM", "TO", "SURE", "WHY"), cells)
    left_out(console, len(mine) - len(shown), limits.hint)
    line(console, picture(forecast))


def moment(found: ExpectedReport) -> str:
    """Write an estimate: about when, and the range where there is one."""
    if found.sure is Sure.NOW:
        return "now"
    ends = f"{clock(found.earliest)} to {clock(found.latest) if found.latest else 'not known'}"
    return f"about {clock(found.at)}" + (f" ({ends})" if found.earliest else "")


def picture(forecast: ForecastReport) -> str:
    """Say of which picture estimates are, and how far they go."""
    said = f"of the picture of {clock(forecast.taken)}, {forecast.cpu_seconds:.1f} s of CPU"
    if not forecast.finished:
        said += f", worked out to {clock(forecast.reached)}"
    if forecast.longer:
        said += f"; the range: all durations are {forecast.shorter:g} or {forecast.longer:g} times"
    return said
