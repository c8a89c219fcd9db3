"""Prints a report repeatedly, in place on a terminal."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from typing import NoReturn, TypeVar

from rich.console import Console
from rich.text import Text

from cli.endings import CannotRead
from cli.show.output import console, printable

T = TypeVar("T")


async def watched(
    read: Callable[[], Awaitable[T]],
    looks: Callable[[T], Iterable[Callable[[Console], None]]],
    interval: float,
) -> NoReturn:
    """Show what `read` returns until the program is interrupted.

    `looks` are ways to print it, each shorter than the one before: a terminal gets the first one
    that it has the height for. The first fault ends it; a later one is shown, and the cluster is
    asked again.
    """
    screen = console()
    said = fitting(screen, looks(await read()))
    with screen.screen(hide_cursor=True) if screen.is_terminal else _Plain(screen) as shown:
        while True:
            stamp = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
            shown.update(Text.from_ansi(f"{stamp}\n{said}"))
            await asyncio.sleep(interval)
            try:
                said = fitting(screen, looks(await read()))
            except CannotRead as fault:
                said = f"{printable(str(fault))}\n"
            gc.collect()  # it is off while a command runs, and this one does not end


def fitting(screen: Console, looks: Iterable[Callable[[Console], None]]) -> str:
    """Print the first of some looks that fits below the time, or else the last one."""
    said = ""
    for each in looks:
        said = _printed(screen, each)
        if not screen.is_terminal or _has_height(screen, said):
            break
    return said


def _has_height(screen: Console, said: str) -> bool:
    """Say whether a terminal has a line for each of a look, and one more for the time."""
    if said.count("\n") >= screen.height:
        return False  # long lists are not broken into lines to see that
    return len(Text.from_ansi(said).wrap(screen, screen.width)) < screen.height


def _printed(screen: Console, table: Callable[[Console], None]) -> str:
    with screen.capture() as captured:
        table(screen)
    return captured.get()


class _Plain:
    """Prints one look after the other, where the output is no terminal."""

    def __init__(self, screen: Console) -> None:
        self._screen = screen

    def __enter__(self) -> "_Plain":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def update(self, text: Text) -> None:
        """Print one look."""
        self._screen.print(text, soft_wrap=True)
