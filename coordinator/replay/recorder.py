"""Writes a recording while the coordinator runs.

Each line is made at once, because its objects go on changing. A thread writes the lines, so that
the loop never waits for the disk. Written lines survive the process; a kill -9 loses those of the
last `GATHERED`. No failure of the recorder ends the coordinator: the recording ends, and the log
says so.
"""

import contextlib
import os
import queue
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import structlog

from coordinator.messages.actions import Action
from coordinator.messages.events import Event
from coordinator.replay.lines import end_line, failed_line, start_line, step_line
from coordinator.state_settings import StateSettings
from runtime.controller.moment import Moment
from runtime.errors import CannotRunError

log = structlog.get_logger()

BEHIND: Final = 64 << 20
"""Bytes that may wait for the disk; with more the recording ends, or memory would."""
GATHERED: Final = 0.02
"""Seconds for which lines are gathered to be written together."""
CLOSING: Final = 5.0
"""Seconds that the end of the program waits for the disk."""
EARLIER: Final = ".1"
"""What is added to the name of a file that is there already."""


class Recorder:
    """One recording; it is begun in a new file, and an earlier one is kept beside it."""

    def __init__(self, path: Path, limit: int, muster: str, settings: StateSettings) -> None:
        """Begin a recording of at most `limit` bytes.

        Raises:
            CannotRunError: The file cannot be written.

        """
        self._path, self._limit = path, limit
        self._steps = self._given = self._written = 0
        self._over = False
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        try:
            self._file = _new_file(path)
            self._write(start_line(muster, settings))
        except OSError as error:
            raise CannotRunError(
                f"recording to {path}: {error.strerror}; allowed is a file in a directory that is "
                "there and may be written to"
            ) from None
        self._given = self._written
        self._writer = threading.Thread(target=self._write_all, name="recorder", daemon=True)
        self._writer.start()
        log.info("recording", file=str(path), limit=limit)

    def step(self, moment: Moment, events: Sequence[Event], actions: Sequence[Action]) -> None:
        """Record one call of the state machine."""
        if not self._over:
            with self._ends_where_it_fails():
                self._give(step_line(self._steps + 1, moment, events, actions))

    def failed(self, moment: Moment, events: Sequence[Event], error: Exception) -> None:
        """Record a call in which the state machine failed, which ends the coordinator."""
        if not self._over:
            with self._ends_where_it_fails():
                self._give(failed_line(self._steps + 1, moment, events, error))

    def close(self) -> None:
        """Write what was handed over, as far as the disk takes it in time."""
        self._over = True
        self._lines.put(None)
        self._writer.join(CLOSING)

    def _give(self, line: bytes) -> None:
        if self._given + len(line) > self._limit:
            self._end(f"it has reached its limit of {self._limit} bytes")
        elif self._given - self._written > BEHIND:
            self._end(f"the disk is {BEHIND} bytes behind")
        else:
            self._steps += 1
            self._given += len(line)
            self._lines.put(line)

    def _end(self, why: str) -> None:
        self._over = True
        self._lines.put(end_line(why))
        self._lines.put(None)
        self._tell(why)

    @contextlib.contextmanager
    def _ends_where_it_fails(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - no reason to stop coordinating
            self._end(f"a step cannot be written: {type(error).__name__}: {error}")

    def _tell(self, why: str) -> None:
        log.error("recording ended", file=str(self._path), reason=why, steps=self._steps)

    # --- the thread -----------------------------------------------------------------------

    def _write_all(self) -> None:
        try:
            while (line := self._lines.get()) is not None:
                time.sleep(GATHERED)
                self._write(b"".join([line, *self._gathered()]))
        except OSError as error:
            self._over = True
            self._tell(f"{error.strerror}")
        finally:
            os.close(self._file)

    def _gathered(self) -> Iterator[bytes]:
        """Take what waits; its end is left for the next look."""
        with contextlib.suppress(queue.Empty):
            while (line := self._lines.get_nowait()) is not None:
                yield line
            self._lines.put(None)

    def _write(self, line: bytes) -> None:
        left = memoryview(line)
        while left:
            count = os.write(self._file, left)
            left = left[count:]
            self._written += count


def _new_file(path: Path) -> int:
    """Open a new file that its owner alone may read; one of before is kept under another name."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(path.lstat().st_mode):
            raise OSError(0, "it is no regular file")
        path.replace(path.with_name(path.name + EARLIER))
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
