"""`python -m benchmarks.publish RUN.json`: put what a run found into docs/.

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
BEGIN = "<!-- The table is written by `make figures`. -->"
END = "<!-- Here ends what `make figures` writes. -->"
_BUSY = "**The machine was busy with other work: no aim is decided by this table.**"
_HEAD = ("| case | what | aim | against | Muster | ratio | met |", "|---|---|---|---|---|---|---|")


def table(run: Mapping[str, Any]) -> str:
    """The rows that are to be stated, of all cases, as Markdown."""
    cases = {name: case for name, case in run["cases"].items() if "rows" in case}
    told = [_machine(run["machine"]), _loads(cases, run["machine"]["cores"])]
    return "\n".join(["", *told, "", *_HEAD, *_lines(cases), ""])


def replaced(page: str, text: str) -> str:
    """The page with this text between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page lacks {BEGIN!r} followed by {END!r}")
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def _lines(cases: Mapping[str, Any]) -> Iterator[str]:
    for name, case in cases.items():
        for row in case["rows"]:
            if row["stated"]:
                yield _line(name, row)


def _line(case: str, row: Mapping[str, Any]) -> str:
    unit, (ours_are, floor_is) = row["unit"], row["sides"]
    ours = _values(row["ours"], unit)
    against = f"{floor_is}: {_values(row['floor'], unit)}" if row["floor"] else ""
    said = ours if ours_are == "Muster" else f"{ours_are}: {ours}"
    met = {True: "yes", False: "no", None: ""}[row["met"]]
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


def _loads(cases: Mapping[str, Any], cores: int) -> str:
    loads = {name: float(case["load"].split()[0]) for name, case in cases.items()}
    told = ", ".join(f"`{name}` {load:g}" for name, load in loads.items())
    busy = "" if max(loads.values()) < cores else f" {_BUSY}"
    return f"Load as each case began: {told}.{busy}"


def main(path: str) -> None:
    """Read a run and write the table and the chart."""
    run = json.loads(Path(path).read_text())
    PAGE.write_text(replaced(PAGE.read_text(), table(run)))
    burst = run["cases"].get("burst", {})
    if "tables" in burst:
        CHART.write_text(svg(bars(burst["tables"]), f"Load at the start: {burst['load']}."))


if __name__ == "__main__":
    main(*sys.argv[1:])
