"""Prints measurements for a reader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from benchmarks.measure import Outcome, Row, spread


def machine_lines(facts: Mapping[str, Any]) -> Iterator[str]:
    """The machine in one paragraph."""
    yield ", ".join(f"{name} {value}" for name, value in facts.items())


def outcome_lines(name: str, question: str, outcome: Outcome) -> Iterator[str]:
    """One case: its rows, its tables, its notes."""
    yield ""
    yield f"{name}: {question}"
    for row in outcome.rows:
        yield from (f"  {line}" for line in _row_lines(row))
    for title, table in outcome.tables.items():
        yield f"  {title}: " + ", ".join(f"{key} {value:g}" for key, value in table.items())
    yield from (f"  {note}" for note in outcome.notes)


def _row_lines(row: Row) -> Iterator[str]:
    yield row.name
    width = max(len(row.ours_are), len(row.floor_is)) + 2
    if row.floor:
        yield f"  {row.floor_is:<{width}}{_values(row.floor)} {row.unit}"
    yield f"  {row.ours_are:<{width}}{_values(row.ours)} {row.unit}"
    if row.floor:
        yield f"  {'ratio':<{width}}{_values(row.ratios)}, {row.beyond:+.3g} {row.unit}"
    if row.aim:
        yield f"  {'aim':<{width}}{row.aim}: {'met' if row.met else 'not met'}"


def _values(values: Iterable[float]) -> str:
    found = tuple(values)
    if len(found) == 1:
        return f"{found[0]:.3g}"
    over = spread(found)
    return f"{over.median:.3g} (of {len(found)}: {over.least:.3g} to {over.most:.3g})"
