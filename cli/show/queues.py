"""Prints queues: all as a tree, or one with its gangs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec
from rich.console import Console

from cli.report.queues import OneQueueReport, QueueReport, QueuesReport
from cli.show import parts
from cli.show.forecast import expected
from cli.show.table import Cell, line, number, rows, title
from cli.show.words import age, amount, phase

_MOST_HOLDING = 10


def table(
    found: QueuesReport | OneQueueReport, output: str, now: float
) -> Callable[[Console], None]:
    """Return what prints all queues, or one with its gangs."""
    if isinstance(found, OneQueueReport):
        return _one(found, output, now)

    def printed(console: Console) -> None:
        if found.queues:
            parts.queues(console, found.queues, parts.most(output), _sizes(found.queues))
        elif found.is_known:
            line(console, "no GangQueue: all gangs are in the built-in queue default")
        else:
            line(console, parts.QUEUES_UNKNOWN, "yellow")

    return printed


def _sizes(found: Iterable[QueueReport]) -> list[str]:
    """Return the sizes of pods that any queue counts holes of."""
    return sorted(
        {size for queue in found for each in queue.resources for size in each.holes}, key=int
    )


def _one(found: OneQueueReport, output: str, now: float) -> Callable[[Console], None]:
    def printed(console: Console) -> None:
        limits, queue = parts.most(output), msgspec.structs.replace(found.queue, depth=0)
        parts.queues(console, [queue], limits, _sizes([queue]))
        if found.rules:
            line(console, ", ".join(f"{name} {value}" for name, value in found.rules.items()))
        for said in queue.quota_held:
            line(console, f"quota: {said}")
        _shares(console, found, limits)
        console.print()
        title(console, f"{len(found.waiting)} waiting")
        if found.waiting:
            parts.gangs(console, found.waiting, output, now, limits)
            _because(console, found, limits)
        if found.forecast is not None:
            expected.many(console, found.forecast, found.queue.name, output, limits)
        else:
            expected.many_told(console, found.waiting, output, now, limits)
        console.print()
        title(console, f"{len(found.holding)} holding room")
        if found.holding:
            _holding(console, found, output, now)
        if found.failed:
            console.print()
            title(console, f"{len(found.failed)} failed")
            parts.gangs(console, found.failed, output, now, limits)

    return printed


def _shares(console: Console, found: OneQueueReport, limits: parts.Most) -> None:
    """Print what namespaces used over time, where that counts."""
    if found.namespaces:
        console.print()
        title(console, "used over time")
        cells: list[list[Cell | str]] = [
            [each.name, number(each.share), number(each.weight), _averages(each.usage)]
            for each in found.namespaces[: limits.gangs]
        ]
        rows(console, ("NAMESPACE", "SHARE", "WEIGHT", "ON AVERAGE"), cells)
        shown = len(cells)
        parts.left_out(console, len(found.namespaces) - shown, limits.hint)


def _averages(usage: Mapping[str, str]) -> str:
    named = sorted(usage, key=lambda each: ("/" not in each, each))
    return ", ".join(f"{usage[each]} {each}" for each in named)


def _because(console: Console, found: OneQueueReport, limits: parts.Most) -> None:
    """Say why waiting gangs stand where they stand, where usage counts."""
    named = [each for each in found.waiting[: limits.gangs] if each.key in found.because]
    if named:
        console.print()
        cells: list[list[Cell | str]] = [
            [number(each.position or None), each.key, found.because[each.key]] for each in named
        ]
        rows(console, ("POS", "GANG", "BECAUSE"), cells)


def _holding(console: Console, found: OneQueueReport, output: str, now: float) -> None:
    shown = found.holding if output == "wide" else found.holding[:_MOST_HOLDING]
    cells: list[list[Cell | str]] = [
        [each.key, phase(each.phase), number(each.ready), number(age(each.created, now)), held]
        for each, held in ((each, _held(each.holds)) for each in shown)
    ]
    parts.with_clusters(console, shown, ("GANG", "PHASE", "READY", "AGE", "HOLDS"), cells, at=2)
    parts.left_out(console, len(found.holding) - len(shown), parts.most(output).hint)


def _held(holds: Mapping[str, str]) -> str:
    """Write what a gang holds, devices first."""
    named = sorted(holds, key=lambda each: ("/" not in each, each))
    return ", ".join(f"{amount(each, holds[each])} {each}" for each in named)
