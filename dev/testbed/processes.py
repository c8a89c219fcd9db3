"""Starts, stops, freezes and restarts a cluster's programs, and leaves none behind.

Every program gets a session of its own, so that a Ctrl-C meant for the tests does not reach it and
its children can be ended with it, and a log file. A `Watchdog` outlives a crash of the owner.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from testbed import watchdog
from testbed.errors import TestbedError

STOP_SECONDS = 10.0
_LOG_LINES_SHOWN = 25

# The shell reports its pid, which is the program's after exec, over standard input. Reporting
# before exec leaves no moment in which the program runs and the watchdog does not know it.
_REPORT_AND_EXEC = 'echo $$ >&0; exec "$@" </dev/null'


class Watchdog:
    """The process that kills what its owner leaves behind."""

    def __init__(self) -> None:
        reader, self._writer = os.pipe()
        command = [sys.executable, "-I", "-S", watchdog.__file__]
        try:
            self._process = subprocess.Popen(command, stdin=reader, start_new_session=True)
        finally:
            os.close(reader)

    @property
    def report_to(self) -> int:
        """The file descriptor that a new process reports itself to."""
        return self._writer

    def forget(self, pid: int) -> None:
        """Say that a process has ended: its number may soon be another's."""
        os.write(self._writer, f"-{pid}\n".encode())

    def release(self) -> None:
        """Leave all processes running from here on."""
        os.write(self._writer, f"{watchdog.RELEASE}\n".encode())

    def close(self) -> None:
        """Have everything that still runs killed, and wait until that is done."""
        os.close(self._writer)
        self._process.wait()


class Process:
    """One program of a cluster; it can be started again under the same arguments."""

    def __init__(
        self, name: str, argv: list[str], env: Mapping[str, str], log: Path, guard: Watchdog
    ) -> None:
        self.name = name
        self.argv = argv
        self.log = log
        self._env = dict(env)
        self._guard = guard
        self._popen = self._start()
        self._buried = False

    @property
    def pid(self) -> int:
        """The process's number, which is also its group's."""
        return self._popen.pid

    @property
    def returncode(self) -> int | None:
        """How it ended, or None while it runs."""
        return self._popen.poll()

    @property
    def running(self) -> bool:
        """Tell whether it has not ended; a paused process runs."""
        return self.returncode is None

    def wait(self, seconds: float | None = None) -> int:
        """Wait for the program to end by itself and return its exit code."""
        code = self._popen.wait(seconds)
        self._bury()
        return code

    def kill(self) -> None:
        """End the program and its children as a crash would, at once."""
        self._signal_group(signal.SIGKILL)
        self._popen.wait()
        self._bury()

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Ask the program to end, and kill it when it has not after the given time."""
        self._signal_group(signal.SIGTERM)
        # A paused program gets the request only when it is woken.
        self._signal_group(signal.SIGCONT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(seconds)
        self.kill()

    def pause(self) -> None:
        """Freeze the program: its connections stay open and it answers nothing."""
        self._signal_group(signal.SIGSTOP)

    def resume(self) -> None:
        """Wake a paused program."""
        self._signal_group(signal.SIGCONT)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Freeze the program for what is done meanwhile, and wake it also when that fails."""
        self.pause()
        try:
            yield
        finally:
            self.resume()

    def restart(self, env: Mapping[str, str] | None = None) -> None:
        """Kill the program if it runs and start it again with the same arguments.

        `env` is added to its environment, and stays there.
        """
        self.kill()
        self._env |= env or {}
        self._popen = self._start()
        self._buried = False

    def expect_running(self) -> None:
        """Raise with the end of the log if the program has ended."""
        if not self.running:
            raise TestbedError(f"{self.name} ended with {self.returncode}:\n{self.log_tail()}")

    def log_tail(self) -> str:
        """Return the last lines that the program wrote."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-_LOG_LINES_SHOWN:])

    def _start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as output:
            return subprocess.Popen(
                ["/bin/sh", "-c", _REPORT_AND_EXEC, self.name, *self.argv],
                env=self._env,
                stdin=self._guard.report_to,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _signal_group(self, number: signal.Signals) -> None:
        if self._buried:  # the number may be another's by now
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def _bury(self) -> None:
        if not self._buried:
            self._buried = True
            self._guard.forget(self.pid)
