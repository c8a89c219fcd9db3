"""Prints devices of no single node: shared ones, and those that several nodes reach."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console

from cli.report.room.totals import FarReport, SharedReport
from cli.show.table import Cell, number, rows
from cli.show.words import bar

_SHARED = ("SHARED", "POOL", "NODES", "DEVICES", "WITH ROOM", "CAPACITY")
_FAR = ("REACHED BY SEVERAL NODES", "POOL", "NODES", "")


def shared(console: Console, found: Sequence[SharedReport]) -> None:
    """Print how much is left of shared devices: a row for each of their capacities."""
    if found:
        console.print()
        heads = (*_SHARED, "USED", "RESERVED", "FREE", "OF")
        rows(console, heads, [row for each in found for row in _shared(each)])


def far(console: Console, found: Sequence[FarReport]) -> None:
    """Print devices that several nodes reach, each counted once."""
    if found:
        console.print()
        rows(console, (*_FAR, "USED", "RESERVED", "FREE", "OF"), [_far(each) for each in found])


def _shared(each: SharedReport) -> Iterator[list[Cell | str]]:
    mine: list[Cell | str] = [each.resource, each.name]
    mine += map(number, (each.nodes, each.devices, each.with_room))
    for name, of in each.capacity.items():
        yield [*mine, name, *map(number, (of.used, of.reserved, of.free, of.of))]
        mine = ["", "", *map(number, ("", "", ""))]
    if not each.capacity:
        yield [*mine, "-", *[number(None)] * 4]


def _far(each: FarReport) -> list[Cell | str]:
    drawn = bar(each.used, each.reserved, each.devices)
    counts = (each.used, each.reserved, each.free, each.devices)
    return [each.resource, each.name, number(each.nodes), drawn, *map(number, counts)]
