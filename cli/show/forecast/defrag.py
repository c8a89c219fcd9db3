"""Prints which gangs to move so that a waiting one can start."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.console import Console

from cli.report.forecast.defrag import DefragReport, MoveReport, PlacedReport, StartReport
from cli.show import parts
from cli.show.table import Cell, cut, line, number, rows, title
from cli.show.words import clock, counted, lasting


def table(found: DefragReport, output: str) -> Callable[[Console], None]:
    """Return what prints the plan, or why there is none, and which gangs were left out."""

    def printed(console: Console) -> None:
        if found.start is None:
            line(console, found.why)
        else:
            _plan(console, found, found.start)
        moved = "" if found.done else "; nothing was moved"
        line(console, f"of the picture of {clock(found.taken)}{moved}")
        _done(console, found)
        _left_out(console, found, output)

    return printed


def _plan(console: Console, found: DefragReport, start: StartReport) -> None:
    key = f"{start.namespace}/{start.name}"
    title(console, f"moves for {key} (queue {start.queue}, {counted(start.gpus, 'GPU')})")
    heads = ("STEP", "GANG", "QUEUE", "GPUS", "FROM", "TO", "GPU-HOURS LOST", "SINCE")
    cells = [_move(at, each) for at, each in enumerate(found.moves, 1)]
    starts: list[Cell | str] = [
        number(len(cells) + 1),
        Cell(key, "green"),
        start.queue,
        number(start.gpus),
        "starts",
        _nodes(start.nodes),
        number("0"),
        "-",
    ]
    rows(console, heads, [*cells, starts])
    console.print()
    bound = "" if found.is_cheapest else "; not all was tried: others may lose less"
    line(console, f"lost: {found.lost_gpu_hours:g} GPU-hours{bound}")
    gained = f"gained: {counted(start.gpus, 'GPU')} for {key}, which waits for "
    line(console, f"{gained}{lasting(start.waited_seconds)}")
    expected = f"about {clock(start.expected)}: {start.why}" if start.expected else start.why
    line(console, f"without moves: {expected or 'not known'}")


def _move(at: int, each: MoveReport) -> list[Cell | str]:
    return [
        number(at),
        f"{each.namespace}/{each.name}",
        each.queue,
        number(each.gpus),
        _nodes(each.sources),
        _nodes(each.targets),
        number(f"{each.lost_gpu_hours:g}"),
        f"{'checkpoint' if each.is_checkpoint else 'start'} {clock(each.since)}",
    ]


def _nodes(placed: Iterable[PlacedReport]) -> str:
    return " ".join(f"{each.node}:{each.pods}" for each in placed)


def _done(console: Console, found: DefragReport) -> None:
    if not found.done:
        return
    console.print()
    cells: list[list[Cell | str]] = [
        [clock(each.at), f"{each.namespace}/{each.name}", each.became, _nodes(each.nodes)]
        for each in found.done
    ]
    rows(console, ("AT", "GANG", "BECAME", "ON"), cells)


def _left_out(console: Console, found: DefragReport, output: str) -> None:
    if not found.left_out:
        return
    limits = parts.most(output)
    console.print()
    title(console, f"{len(found.left_out)} not to be moved")
    shown = found.left_out[: limits.gangs]
    cells: list[list[Cell | str]] = [
        [f"{each.namespace}/{each.name}", cut(each.why, output)] for each in shown
    ]
    rows(console, ("GANG", "WHY"), cells)
    parts.left_out(console, len(found.left_out) - len(shown), limits.hint)
