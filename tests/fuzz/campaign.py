"""Sends mutated bodies to one path of a server, and says what must hold for each answer.

An answer comes, with a status that says clearly what it is: 200 with what the caller can read, or
a 4xx with a text. No 500, no exception in the log, and neither CPU nor memory without bound.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import tempfile
import threading
import time
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import structlog
from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz import servers
from tests.fuzz.callers import Answer, Caller
from tests.fuzz.cases import Case
from tests.fuzz.mutations import mutated, spoiled

CPU_SECONDS = 3.0
"""Of one call, the caller's share included: of 1 MiB of JSON a hundredth of that is expected."""
MEMORY = 512 << 20
"""Bytes by which the peak may grow over a campaign, both sides and Hypothesis in one process."""
REFUSALS = frozenset((400, 408, 413, 415))
ROUND = 200
_WAIT = 120.0


class BrokenContractError(AssertionError):
    """An answer, or its absence, that no caller should meet."""


@dataclass
class Tally:
    """How many bodies were answered with which status."""

    statuses: dict[int, int] = field(default_factory=dict)
    slowest: float = 0.0
    """CPU seconds."""
    grown: int = 0
    """Bytes of the peak of memory."""

    @property
    def bodies(self) -> int:
        """How many bodies were sent."""
        return sum(self.statuses.values())

    def note(self, status: int, seconds: float) -> None:
        """Count an answer."""
        self.statuses[status] = self.statuses.get(status, 0) + 1
        self.slowest = max(self.slowest, seconds)


class _Errors(logging.Handler):
    """Keeps what is logged as an error: by the libraries, and by our programs."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record of the standard library's."""
        self.texts.append(logging.Formatter().format(record))

    def keep(self, _: object, method: str, event: MutableMapping[str, Any]) -> NoReturn:
        """Keep an event of structlog's, of which nothing else is written."""
        if method in ("error", "exception", "critical"):
            self.texts.append(f"{event}")
        raise structlog.DropEvent


class Running:
    """A server on a thread of its own, and a caller on the same event loop."""

    def __init__(self, serve: servers.Serve, directory: Path) -> None:
        self._serve, self._directory = serve, directory
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.errors = _Errors()
        self.listening: servers.Listening | None = None

    def __enter__(self) -> Running:
        logging.getLogger().addHandler(self.errors)
        structlog.configure(processors=[structlog.processors.format_exc_info, self.errors.keep])
        self._thread.start()
        assert self._ready.wait(_WAIT)
        assert self.listening is not None, self.errors.texts
        self._caller = Caller(self.listening.port, self.listening.context)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_WAIT)
        self._loop.close()
        logging.getLogger().removeHandler(self.errors)
        structlog.reset_defaults()

    def post(self, path: str, body: bytes) -> Answer | None:
        """Send a body; one that is not answered is a breach, unless it is too large.

        The server ends the connection of such a one while it still comes, which may overtake 413.
        """
        asked = asyncio.run_coroutine_threadsafe(self._caller.post(path, body), self._loop)
        try:
            return asked.result(_WAIT)
        except (OSError, EOFError, TimeoutError) as error:
            if len(body) > servers.BODY_LIMIT:
                return None
            raise BrokenContractError(f"no answer: {error!r}") from error

    def send(self, request: bytes) -> Answer | None:
        """Send any bytes for a request, which need not be answered."""
        asked = asyncio.run_coroutine_threadsafe(self._caller.send(request), self._loop)
        return asked.result(_WAIT)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serving())
            self._loop.run_until_complete(_end_others())
        finally:
            self._ready.set()

    async def _serving(self) -> None:
        async with self._serve(self._directory) as self.listening:
            self._ready.set()
            await self._stop.wait()
            await self._caller.close()


async def _end_others() -> None:
    """End what still runs of connections that were cut off."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


@contextlib.contextmanager
def running(case: Case) -> Iterator[Running]:
    """The server of a case."""
    with (
        tempfile.TemporaryDirectory(prefix="muster-fuzz-") as directory,
        Running(servers.SERVERS[case.server], Path(directory)) as server,
    ):
        yield server


def fuzz(case: Case, *, seconds: float, first_seed: int) -> Tally:
    """Try new bodies until the time is over, one round at least; raises what breaks the contract.

    Hypothesis has made that as small as it could.
    """
    tally, ends = Tally(), time.monotonic() + seconds
    with running(case) as server:
        before = _peak(reset=True)
        for number in itertools.count(first_seed):
            _round(case, server, tally, number)
            if time.monotonic() >= ends:
                break
        tally.grown = _peak() - before
    if tally.grown > MEMORY:
        raise BrokenContractError(f"memory grew by {tally.grown >> 20} MiB")
    return tally


def _round(case: Case, server: Running, tally: Tally, number: int) -> None:
    @seed(number)
    @settings(
        max_examples=ROUND,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(spoiled(case.requests) if case.requests else mutated(case.originals))
    def tried(sent: bytes) -> None:
        server.errors.texts.clear()
        began = time.process_time()
        status = _status_of_request(server, sent) if case.requests else _status(case, server, sent)
        took = time.process_time() - began
        expect_quiet(server, took)
        tally.note(status, took)

    tried()
    _status(case, server, case.originals[0].body)  # others are answered as before


def _status(case: Case, server: Running, body: bytes) -> int:
    """The status of the answer to a body; 0 where it is too large to have one."""
    answer = server.post(case.path, body)
    if answer is None:
        return 0
    expect_clear(case, answer)
    return answer.status


def _status_of_request(server: Running, request: bytes) -> int:
    """The status of a spoiled request; 0 where it has no answer."""
    answer = server.send(request)
    if answer is not None and answer.status >= 500:
        raise BrokenContractError(f"status {answer.status} for a broken request")
    return 0 if answer is None else answer.status


def expect_clear(case: Case, answer: Answer) -> None:
    """Refuse an answer that its caller could not use."""
    if answer.status == 200:
        case.expect(answer.body)
    elif answer.status not in REFUSALS or not answer.body.strip():
        raise BrokenContractError(f"status {answer.status}: {answer.body[:300]!r}")


def expect_quiet(server: Running, cpu: float) -> None:
    """Refuse what took too long, or came with an error in the log."""
    if server.errors.texts:
        raise BrokenContractError(f"logged: {server.errors.texts}")
    if cpu > CPU_SECONDS:
        raise BrokenContractError(f"took {cpu:.1f} s of CPU")


def _peak(*, reset: bool = False) -> int:
    """The most memory of this process, since the start or the last reset."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    line = next(each for each in status.splitlines() if each.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024
