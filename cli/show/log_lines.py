"""Writes log lines as they arrive, and buffers only an incomplete last line."""

import re
import sys
from typing import Final

import click

from cli.show.output import not_taken, printable

LONGEST_LINE: Final = 65_536
"""Bytes after which a line is broken, where lines of several pods come at the same time."""

_CONTROL: Final = re.compile(
    rb"\x1b(?!\[[0-9;]*m)|\xc2[\x80-\x9f]|[\x00-\x08\x0b\x0c\x0e-\x1a\x7f]"
)
"""What a log could do to a terminal: all but colours, tabs and ends of lines."""


class LogLines:
    """Passes the pieces of one log on; with a prefix only whole lines, each with the prefix."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix.encode()
        self._left = b""

    def feed(self, piece: bytes) -> bytes:
        """Return what of it can be written."""
        if not self._prefix:
            return piece
        whole, end, self._left = (self._left + piece).rpartition(b"\n")
        lines = whole.split(b"\n") if end else []
        while len(self._left) > LONGEST_LINE:
            lines.append(self._left[:LONGEST_LINE])
            self._left = self._left[LONGEST_LINE:]
        return b"".join(self._prefix + each + b"\n" for each in lines)

    def rest(self) -> bytes:
        """Return the last line, which has no end."""
        left, self._left = self._left, b""
        return self._prefix + left + b"\n" if left else b""


class LogPrinter:
    """Prints logs that come at the same time."""

    def __init__(self) -> None:
        self._lines: dict[str, LogLines] = {}

    def take(self, name: str, prefix: str, piece: bytes | None) -> None:
        """Print a piece of the log of a name; None is its end."""
        lines = self._lines.setdefault(name, LogLines(prefix))
        write(lines.rest() if piece is None else lines.feed(piece))

    def say(self, text: str) -> None:
        """Say something beside the logs."""
        click.echo(printable(text), err=True)


def write(piece: bytes) -> None:
    """Write to standard output at once; a terminal gets no control characters but colours."""
    out = sys.stdout.buffer
    try:
        out.write(_CONTROL.sub(b"", piece) if sys.stdout.isatty() else piece)
        out.flush()
    except BrokenPipeError:
        not_taken()
