"""Prints nodes with their devices."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console

from cli.report.order import natural
from cli.report.room.nodes import NodeReport, NodesReport
from cli.show.parts import left_out, most, pools
from cli.show.table import Cell, number, rows
from cli.show.words import bar, whole_amount

MOST = 40


def table(found: NodesReport, output: str) -> Callable[[Console], None]:
    """Return what prints the pools, then the nodes, those with the most room first."""

    def printed(console: Console) -> None:
        pools(console, found)
        if found.nodes:
            console.print()
            nodes = sorted(found.nodes, key=_order)
            shown = nodes if output == "wide" else nodes[:MOST]
            heads = ("NODE", "POOL", "RESOURCE", "", "USED", "RESERVED", "FREE", "OF", "OFF")
            rows(console, heads, [_node(each) for each in shown])
            left_out(console, len(nodes) - len(shown), most(output).hint)

    return printed


def _order(node: NodeReport) -> tuple[object, ...]:
    return bool(node.off), node.resource, -node.free, natural(node.name)


def _node(node: NodeReport) -> list[Cell | str]:
    off = Cell(node.off or "-", "red" if node.off else "")
    free = None if node.off else node.free
    counts = (node.used, node.reserved, free, node.allocatable)
    said = (whole_amount(node.resource, each) if each is not None else None for each in counts)
    drawn = bar(node.used, node.reserved, node.allocatable)
    return [node.name, node.pool, node.resource, drawn, *map(number, said), off]
