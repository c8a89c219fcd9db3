"""Works out what changes of the cluster would do, with the rights of the caller."""

import asyncio

from msgspec.structs import replace

from cli.forecast.changes import Changes, check
from cli.forecast.what_if import what_if
from cli.read.forecast.asking import read_pictured
from cli.read.reader import Reader
from cli.report.forecast.what_if import WhatIfReport


async def read_what_if(reader: Reader, changes: Changes) -> WhatIfReport:
    """Return what changes would do; raises Fault where they cannot be made, and CannotRead.

    The forecasts run in a thread, so that a server answers others meanwhile.
    """
    check(changes)
    found = await read_pictured(reader, changes.asked, {each.queue for each in changes.quotas})
    report = await asyncio.to_thread(what_if, found.pictured, changes)
    return replace(report, unread=found.unread)
