"""Reads the cluster repeatedly, and keeps the last report for all who look at the page."""

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable

from cli.endings import CannotRead
from cli.read.cluster import read_gangs_anywhere
from cli.read.devices import with_devices
from cli.read.reader import Reader
from cli.report.page import PageReport, page_report
from cli.report.snapshot import GANGS, NODES, PODS, QUEUES
from cli.report.status import StatusReport, status_report

SHARE = 0.2
"""The most of its time that reading may take: a large cluster is read less often."""


async def read_status(reader: Reader) -> StatusReport:
    """Read what the page shows of all gangs, with the rights of the reader."""
    found = await read_gangs_anywhere(reader, GANGS, QUEUES, NODES, PODS)
    return await asyncio.to_thread(status_report, await with_devices(reader, found))


def pause_after(seconds: float, period: float) -> float:
    """Return how long to wait after a reading that took so many seconds."""
    return max(period, seconds / SHARE - seconds)


class Feed:
    """The last report, how old it is, and why there is no newer one."""

    def __init__(self, read: Callable[[], Awaitable[StatusReport]], period: float) -> None:
        self._read = read
        self._period = period
        self._changed = asyncio.Condition()
        self._found: StatusReport | None = None
        self._read_at = 0.0
        self._fault = ""
        self._version = 0

    @property
    def version(self) -> int:
        """How many readings there were, those that failed among them."""
        return self._version

    async def run(self) -> None:
        """Read for ever; what cannot be read is shown, and tried again."""
        while True:
            began = time.monotonic()
            await self.refresh()
            await asyncio.sleep(pause_after(time.monotonic() - began, self._period))

    async def refresh(self) -> None:
        """Read once."""
        try:
            self._found, self._fault = await self._read(), ""
            self._read_at = time.monotonic()
            gc.collect()  # it is off while a command runs, and this one does not end
        except CannotRead as error:
            self._fault = str(error)
        self._version += 1
        async with self._changed:
            self._changed.notify_all()

    async def after(self, version: int) -> int:
        """Wait until there was another reading than the one of this version; return its own."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._version != version)
        return self._version

    def page(self, query: str) -> PageReport | None:
        """Return what to show; None before the first reading ended."""
        if self._found is None:
            return None
        age = time.monotonic() - self._read_at
        return page_report(self._found, query, self._version, age, self._fault)

    @property
    def fault(self) -> str:
        """Why the last reading failed; empty where it did not."""
        return self._fault
