"""Prints parts that several commands share: lists of gangs, queues and pools of devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console

from cli.report.gangs import GangReport
from cli.report.queues import QueueReport, ResourceReport
from cli.report.room.nodes import NodesReport, PoolReport
from cli.show import devices
from cli.show.table import Cell, cut, line, number, rows
from cli.show.words import age, amount, bar, phase, whole_amount
from scheduling.model.quantity import request_amount

_UNKNOWN = (
    "GPUs of nodes are not known: nodes and pods cannot be listed; "
    "muster queue NAME says how many pods still fit"
)

QUEUES_UNKNOWN = "not known: gangqueues cannot be listed, and no gang that may be listed names one"

MOST = 20
"""Rows of a list on a screen; `-o wide` has all of them."""


class Most(NamedTuple):
    """How many gangs and queues are shown; None where all are. `hint` says how to see the rest."""

    gangs: int | None
    queues: int | None
    hint: str = ""


def most(output: str) -> Most:
    """Return how much a form shows."""
    return Most(None, None) if output == "wide" else Most(MOST, MOST, " (-o wide shows all)")


def gangs(
    console: Console, found: Sequence[GangReport], output: str, now: float, limits: Most
) -> None:
    """Print gangs in their order, with the reason of each."""
    shown = found[: limits.gangs]
    heads = ("POS", "GANG", "QUEUE", "PHASE", "READY", "AGE", "REASON", "MESSAGE")
    if shown:
        with_clusters(console, shown, heads, [_gang(each, output, now) for each in shown], at=4)
    left_out(console, len(found) - len(shown), limits.hint)


def with_clusters(
    console: Console,
    shown: Sequence[GangReport],
    heads: Sequence[str],
    cells: Sequence[list[Cell | str]],
    at: int,
) -> None:
    """Print gangs with a column more, before the one at `at`, where any is on another cluster."""
    if any(each.cluster for each in shown):
        heads = (*heads[:at], "CLUSTER", *heads[at:])
        pairs = zip(shown, cells, strict=True)
        cells = [[*row[:at], gang.cluster or "-", *row[at:]] for gang, row in pairs]
    rows(console, heads, cells)


def _gang(gang: GangReport, output: str, now: float) -> list[Cell | str]:
    return [
        number(gang.position or None),
        gang.key,
        gang.queue,
        phase(gang.phase),
        number(gang.ready),
        number(age(gang.created, now)),
        gang.reason or "-",
        cut(gang.message, output),
    ]


def left_out(console: Console, count: int, hint: str) -> None:
    """Say how many rows are not shown, and how to see them."""
    if count > 0:
        line(console, f"and {count} more{hint}", "dim")


def queues(
    console: Console, found: Sequence[QueueReport], limits: Most, sizes: Sequence[str] = ()
) -> None:
    """Print queues as a tree, each with its resources, and how many pods of some sizes fit."""
    cells: list[list[Cell | str]] = []
    shown_queues = found[: limits.queues]
    shares = ["SHARE"] if any(each.share for each in found) else []
    for queue in shown_queues:
        name = "  " * queue.depth + queue.name
        first: list[Cell | str] = [name, number(queue.pending), number(queue.admitted)]
        state = Cell("yes", "green") if queue.active else Cell("no", "red")
        # One that is not limited is there for its holes alone.
        shown = [each for each in queue.resources if sizes or each.used is not None]
        for at, each in enumerate(shown or (None,)):
            mine: list[Cell | str] = first if at == 0 else ["", number(""), number("")]
            fitting = [number(each.holes.get(size) if each else None) for size in sizes]
            share = [number((queue.share or "-") if at == 0 else "")] if shares else []
            cells.append([*mine, *_resource(each), *share, state if at == 0 else "", *fitting])
    heads = (
        "QUEUE",
        "PENDING",
        "ADMITTED",
        "RESOURCE",
        "",
        "USED",
        "QUOTA",
        "BORROWED",
        "MAY TAKE",
    )
    if shown_queues:
        rows(console, (*heads, *shares, "ACTIVE", *(f"FIT {size}" for size in sizes)), cells)
    left_out(console, len(found) - len(shown_queues), limits.hint)
    for queue in found:
        if not queue.active:
            line(console, f"{queue.name}: {queue.fault}", "red")


def _resource(each: ResourceReport | None) -> list[Cell | str]:
    if each is None:
        return ["-", "", number(None), number(None), number(None), number(None)]
    said = [amount(each.resource, text) for text in (each.used, each.quota, each.borrowed)]
    free = "-" if each.may_take is None else amount(each.resource, each.may_take)
    return [each.resource, _share(each), *map(number, said), number(free)]


def _share(each: ResourceReport) -> str:
    """Draw the use of a quota; nothing where there is none."""
    used, reserved, quota = (
        _base(each.resource, t) for t in (each.used, each.reserved, each.quota)
    )
    return bar(max(used - reserved, 0), reserved, quota) if quota else ""


def _base(resource: str, text: str | None) -> int:
    return request_amount(resource, text) if text is not None else 0


def pools(console: Console, found: NodesReport) -> None:
    """Print pools of devices: a bar, numbers, and how many pods of each size still fit."""
    if not found.is_known:
        line(console, _UNKNOWN, "yellow")
        return
    if not found.pools and not found.shared and not found.far:
        line(console, "there are no nodes")
        return
    _pools(console, found)
    devices.shared(console, found.shared)
    devices.far(console, found.far)


def _pools(console: Console, found: NodesReport) -> None:
    sizes = list(dict.fromkeys(size for each in found.pools for size in each.holes))
    heads = ("POOL", "RESOURCE", "NODES", "", "USED", "RESERVED", "FREE", "OF", "OFF", "STRANDED")
    cells = [_pool(each, sizes) for each in found.pools]
    if cells:
        rows(console, (*heads, *(f"FIT {size}" for size in sizes)), cells)


def _hole(pods: int | None) -> Cell:
    return number(pods, "red" if pods == 0 else "")


def _pool(each: PoolReport, sizes: Sequence[str]) -> list[Cell | str]:
    counts = (each.used, each.reserved, each.free, each.allocatable)
    said = (whole_amount(each.resource, count) for count in counts)
    return [
        each.name,
        each.resource,
        number(each.nodes),
        bar(each.used, each.reserved, each.allocatable),
        *map(number, said),
        number(whole_amount(each.resource, each.unschedulable) if each.unschedulable else None),
        number(f"{each.stranded:g}" if each.stranded else None),
        *(_hole(each.holes.get(size)) for size in sizes),
    ]
