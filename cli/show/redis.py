"""Prints the built-in Redis: its servers, and the Ray clusters that use most of it."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console

from cli.report.redis import RedisReport, ServerReport
from cli.show.parts import left_out, most
from cli.show.table import Cell, number, rows

MOST = 20


def table(found: RedisReport, output: str) -> Callable[[Console], None]:
    """Return what prints servers, then clusters, those that use most first."""

    def printed(console: Console) -> None:
        written = f"{found.secrets.newest_key} of {found.secrets.all}"
        console.print(f"as of {found.at}; primary {found.primary or 'none'}; Secrets {written}")
        console.print()
        heads = ("SERVER", "ROLE", "BYTES", "OF", "BEHIND")
        rows(console, heads, [_server(each, found.primary) for each in found.servers])
        if found.clusters:
            console.print()
            shown = found.clusters if output == "wide" else found.clusters[:MOST]
            named = ((f"{each.namespace}/{each.name}", number(each.bytes)) for each in shown)
            rows(console, ("RAY CLUSTER", "BYTES"), [*named])
            left_out(console, len(found.clusters) - len(shown), most(output).hint)

    return printed


def _server(each: ServerReport, primary: str | None) -> list[Cell | str]:
    if not each.answers:
        return [each.name, Cell("no answer", "red"), number(None), number(None), number(None)]
    role = "primary" if each.name == primary else "replica"
    return [each.name, role, number(each.memory), number(each.max_memory or None), number(each.lag)]
