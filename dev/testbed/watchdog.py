"""Ends a cluster's processes when the program that started them dies.

It runs as a process of its own. Its standard input is a pipe, and the owner holds the other end.
Each started process writes its own pid there before it executes its program; the owner writes
`-pid` for each that has ended. The end of the file means that the owner is gone, however it ended:
then every process group that is left is killed. `release` ends the watch and nothing else.

It is run by path, isolated and without site-packages, so it imports only the standard library.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterable

RELEASE = "release"


def left_behind(lines: Iterable[str]) -> set[int]:
    """Read reports until the owner is gone and return the process groups it leaves."""
    groups: set[int] = set()
    for line in lines:
        word = line.strip()
        if word == RELEASE:
            return set()
        if word.startswith("-"):
            groups.discard(int(word[1:]))
        elif word:
            groups.add(int(word))
    return groups


def main() -> None:
    """Watch until the owner is gone, then kill what it left."""
    for group in left_behind(sys.stdin):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
