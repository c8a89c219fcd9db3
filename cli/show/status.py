"""Prints the cluster at one glance."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rich.console import Console

from cli.report.status import StatusReport
from cli.show import parts
from cli.show.table import line, title


def table(found: StatusReport, output: str, now: float) -> Callable[[Console], None]:
    """Return what prints gangs, queues and devices, in this order."""

    def printed(console: Console) -> None:
        where = f" in namespace {found.namespace}" if found.namespace else ""
        said = _counts(found.phases)
        title(console, f"{found.gangs} gangs{where}" + (f": {said}" if said else ""))
        if found.waiting:
            line(console, f"waiting: {_counts(found.reasons)}")
            parts.gangs(console, found.waiting, output, now)
        if output == "wide" and found.placed:
            console.print()
            title(console, "with their place")
            parts.gangs(console, found.placed, output, now)
        if output == "wide" and found.failed:
            console.print()
            title(console, "failed")
            parts.gangs(console, found.failed, output, now)
        console.print()
        title(console, "queues")
        if found.queues:
            parts.queues(console, found.queues, output)
        else:
            line(console, "none: gangs wait in the built-in queue default, which has no quota")
        console.print()
        title(console, "GPUs")
        parts.pools(console, found.nodes)

    return printed


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name or 'not looked at yet'}" for name, count in counts.items())
