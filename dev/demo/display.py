"""Shows what happens: a live table in a terminal, lines everywhere else."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Protocol, TextIO

from rich.console import Console
from rich.live import Live
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from demo.claims import Claim
from demo.world import Row, World
from testbed.history import Gang

_REFRESH_SECONDS = 0.2
_PAUSE_SECONDS = 2.0
# With more gangs than this each gets one line of the table, however long its message.
_ROWS_THAT_WRAP = 6
_SETTLED = ("Admitted", "Running")

_BARS = (
    ("running", "█", "green"),
    ("pending", "▒", "red"),
    ("gated", "░", "yellow"),
    ("going", "·", "bright_black"),
)


class Display(Protocol):
    """Shows one run of the demo."""

    def say(self, line: str) -> None:
        """Show one line that stays."""

    def scene(self, title: str, look: str) -> contextlib.AbstractContextManager[None]:
        """Announce a scene with what to look at; rows are shown until it ends."""

    def show(self, rows: Sequence[Row]) -> None:
        """Show how everything stands now."""

    def pause(self) -> None:
        """Leave people the time to look."""

    def conclude(self, title: str, claims: Sequence[Claim]) -> None:
        """Show what a scene claims, and what of it holds."""


def make_display(stream: TextIO, *, plain: bool) -> Display:
    """Choose by where the output goes, or by what was asked for."""
    console = Console(file=stream)
    return Lines(stream) if plain or not console.is_terminal else LiveTable(console)


class Lines:
    """A line for each change, without any control character."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._started = time.monotonic()
        self._shown: dict[Gang, Row] = {}

    def say(self, line: str) -> None:
        """Print one line with the seconds since the start."""
        print(f"{time.monotonic() - self._started:6.1f} s  {line}", file=self._stream, flush=True)

    @contextlib.contextmanager
    def scene(self, title: str, look: str) -> Iterator[None]:
        """Print the title; lines need no end."""
        self.say(f"== {title}")
        self.say(look)
        yield

    def show(self, rows: Sequence[Row]) -> None:
        """Print what has changed since the last time."""
        now = {row.gang: row for row in rows}
        for gang, row in now.items():
            for news in _news(self._shown.get(gang), row):
                self.say(f"{'/'.join(gang)}: {news}")
        for gang in self._shown.keys() - now.keys():
            self.say(f"{'/'.join(gang)}: gone")
        self._shown = now

    def pause(self) -> None:
        """Lines stay, so no pause is needed to read them."""

    def conclude(self, title: str, claims: Sequence[Claim]) -> None:
        """Print each claim with a mark."""
        self.say(title)
        for claim in claims:
            self.say(f"  {_mark(claim)} {claim.text}")


def _news(before: Row | None, row: Row) -> Iterator[str]:
    """Say what is new about one gang; moving up in the queue alone is none."""
    standing = _standing(row)
    if before is None or _standing(before) != standing:
        yield standing
    why = _why(row)
    if why and (before is None or _why(before) != why):
        yield why


def _standing(row: Row) -> str:
    counts = [f"{getattr(row, name)} {name}" for name, _, _ in _BARS if getattr(row, name)]
    return ", ".join([_phase(row), *counts])


class LiveTable:
    """A table of gangs and their pods that follows what happens."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None

    def say(self, line: str) -> None:
        """Print a line above the table."""
        self._console.print(Text(line), soft_wrap=True)

    @contextlib.contextmanager
    def scene(self, title: str, look: str) -> Iterator[None]:
        """Show the table under a title; its last state stays on the screen."""
        self._console.print()
        self._console.print(Rule(Text(title, "bold"), align="left"))
        self._console.print(Text(look, "italic"))
        with Live(table_of([]), console=self._console, auto_refresh=False) as self._live:
            yield
        self._live = None

    def show(self, rows: Sequence[Row]) -> None:
        """Draw the table anew."""
        if self._live is not None:
            self._live.update(table_of(rows), refresh=True)

    def pause(self) -> None:
        """Stand still for as long as it takes to read a row."""
        time.sleep(_PAUSE_SECONDS)

    def conclude(self, title: str, claims: Sequence[Claim]) -> None:
        """Print each claim with a mark."""
        self._console.print(Text(title, "bold"))
        for claim in claims:
            style = "green" if claim.holds else "bold red"
            line = Text.assemble("  ", (_mark(claim), style), " ", claim.text)
            self._console.print(line, soft_wrap=True)


def table_of(rows: Sequence[Row]) -> Table:
    """Lay the rows out."""
    table = Table(expand=True, caption=_legend(), caption_justify="left")
    table.add_column("gang", no_wrap=True)
    table.add_column("phase", no_wrap=True)
    table.add_column("#", justify="right")
    table.add_column("ready", no_wrap=True)
    table.add_column("pods", no_wrap=True, min_width=6)
    wraps = len(rows) <= _ROWS_THAT_WRAP
    table.add_column("why", ratio=1, no_wrap=not wraps, overflow="fold" if wraps else "ellipsis")
    for row in rows:
        position = str(row.state.position or "") if row.state else ""
        ready = row.state.ready if row.state else ""
        table.add_row(row.gang[1], _phase(row), position, ready, _bar(row), Text(_why(row)))
    return table


def _legend() -> Text:
    return Text.assemble(*((f"{char} {name}  ", style) for name, char, style in _BARS))


def _bar(row: Row) -> Text:
    return Text.assemble(*((char * getattr(row, name), style) for name, char, style in _BARS))


def _phase(row: Row) -> str:
    if row.state is None:
        return "leaving" if row.going else "no gang"
    return row.state.phase or "new"


def _why(row: Row) -> str:
    """What a gang waits for; what it says once it is admitted is no news."""
    if row.state is None or row.state.phase in _SETTLED:
        return ""
    return ": ".join(part for part in (row.state.reason, row.state.message) if part)


def _mark(claim: Claim) -> str:
    return "✓" if claim.holds else "✗"


@contextlib.contextmanager
def following(world: World, display: Display) -> Iterator[None]:
    """Show the world whenever it changes, a few times a second at most."""
    over = threading.Event()

    def follow() -> None:
        shown = world.rows()
        display.show(shown)
        while not over.wait(_REFRESH_SECONDS):
            world.wait_for_change(shown, _REFRESH_SECONDS)
            rows = world.rows()
            if rows != shown:
                display.show(rows)
            shown = rows

    thread = threading.Thread(target=follow, name="display", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        display.show(world.rows())
