"""Prints what changes of a cluster would do."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.console import Console

from cli.report.forecast.what_if import DevicesReport, Effect, EffectReport, WhatIfReport
from cli.show import parts
from cli.show.table import Cell, cut, line, number, rows, title
from cli.show.words import clock, counted, lasting

_SAID = {
    Effect.STARTS: Cell("starts now", "green"),
    Effect.STOPS: Cell("stops now", "red"),
    Effect.WAITS_FOR_PODS: Cell("loses pods", "red"),
    Effect.ENDS: Cell("ends", ""),
    Effect.SOONER: Cell("sooner", "green"),
    Effect.LATER: Cell("later", "yellow"),
    Effect.NO_MORE_KNOWN: Cell("not known any more", "yellow"),
    Effect.KNOWN: Cell("known now", "green"),
    Effect.STOPS_LATER: Cell("stops later", "red"),
}


def table(found: WhatIfReport, output: str) -> Callable[[Console], None]:
    """Return what prints the effects, the devices, and of which picture they are."""

    def printed(console: Console) -> None:
        title(console, f"if: {', '.join(found.changes)}")
        line(console, f"of the picture of {clock(found.taken)}, forecast to {clock(found.reached)}")
        console.print()
        if found.effects:
            limits = parts.most(output)
            shown = found.effects[: limits.gangs]
            heads = ("GANG", "QUEUE", "EFFECT", "START", "WITHOUT", "MOVES", "SURE", "WHY")
            rows(console, heads, [_effect(each, output) for each in shown])
            parts.left_out(console, len(found.effects) - len(shown), limits.hint)
        else:
            waiting = counted(found.waiting, "waiting gang")
            line(console, f"nothing starts, stops or moves ({waiting})")
        if found.devices:
            console.print()
            rows(
                console,
                ("DEVICES", "ALL", "FREE", "OFF", "STRANDED"),
                list(map(_devices, found.devices)),
            )

    return printed


def _effect(each: EffectReport, output: str) -> list[Cell | str]:
    return [
        f"{each.namespace}/{each.name}",
        each.queue,
        _SAID[each.effect],
        clock(each.after) if each.after else "-",
        clock(each.before) if each.before else "-",
        number(_moves(each.later_seconds)),
        each.sure.value if each.sure is not None else "-",
        cut(each.why or "-", output),
    ]


def _moves(seconds: float | None) -> str | None:
    if not seconds:
        return None
    return f"{'+' if seconds > 0 else '-'}{lasting(int(abs(seconds)))}"


def _devices(each: DevicesReport) -> list[Cell | str]:
    return [each.resource, *(number(said) for said in _pairs(each))]


def _pairs(each: DevicesReport) -> Iterator[str]:
    yield _pair(each.before, each.after)
    yield _pair(each.free_before, each.free_after)
    yield _pair(each.off_before, each.off_after)
    yield _pair(each.stranded_before, each.stranded_after)


def _pair(before: float, after: float) -> str:
    return f"{before:g}" if before == after else f"{before:g} -> {after:g}"
