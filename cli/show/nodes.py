"""Prints nodes with their devices."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console

from cli.report.nodes import NodeReport, NodesReport
from cli.show.parts import left_out, most, pools
from cli.show.table import Cell, number, rows
from cli.show.words import bar

MOST = 40


def table(found: NodesReport, output: str, resource: str = "") -> Callable[[Console], None]:
    """Return what prints the pools, then the nodes, those with the most room first."""

    def printed(console: Console) -> None:
        pools(console, found, resource)
        if found.nodes:
            console.print()
            nodes = sorted(found.nodes, key=lambda each: (bool(each.off), -each.free, each.name))
            shown = nodes if output == "wide" else nodes[:MOST]
            heads = ("NODE", "POOL", "RESOURCE", "", "USED", "RESERVED", "FREE", "OF", "OFF")
            rows(console, heads, [_node(each) for each in shown])
            left_out(console, len(nodes) - len(shown), most(output).hint)

    return printed


def _node(node: NodeReport) -> list[Cell | str]:
    off = Cell(node.off or "-", "red" if node.off else "")
    free = None if node.off else node.free
    counts = (node.used, node.reserved, free, node.allocatable)
    drawn = bar(node.used, node.reserved, node.allocatable)
    return [node.name, node.pool, node.resource, drawn, *map(number, counts), off]
