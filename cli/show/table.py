"""Prints columns of text: rows of cells, each with a style, at once.

rich's own tables take three seconds for the rows of a large cluster, one text takes a tenth of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from cli.show.output import printable

GAP = 2
LONGEST = 100
"""Characters of a cell in a table; `-o wide` has all of them."""

LEAST = 40
"""Characters of a message that a row has at least; where fewer are left it stands below."""

_BELOW = "      "


class Cell(NamedTuple):
    """A text with its style; numbers stand to the right.

    One that is `whole` goes on in lines below where a terminal is too narrow; others are cut.
    """

    text: str
    style: str = ""
    right: bool = False
    whole: bool = False


def number(amount: object, style: str = "") -> Cell:
    """Return a number, or a dash where there is none."""
    return Cell("-" if amount is None else str(amount), style, right=True)


def rows(
    console: Console,
    heads: Sequence[str],
    cells: Iterable[Sequence[Cell | str]],
    *,
    indent: int = 0,
) -> None:
    """Print a table. On a terminal no line goes beyond its edge.

    Where a row would, columns without a head go, which are bars; the columns that are still too
    many stand below each row with their heads, and what is empty there is left out.
    """
    body = [[_plain(each) for each in row] for row in cells]
    head = [Cell(each, "bold") for each in heads]
    widths = [max(cell_len(row[at].text) for row in (head, *body)) for at in range(len(heads))]
    aligned = [_right(at, body) for at in range(len(heads))]
    kept = [*range(len(heads))]
    if console.is_terminal:
        kept = _kept(heads, widths, aligned, console.width - indent)
    named = [at for at, each in enumerate(heads) if each and at not in kept]
    start = indent + sum(widths[at] + GAP for at in kept[:-1])
    lines = [*_within(console, _line(head, widths, aligned, indent, kept), start, head)]
    for row in body:
        lines += _within(console, _line(row, widths, aligned, indent, kept), start, row)
        for line in _below(heads, [(at, row[at]) for at in named], indent, console.width):
            lines += _within(console, line, indent + len(_BELOW), row)
    console.print(Text("\n").join(lines), soft_wrap=True)


def _within(console: Console, line: Text, start: int, row: Sequence[Cell]) -> list[Text]:
    """Keep a line within a terminal: it is cut, or with a whole cell goes on below, at `start`."""
    if not console.is_terminal or line.cell_len <= console.width:
        return [line]
    if not any(each.whole for each in row):
        line.truncate(console.width, overflow="ellipsis")
        return [line]
    margin = start if console.width - start >= LEAST else len(_BELOW)
    first, rest = line.divide([_offset(line.plain, margin)])
    wrapped = rest.wrap(console, console.width - margin)
    return [first.append_text(wrapped[0]), *(Text(" " * margin) + each for each in wrapped[1:])]


def _offset(text: str, column: int) -> int:
    """Return how many characters stand before a column; some are two columns wide."""
    return next(at for at in range(len(text) + 1) if cell_len(text[:at]) >= column)


def _kept(
    heads: Sequence[str], widths: Sequence[int], aligned: Sequence[bool], room: int
) -> list[int]:
    """Return the columns that a row of so many characters has room for; the first one always."""
    last = len(heads) - 1
    least = [*widths]
    if not aligned[last]:
        least[last] = min(widths[last], LEAST)
    if sum(least) + GAP * last <= room:
        return [*range(len(heads))]
    kept: list[int] = []
    left = room + GAP
    for at in (at for at, each in enumerate(heads) if each):
        left -= least[at] + GAP
        if left < 0 and kept:
            break
        kept.append(at)
    return kept


def _below(
    heads: Sequence[str], cells: Iterable[tuple[int, Cell]], indent: int, width: int
) -> Iterator[Text]:
    """Yield lines with the cells that a row has no room for, as many to a line as fit."""
    start = " " * indent + _BELOW
    line = Text(start)
    for at, cell in cells:
        if cell.text in ("", "-"):
            continue
        said = Text.assemble((f"{heads[at]}:", "bold"), " ", (cell.text, cell.style))
        if len(line) > len(start) and line.cell_len + GAP + said.cell_len > width:
            yield line
            line = Text(start)
        line.append(" " * GAP if len(line) > len(start) else "").append_text(said)
    if len(line) > len(start):
        yield line


def _plain(cell: Cell | str) -> Cell:
    found = Cell(cell) if isinstance(cell, str) else cell
    return found._replace(text=printable(found.text))


def _right(at: int, body: Sequence[Sequence[Cell]]) -> bool:
    return any(row[at].right for row in body)


def _line(
    row: Sequence[Cell],
    widths: Sequence[int],
    aligned: Sequence[bool],
    indent: int,
    kept: Sequence[int],
) -> Text:
    """Return the cells of the columns that are kept, in line with those of other rows."""
    line = Text(" " * indent)
    for at in kept:
        cell = row[at]
        room = " " * (widths[at] - cell_len(cell.text))
        if aligned[at]:
            line.append(room)
        line.append(cell.text, cell.style)
        if at != kept[-1]:
            line.append(("" if aligned[at] else room) + " " * GAP)
    return line


def title(console: Console, text: str) -> None:
    """Print the head of a part."""
    console.print(Text(printable(text), style="bold"), soft_wrap=True)


def line(console: Console, text: str, style: str = "") -> None:
    """Print a line as it is, broken by the terminal alone."""
    console.print(Text(printable(text), style=style), soft_wrap=True)


def cut(text: str, output: str) -> Cell:
    """Cut a message to what a row has room for; `-o wide` has all of it."""
    if output == "wide":
        return Cell(text, whole=True)
    return Cell(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")
