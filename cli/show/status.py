"""Prints the report of the whole cluster on one screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rich.console import Console

from cli.report.status import StatusReport
from cli.show import parts
from cli.show.table import line, title
from cli.show.words import counted


def table(found: StatusReport, output: str, now: float) -> Callable[[Console], None]:
    """Return what prints gangs, queues and devices, in this order."""
    return _table(found, output, now, parts.most(output))


def looks(found: StatusReport, output: str, now: float) -> Iterator[Callable[[Console], None]]:
    """Yield what prints the same for one screen, with what could not be read, and ever less.

    Gangs are left out first, then queues: what is free stays in sight.
    """
    whole = parts.most(output)
    yield _look(found, output, now, whole)
    most = min(parts.MOST, max(map(len, (found.waiting, found.placed, found.failed))))
    for gangs in reversed(range(most + 1)):
        yield _look(found, output, now, whole._replace(gangs=gangs, hint=""))
    for queues in reversed(range(min(parts.MOST, len(found.queues)) + 1)):
        yield _look(found, output, now, parts.Most(0, queues))


def _look(
    found: StatusReport, output: str, now: float, limits: parts.Most
) -> Callable[[Console], None]:
    def printed(console: Console) -> None:
        for each in found.unread:
            line(console, f"Note: {each}", "yellow")
        _table(found, output, now, limits)(console)

    return printed


def _table(
    found: StatusReport, output: str, now: float, limits: parts.Most
) -> Callable[[Console], None]:
    def printed(console: Console) -> None:
        where = f" in namespace {found.namespace}" if found.namespace else ""
        said = _counts(found.phases)
        over = f"; {found.finished} finished" if found.finished else ""
        title(console, f"{counted(found.gangs, 'gang')}{where}{f': {said}' if said else ''}{over}")
        if found.waiting:
            line(console, f"waiting: {_counts(found.reasons)}")
            parts.gangs(console, found.waiting, output, now, limits)
        others = {"with their place": found.placed, "failed": found.failed}
        for name, gangs in others.items():
            if gangs:
                console.print()
                title(console, name)
                parts.gangs(console, gangs, output, now, limits)
        _queues(console, found, limits)
        console.print()
        title(console, "room on nodes")
        parts.pools(console, found.nodes)

    return printed


def _queues(console: Console, found: StatusReport, limits: parts.Most) -> None:
    console.print()
    title(console, "queues")
    if found.queues:
        parts.queues(console, found.queues, limits)
    elif found.queues_known:
        line(console, "none: gangs wait in the built-in queue default, which has no quota")
    else:
        line(console, parts.QUEUES_UNKNOWN, "yellow")


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name or 'not looked at yet'}" for name, count in counts.items())
