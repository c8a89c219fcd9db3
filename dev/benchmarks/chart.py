"""Draws what a gang of the burst costs, program by program: a stacked bar for each kind.

The seconds of CPU of all programs, for each gang. Of the kinds beside stock the first piece is what
stock costs too, and the others are what each program takes beyond that; what a program takes less
is off the first piece and told beside the bar.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from benchmarks.burst import GANGS, KINDS, SIZE, cpu_title
from benchmarks.kinds import STOCK
from benchmarks.processes import DRIVER
from testbed.components import (
    API_SERVER,
    CONTROLLER_MANAGER,
    ETCD,
    KUBERAY,
    KWOK,
    SCHEDULER,
)

Seconds = Mapping[str, float]

SAME = "what stock costs too"
RELEASER = "bare releases"
_PIECES = {
    API_SERVER: "API server",
    ETCD: "etcd",
    "webhook": "webhook",
    "coordinator-0": "coordinator",
    "releaser": RELEASER,
    KUBERAY: "KubeRay",
    SCHEDULER: "kube-scheduler",
    KWOK: "others",
    CONTROLLER_MANAGER: "others",
}
_COLOURS = {
    SAME: "#c9ced6",
    "API server": "#3b6fb6",
    "etcd": "#86aee0",
    "webhook": "#e08a1e",
    "coordinator": "#c2453c",
    RELEASER: "#d98880",
    "KubeRay": "#4c9a63",
    "kube-scheduler": "#8e6bb0",
    "others": "#8a8f98",
}
_WIDTH, _LEFT, _RIGHT, _TOP, _STEP, _THICK = 900, 90, 190, 60, 46, 28
_NARROW = 26  # a piece with less room than this carries no number


@dataclass(frozen=True)
class Bar:
    """One kind: milliseconds of CPU for each gang, by piece, and what is saved against stock."""

    name: str
    pieces: Mapping[str, float]
    saved: Mapping[str, float]

    @property
    def length(self) -> float:
        """All pieces together."""
        return sum(self.pieces.values())


def bars(tables: Mapping[str, Seconds]) -> list[Bar]:
    """The bars of the kinds that a run of `burst` has."""
    stock = _by_piece(tables[cpu_title(STOCK)])
    titles = {kind.name: cpu_title(kind) for kind in KINDS}
    return [_bar(n, _by_piece(tables[t]), stock) for n, t in titles.items() if t in tables]


def svg(drawn: Sequence[Bar], note: str) -> str:
    """Draw bars below each other, with a legend and a line of text."""
    longest = max(bar.length for bar in drawn)
    scale = (_WIDTH - _LEFT - _RIGHT) / longest
    used = [piece for piece in _COLOURS if any(piece in bar.pieces for bar in drawn)]
    height = _TOP + _STEP * len(drawn) + 70
    box, text = f'viewBox="0 0 {_WIDTH} {height}"', 'font-family="sans-serif" fill="#1f2328"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} {text}>',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(16, 26, f"CPU of all programs for a gang of {SIZE.pods} pods, in ms", size=16),
        _text(16, 45, f"{GANGS} gangs created at once, until all pods run. {note}", size=12),
        *(line for row, bar in enumerate(drawn) for line in _drawn(bar, _TOP + _STEP * row, scale)),
        *_legend(used, _TOP + _STEP * len(drawn) + 20),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _by_piece(cpu: Seconds) -> dict[str, float]:
    """Milliseconds for each gang; a program that is not known counts among the others."""
    found: dict[str, float] = {}
    for program, seconds in cpu.items():
        if program != DRIVER:
            piece = _PIECES.get(program, "others")
            found[piece] = found.get(piece, 0.0) + seconds * 1e3 / GANGS
    return found


def _bar(name: str, cost: Mapping[str, float], stock: Mapping[str, float]) -> Bar:
    order = [piece for piece in _COLOURS if piece in cost or piece in stock]
    more = {piece: cost.get(piece, 0.0) - stock.get(piece, 0.0) for piece in order}
    saved = {piece: -beyond for piece, beyond in more.items() if beyond < 0}
    same = sum(stock.values()) - sum(saved.values())
    return Bar(name, {SAME: same} | {p: ms for p, ms in more.items() if ms > 0}, saved)


def _drawn(bar: Bar, top: float, scale: float) -> Iterator[str]:
    middle = top + _THICK / 2 + 5
    yield _text(_LEFT - 8, middle, bar.name, anchor="end")
    at = float(_LEFT)
    for piece, value in bar.pieces.items():
        width = value * scale
        yield (
            f'<rect x="{at:.1f}" y="{top:.1f}" width="{width:.1f}" height="{_THICK}"'
            f' fill="{_COLOURS[piece]}"><title>{escape(piece)}: {value:.1f} ms</title></rect>'
        )
        if width >= _NARROW:
            colour = "#1f2328" if piece == SAME else "#ffffff"
            yield _text(at + width / 2, middle, f"{value:.0f}", anchor="middle", colour=colour)
        at += width
    saved = ", ".join(f"{piece} -{ms:.0f}" for piece, ms in bar.saved.items() if ms >= 1)
    yield _text(at + 8, middle - 6 * bool(saved), f"{bar.length:.0f} ms")
    if saved:
        yield _text(at + 8, middle + 9, saved, size=11)


def _legend(pieces: Sequence[str], top: float) -> Iterator[str]:
    at = float(_LEFT)
    for piece in pieces:
        width = 34 + 7.2 * len(piece)
        if at + width > _WIDTH:
            at, top = float(_LEFT), top + 22
        yield (
            f'<rect x="{at:.1f}" y="{top:.1f}" width="12" height="12" fill="{_COLOURS[piece]}"/>'
        )
        yield _text(at + 17, top + 11, piece, size=12)
        at += width


def _text(
    x: float, y: float, text: str, *, size: int = 13, anchor: str = "start", colour: str = ""
) -> str:
    fill = f' fill="{colour}"' if colour else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"{fill}>'
        f"{escape(text)}</text>"
    )
