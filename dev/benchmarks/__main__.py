"""`python -m benchmarks [NAME ...]`: measure Muster against floors, and print the ratios."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks.cases import CASES, Case
from benchmarks.machine import LOAD, facts
from benchmarks.report import machine_lines, outcome_lines
from benchmarks.traces import NoTracesError
from runtime.program import log_json
from testbed.errors import TestbedError


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(CASES)))
@click.option("--runs", type=click.IntRange(1), help="Pairs of runs, or samples, of each case.")
@click.option("--json", "to", type=click.Path(dir_okay=False, path_type=Path), help="Write a file.")
def main(*, names: Sequence[str], runs: int | None, to: Path | None) -> None:
    """Measure the cases NAMES, all of them by default. No result is an error: ratios inform."""
    log_json("warning")  # parts of Muster run in this process, too
    machine = facts()
    _say(machine_lines(machine))
    found: dict[str, Any] = {}
    for name in names or CASES:
        found[name] = _measure(name, CASES[name], runs)
        if to is not None:
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(json.dumps({"machine": machine, "cases": found}, indent=2) + "\n")


def _measure(name: str, case: Case, runs: int | None) -> dict[str, Any]:
    load = facts()[LOAD]
    try:
        outcome = case.measure(runs or case.runs)
    except (TestbedError, NoTracesError) as error:
        click.echo(f"\n{name}: not measured: {error}", err=True)
        return {"error": str(error), "load": load}
    outcome.notes.append(f"load at the start of this case: {load}")
    _say(outcome_lines(name, case.question, outcome))
    return {**outcome.plain(), "load": load}


def _say(lines: Any) -> None:
    for line in lines:
        click.echo(line)


if __name__ == "__main__":
    main()
