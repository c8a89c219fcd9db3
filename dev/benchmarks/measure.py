"""Summarises several runs, and compares ours with the floor's.

Ratios are made pair by pair: the runs of a pair follow each other, so that what else happens on
the machine meets both.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Spread:
    """Median, least and most of some values."""

    median: float
    least: float
    most: float


def spread(values: Sequence[float]) -> Spread:
    """Sum up values; there must be one."""
    return Spread(statistics.median(values), min(values), max(values))


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


@dataclass(frozen=True)
class Row:
    """One quantity: our values, and the floor's where there is one.

    `paired`: value i of both belongs to pair i, so that there are as many ratios as pairs.
    `ours_are` and `floor_is` name the two sides where they are not Muster and its floor. `stated`
    rows are those that the documents tell.
    """

    name: str
    unit: str
    ours: tuple[float, ...]
    floor: tuple[float, ...] = ()
    aim: str = ""
    met: bool | None = None
    paired: bool = True
    ours_are: str = "Muster"
    floor_is: str = "floor"
    stated: bool = False

    @property
    def ratios(self) -> tuple[float, ...]:
        """Ours by the floor's, pair by pair, or the ratio of the medians."""
        if not self.floor:
            return ()
        if self.paired:
            return tuple(o / f for o, f in zip(self.ours, self.floor, strict=True))
        return (statistics.median(self.ours) / statistics.median(self.floor),)

    @property
    def beyond(self) -> float:
        """By how much the median is above the floor's."""
        return statistics.median(self.ours) - statistics.median(self.floor)

    def plain(self) -> dict[str, Any]:
        """The row as JSON holds it."""
        return {
            "name": self.name,
            "unit": self.unit,
            "sides": [self.ours_are, self.floor_is],
            "ours": [round(value, 4) for value in self.ours],
            "floor": [round(value, 4) for value in self.floor],
            "ratios": [round(value, 3) for value in self.ratios],
            "aim": self.aim,
            "met": self.met,
            "stated": self.stated,
        }


def judged(row: Row, aim: str, holds: Callable[[Row], bool]) -> Row:
    """The row with its aim and whether it was met."""
    return replace(row, aim=aim, met=holds(row), stated=True)


def stated(row: Row) -> Row:
    """The row without an aim, told in the documents all the same."""
    return replace(row, stated=True)


def ratio_within(row: Row, most: float) -> Row:
    """Aim at a median of the ratios of at most `most`."""
    return judged(row, f"≤ {most:g} times the floor", lambda r: statistics.median(r.ratios) <= most)


def ratio_from(row: Row, least: float) -> Row:
    """Aim at a median of the ratios of at least `least`."""
    held = f"≥ {least:g} times the floor"
    return judged(row, held, lambda r: statistics.median(r.ratios) >= least)


def beyond_within(row: Row, most: float) -> Row:
    """Aim at a median of at most `most` above the floor's."""
    return judged(row, f"≤ floor + {most:g} {row.unit}", lambda r: r.beyond <= most)


def median_within(row: Row, most: float) -> Row:
    """Aim at a median of at most `most`."""
    return judged(row, f"≤ {most:g} {row.unit}", lambda r: statistics.median(r.ours) <= most)


@dataclass
class Outcome:
    """What one case found: rows, tables of numbers by name, and what a reader should know."""

    rows: list[Row]
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """The outcome as JSON holds it."""
        return {
            "rows": [row.plain() for row in self.rows],
            "tables": self.tables,
            "notes": self.notes,
        }


def of_field(
    field_name: str,
    name: str,
    unit: str,
    floor: Sequence[object],
    ours: Sequence[object],
    *,
    paired: bool = True,
) -> Row:
    """The row of one attribute of the runs."""
    values = [tuple(float(getattr(run, field_name)) for run in runs) for runs in (ours, floor)]
    return Row(name, unit, values[0], values[1], paired=paired)


def in_turn(
    runs: int, floor: Callable[[int], T], ours: Callable[[int], T]
) -> tuple[list[T], list[T]]:
    """Run the floor and ours in turn; returns the values of both."""
    floors, all_ours = all_in_turn(runs, (floor, ours))
    return floors, all_ours


def all_in_turn(runs: int, sides: Sequence[Callable[[int], T]]) -> list[list[T]]:
    """Run several sides in turn, each round beginning with another; returns the values of each.

    So what a side leaves behind, or a machine that warms up, does not always meet the same one.
    """
    found: list[list[T]] = [[] for _ in sides]
    for number in range(runs):
        for at in range(len(sides)):
            turn = (number + at) % len(sides)
            found[turn].append(sides[turn](number))
    return found


def means(tables: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean of each name over several tables; a name that one lacks counts as 0 there."""
    names = sorted({name for table in tables for name in table})
    return {n: round(sum(t.get(n, 0.0) for t in tables) / len(tables), 2) for n in names}
