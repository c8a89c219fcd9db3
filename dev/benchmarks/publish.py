"""`python -m benchmarks.publish RUN.json`: writes the findings of a run into docs/.

The aims of the run's cases, and what else is to be stated, become the table of docs/benchmarks.md,
between its two marks, and the CPU of the burst becomes docs/burst.svg. Cases that the run lacks are
left out of the table.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.chart import bars, svg
from benchmarks.machine import LOAD
from testbed.muster import ROOT

PAGE = ROOT / "docs" / "benchmarks.md"
CHART = ROOT / "docs" / "burst.svg"
MARKS = (
    "<!-- The table is written by `make figures`. -->",
    "<!-- Here ends what `make figures` writes. -->",
)
_BUSY = "**The machine was busy with other work: no aim is decided by this table.**"
_MET = {True: "yes", False: "no"}
_UNDECIDED: Mapping[bool, str] = {}
_HEAD = ("| case | what | aim | against | Muster | ratio | met |", "|---|---|---|---|---|---|---|")


def table(run: Mapping[str, Any]) -> str:
    """The rows that are to be stated, of all cases, as Markdown."""
    cases = {name: case for name, case in run["cases"].items() if "rows" in case}
    busy = _was_busy(run["machine"])
    told = [_machine(run["machine"]), _loads(run["machine"], cases)]
    told += [_BUSY] if busy else []
    lines = _lines(cases, _UNDECIDED if busy else _MET)
    return "\n".join(["", *told, "", *_HEAD, *lines, ""])


def replaced(page: str, text: str, marks: tuple[str, str]) -> str:
    """The page with this text between two marks."""
    first, last = marks
    before, begin, rest = page.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise ValueError(f"the page lacks {first!r} followed by {last!r}")
    return f"{before}{first}\n{text}\n{last}{after}"


def _lines(cases: Mapping[str, Any], verdicts: Mapping[bool, str]) -> Iterator[str]:
    for name, case in cases.items():
        for row in case["rows"]:
            if row["stated"]:
                yield _line(name, row, verdicts.get(row["met"], ""))


def _line(case: str, row: Mapping[str, Any], met: str) -> str:
    unit, (ours_are, floor_is) = row["unit"], row["sides"]
    ours = _values(row["ours"], unit)
    against = f"{floor_is}: {_values(row['floor'], unit)}" if row["floor"] else ""
    said = ours if ours_are == "Muster" else f"{ours_are}: {ours}"
    cells = (f"`{case}`", row["name"], row["aim"], against, said, _values(row["ratios"], ""), met)
    return f"| {' | '.join(cells)} |"


def _values(values: list[float], unit: str) -> str:
    """The median, and where there are several values the least and the most."""
    if not values:
        return ""
    middle = f"{statistics.median(values):.3g} {unit}".strip()
    return middle if len(values) == 1 else f"{middle} ({min(values):.3g} to {max(values):.3g})"


def _machine(facts: Mapping[str, Any]) -> str:
    told = ", ".join(f"{name} {value}" for name, value in facts.items() if name != LOAD)
    return f"Medians, and in brackets the least and the most of the runs. {told}."


def _was_busy(machine: Mapping[str, Any]) -> bool:
    """Say whether others used the machine as the run began.

    As later cases begin, the load is what the cases before them have left.
    """
    return _load(machine[LOAD]) >= float(machine["cores"])


def _loads(machine: Mapping[str, Any], cases: Mapping[str, Any]) -> str:
    told = ", ".join(f"`{name}` {_load(case['load']):g}" for name, case in cases.items())
    began = f"Load as the run began: {_load(machine[LOAD]):g}."
    return f"{began} As each case began, with what the cases before it left: {told}."


def _load(averages: str) -> float:
    """The average of the last minute."""
    return float(averages.split(maxsplit=1)[0])


def main(path: str) -> None:
    """Read a run and write the table and the chart."""
    run = json.loads(Path(path).read_text())
    PAGE.write_text(replaced(PAGE.read_text(), table(run), MARKS))
    burst = run["cases"].get("burst", {})
    if "tables" in burst:
        CHART.write_text(svg(bars(burst["tables"]), f"Load at the start: {burst['load']}."))


if __name__ == "__main__":
    main(*sys.argv[1:])
