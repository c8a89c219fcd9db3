"""Writes the table of the versions that were run into docs/compatibility.md, from the records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from benchmarks.publish import replaced
from tests.versions.record import FOLDER, Record, Run, path_of, read

PAGE = FOLDER.parents[2] / "docs" / "compatibility.md"
MARKS = (
    "<!-- The table is written by `make test-versions`. -->",
    "<!-- Here ends what `make test-versions` writes. -->",
)
_HEAD = ("| version | how | commit, day | what came of it |", "|---|---|---|---|")


def records(versions: Iterable[str], folder: Path = FOLDER) -> list[Record]:
    """Read the records of those of these versions that have one."""
    paths = (path_of(version, folder) for version in versions)
    return [read(path) for path in paths if path.exists()]


def table(found: Iterable[Record]) -> str:
    """Say of each version what was run, what failed, and what was skipped and why."""
    found = list(found)
    rows = [_row(record) for record in found]
    return "\n".join(["", *_HEAD, *rows, "", *_exceptions(found)])


def _row(record: Record) -> str:
    runs = "; ".join(f"{name}: {run.summary}" for name, run in record.runs.items())
    return f"| {record.kubernetes} | run | {record.commit}, {record.date} | {runs} |"


def _exceptions(found: Iterable[Record]) -> Iterator[str]:
    for record in found:
        lines = [line for run in record.runs.values() for line in _of_run(run)]
        if lines:
            yield from (f"On {record.kubernetes}:", "", *lines, "")


def _of_run(run: Run) -> Iterator[str]:
    yield from (f"- failed: `{name}`" for name in run.failed)
    yield from (f"- skipped: {name}" for name in run.skipped)


def publish(versions: Iterable[str]) -> None:
    """Write the table."""
    PAGE.write_text(replaced(PAGE.read_text(), table(records(versions)), MARKS))
