"""Keeps what was run on one version of Kubernetes in a file, so that a later run can go on."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent / "records"


@dataclass(frozen=True)
class Run:
    """What one step found."""

    succeeded: bool
    summary: str
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Record:
    """All that was run on a version, of one commit; `date` is the day of the latest step."""

    kubernetes: str
    commit: str
    date: str = ""
    runs: dict[str, Run] = field(default_factory=dict)

    def lacks(self, step: str) -> bool:
        """Tell whether a step is still to run: it has not, or it failed."""
        return step not in self.runs or not self.runs[step].succeeded

    def added(self, step: str, run: Run, date: str) -> Record:
        """Return the record with one more step."""
        return Record(self.kubernetes, self.commit, date, {**self.runs, step: run})


def read(path: Path) -> Record:
    """Read a file that `write` has written."""
    found = json.loads(path.read_text())
    runs = {name: Run(**run) for name, run in found.pop("runs").items()}
    return Record(**found, runs=runs)


def write(record: Record, folder: Path = FOLDER) -> None:
    """Write a record under the name of its version."""
    folder.mkdir(exist_ok=True)
    path_of(record.kubernetes, folder).write_text(json.dumps(asdict(record), indent=2) + "\n")


def continued(kubernetes: str, commit: str, folder: Path = FOLDER) -> Record:
    """Return what this commit has run on a version so far; nothing where another one did."""
    path = path_of(kubernetes, folder)
    if path.exists() and (found := read(path)).commit == commit:
        return found
    return Record(kubernetes, commit)


def path_of(kubernetes: str, folder: Path = FOLDER) -> Path:
    """Return the file of a version."""
    return folder / f"{kubernetes}.json"
