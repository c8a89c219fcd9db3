"""Says whether an object that is about to be created would start now, as `muster fit` does."""

from collections.abc import Mapping
from typing import Any

from cli.endings import Unusable
from cli.fitting.asked import read_asked
from cli.imports.outcome import Fault, Source
from cli.read.dry_run import ask
from cli.read.judging import judge
from cli.read.reader import Reader
from cli.report.fit import FitReport


async def preview(reader: Reader, body: Mapping[str, Any]) -> FitReport:
    """Return the answer about one object; raises CannotRead, and Unusable for what has a fault."""
    group = str(body["apiVersion"]).rpartition("/")[0]
    source = Source("what is asked for", group, str(body["kind"]), body)
    try:
        asked, _ = read_asked([source], body["metadata"]["namespace"])
    except Fault as fault:
        raise Unusable(str(fault)) from None
    return await judge(reader, asked, ask)
