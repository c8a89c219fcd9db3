"""Columns of text: rows of cells, each with a style, printed at once.

rich's own tables take three seconds for the rows of a large cluster, one text takes a tenth of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from cli.show.output import printable

GAP = 2
LONGEST = 100
"""Characters of a cell in a table; `-o wide` has all of them."""


class Cell(NamedTuple):
    """A text with its style; numbers stand to the right."""

    text: str
    style: str = ""
    right: bool = False


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
    """Print a table; on a terminal a row ends at its edge."""
    body = [[_plain(each) for each in row] for row in cells]
    head = [Cell(each, "bold") for each in heads]
    widths = [max(cell_len(row[at].text) for row in (head, *body)) for at in range(len(heads))]
    aligned = [_right(at, body) for at in range(len(heads))]
    lines = [_line(row, widths, aligned, indent) for row in (head, *body)]
    if console.is_terminal:
        for line in lines:
            line.truncate(console.width, overflow="ellipsis")
    console.print(Text("\n").join(lines), soft_wrap=True)


def _plain(cell: Cell | str) -> Cell:
    found = Cell(cell) if isinstance(cell, str) else cell
    return found._replace(text=printable(found.text))


def _right(at: int, body: Sequence[Sequence[Cell]]) -> bool:
    return any(row[at].right for row in body)


def _line(row: Sequence[Cell], widths: Sequence[int], aligned: Sequence[bool], indent: int) -> Text:
    line = Text(" " * indent)
    last = len(row) - 1
    for at, cell in enumerate(row):
        room = " " * (widths[at] - cell_len(cell.text))
        if aligned[at]:
            line.append(room)
        line.append(cell.text, cell.style)
        if at < last:
            line.append(("" if aligned[at] else room) + " " * GAP)
    return line


def title(console: Console, text: str) -> None:
    """Print the head of a part."""
    console.print(Text(printable(text), style="bold"), soft_wrap=True)


def line(console: Console, text: str, style: str = "") -> None:
    """Print a line as it is, broken by the terminal alone."""
    console.print(Text(printable(text), style=style), soft_wrap=True)


def cut(text: str, output: str) -> str:
    """Cut a message to what a row has room for; `-o wide` has all of it."""
    return text if output == "wide" or len(text) <= LONGEST else text[: LONGEST - 1] + "…"
