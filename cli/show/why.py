"""Prints why a gang waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.console import Console

from cli.report.gangs import FINISHED
from cli.report.why import HistoryReport, HolderReport, PodSetReport, ShortReport, WhyReport
from cli.show.forecast import expected
from cli.show.table import Cell, cut, line, number, rows, title
from cli.show.words import age, amount, clock, phase

_GOOD = ("Running", "Admitted")
"""Reasons of gangs of which nothing is to be explained."""

_MOST_NODES = 10
_MOST_HISTORY = 10


def table(found: WhyReport, output: str, now: float) -> Callable[[Console], None]:
    """Return what prints one gang: where it stands, why, what helps, and what happened."""

    def printed(console: Console) -> None:
        _head(console, found, now)
        _expected(console, found, now)
        _pod_sets(console, found, output)
        for each in found.pod_sets:
            if each.short is not None:
                _short(console, each, each.short)
        for said in found.quota:
            line(console, f"quota: {said}")
        for said in found.helps:
            line(console, f"would help: {said}")
        if found.remedy and found.reason not in _GOOD:
            line(console, f"to do: {found.remedy}")
        for note in found.notes:
            line(console, f"note: {note}", "yellow")
        if found.nodes:
            _nodes(console, found, output)
        if found.history:
            _history(console, found, output)

    return printed


def _head(console: Console, found: WhyReport, now: float) -> None:
    title(console, f"{found.namespace}/{found.name}: {found.phase or 'not looked at yet'}")
    where = f", cluster {found.cluster}" if found.cluster else ""
    place = f"queue {found.queue}{_place(found)}{where}"
    line(console, f"{place}, created {age(found.created, now)} ago")
    if found.reason:
        style = "yellow" if found.waits else phase(found.phase).style
        line(console, f"{found.reason}: {found.message}", style)
    for cluster, why in found.refused_by.items():
        line(console, f"refused by {cluster}: {' '.join(why.split())}", "yellow")
    if found.stops_gangs:
        line(console, f"may stop gangs for it, or ask for nodes: cluster {found.stops_gangs}")
    if found.means and found.reason not in _GOOD:
        line(console, f"means: {found.means}")


def _expected(console: Console, found: WhyReport, now: float) -> None:
    """Write when it is expected to start: as it was worked out now, else as it was told."""
    if found.forecast is not None:
        expected.one(console, f"{found.namespace}/{found.name}", found.forecast)
    else:
        expected.told(console, found.expected_start, now)


def _place(found: WhyReport) -> str:
    """Write the place in the queue; nothing for a gang that has its room."""
    if found.phase == FINISHED:
        return ""
    if not found.waits:
        return f", {found.ready} pods ready"
    place = f", position {found.position} of {found.of} waiting" if found.position else ""
    before = f" (after {', '.join(found.ahead)})" if found.ahead else ""
    return f"{place}{before}, priority {found.priority}"


def _pod_sets(console: Console, found: WhyReport, output: str) -> None:
    if not found.pod_sets:
        return
    console.print()
    heads = ("POD SET", "PODS", "MINIMUM", "GATED", "RELEASED", "BOUND", "READY", "KEPT", "WHY")
    rows(console, heads, [_pod_set(each, output) for each in found.pod_sets])
    console.print()


def _pod_set(each: PodSetReport, output: str) -> list[Cell | str]:
    counts = (each.count, each.minimum, each.gated, each.released, each.bound, each.ready)
    said = f"{each.reason}: {each.message}" if each.message else each.reason
    return [each.name, *map(number, counts), number(each.kept), cut(said or "-", output)]


def _short(console: Console, pod_set: PodSetReport, short: ShortReport) -> None:
    """Print what a pod set lacks, and who has it."""
    said = {
        "each needs": short.each,
        "the gang needs": short.needed,
        "free": short.free,
        "left": short.left,
        "most on one node": short.largest,
    }
    numbers = [f"{label} {amount(short.resource, text)}" for label, text in said.items() if text]
    line(console, f"{pod_set.name} lacks {short.resource}: {', '.join(numbers)}")
    if not short.holders:
        return
    nodes = "the node" if short.nodes == 1 else f"the {short.nodes} nodes"
    on_them = f"held on {nodes} that could run it:"
    line(console, f"  {on_them if short.is_judged else 'holders that its Gang names:'}")
    heads = ("HOLDER", "HOLDS", "RESERVED", "WOULD FIT IF IT ENDED")
    rows(console, heads, [_holder(short, each) for each in short.holders], indent=4)
    if short.other_holders:
        line(console, f"    and {short.other_holders} more")


def _holder(short: ShortReport, each: HolderReport) -> list[Cell | str]:
    place = f"{each.namespace}/{each.name}" if each.namespace else each.name
    held = amount(short.resource, each.amount)
    if not short.is_judged:
        return [f"{each.kind} {place}", number(held), number(None), number(None)]
    reserved = amount(short.resource, each.reserved)
    return [f"{each.kind} {place}", number(held), number(reserved), number(each.frees)]


def _nodes(console: Console, found: WhyReport, output: str) -> None:
    shown = list(found.nodes.items())[: None if output == "wide" else _MOST_NODES]
    said = ", ".join(f"{name} ({count})" for name, count in shown)
    more = f" and {len(found.nodes) - len(shown)} more" if len(shown) < len(found.nodes) else ""
    line(console, f"placed on: {said}{more}")


def _history(console: Console, found: WhyReport, output: str) -> None:
    console.print()
    shown = found.history if output == "wide" else found.history[-_MOST_HISTORY:]
    rows(console, ("LAST", "TIMES", "REASON", "EVENT"), list(_events(shown, output)))


def _events(shown: tuple[HistoryReport, ...], output: str) -> Iterator[list[Cell | str]]:
    for each in shown:
        style = "yellow" if each.type == "Warning" else ""
        yield [
            clock(each.last),
            number(each.count),
            Cell(each.reason, style),
            cut(each.message, output),
        ]
