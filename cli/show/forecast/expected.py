"""Prints when waiting gangs are expected to start."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from cli.report.forecast.told import ToldReport
from cli.report.gangs import GangReport
from cli.show.parts import Most, left_out
from cli.show.table import Cell, cut, line, number, rows, title
from cli.show.words import age, clock
from forecast.expected import ExpectedReport, ForecastReport, Sure

_STYLES = {Sure.NOW: "green", Sure.UNKNOWN: "yellow"}


def one(console: Console, key: str, forecast: ForecastReport | None) -> None:
    """Print the estimate of one gang, and of which picture it is, where it was asked for."""
    found = forecast.by_key.get(key) if forecast is not None else None
    if forecast is not None and found is not None:
        said = f"{moment(found)}: {found.why}" if found.at else found.why
        line(console, f"expected start: {said}", _STYLES.get(found.sure, ""))
        line(console, f"  {picture(forecast)}")


def told(console: Console, found: ToldReport | None, now: float) -> None:
    """Print what the forecaster wrote into a Gang, where it did, and how old that is."""
    if found is None:
        return
    if not found.is_fresh(now):
        line(console, f"expected start: told last {age(found.told, now)} ago: {_HINT}", "dim")
        return
    when = f"{_about(found)}: " if found.at else ""
    line(console, f"expected start: {when}{found.why}", _STYLES.get(Sure(found.sure), ""))
    if found.moved:
        line(console, f"  {found.moved}", "yellow")
    line(console, f"  told by the forecaster at {clock(found.told)}, {age(found.told, now)} ago")


_HINT = "--expected works it out anew"


def many_told(
    console: Console, found: Sequence[GangReport], output: str, now: float, limits: Most
) -> None:
    """Print what the forecaster wrote into the Gangs of a queue, where it did."""
    mine = [each for each in found if each.expected_start and each.expected_start.is_fresh(now)]
    if not mine:
        return
    console.print()
    title(console, "expected starts, as the forecaster told them")
    cells = [_told_row(each, each.expected_start, output, now) for each in mine[: limits.gangs]]
    rows(console, ("POS", "GANG", "START", "FROM", "TO", "SURE", "TOLD", "WHY"), cells)
    left_out(console, len(mine) - len(cells), limits.hint)


def _told_row(
    gang: GangReport, said: ToldReport | None, output: str, now: float
) -> list[Cell | str]:
    assert said is not None, "of those with an estimate"
    return [
        number(gang.position or None),
        gang.key,
        Cell(clock(said.at) if said.at else "-", _STYLES.get(Sure(said.sure), "")),
        clock(said.earliest) if said.earliest else "-",
        clock(said.latest) if said.latest else "-",
        said.sure,
        number(age(said.told, now)),
        cut(said.moved or said.why, output),
    ]


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
    return "now" if found.sure is Sure.NOW else _about(found)


def _about(found: ExpectedReport | ToldReport) -> str:
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
