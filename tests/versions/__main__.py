"""`python -m tests.versions VERSION...`: runs on one version of Kubernetes after another.

What is run is in `plan.py`. What came of it is kept in one file a version, below `records`, and
stated in docs/compatibility.md. Steps that this commit has run well are not run again.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from testbed.muster import ROOT
from testbed.recipes import KUBERNETES, KUBERNETES_VARIABLE
from tests.versions import plan
from tests.versions.record import FOLDER, Run, continued, write
from tests.versions.table import PAGE, publish

LOGS = ROOT / "out" / "versions"


def main(argv: list[str]) -> int:
    """Run what is missing on each version; 1 where anything failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions", description=__doc__)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help=", ".join(KUBERNETES))
    parser.add_argument("--pytest", default="", help="more arguments for pytest, in one word")
    parser.add_argument(
        "--step", action="append", help="only this one: demo, oracle, tests or upgrade"
    )
    options = parser.parse_args(argv)
    versions = options.versions or list(KUBERNETES)
    unknown = sorted({*versions} - {*KUBERNETES})
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; known are {', '.join(KUBERNETES)}")
    well = [_run_version(each, shlex.split(options.pytest), options.step) for each in versions]
    return 0 if all(well) else 1


def _run_version(version: str, pytest_args: list[str], only: list[str] | None) -> bool:
    """Run the steps that are missing, and keep what came of each as soon as it is over."""
    record = continued(version, _commit())
    chosen = [s for s in plan.steps(version, pytest_args) if only is None or s.name in only]
    for step in chosen:
        if record.lacks(step.name):
            record = record.added(step.name, _run(version, step), f"{datetime.now(UTC):%Y-%m-%d}")
            write(record)
            publish(KUBERNETES)
    return not any(record.lacks(step.name) for step in chosen)


def _run(version: str, step: plan.Step) -> Run:
    """Run one step, with what it prints in a log."""
    log = LOGS / f"{version}-{step.name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.write(f"{version}: {step.name}; its log is {log}\n")
    environment = {**os.environ, KUBERNETES_VARIABLE: version}
    with log.open("w") as output:
        done = subprocess.run(
            step.command,
            cwd=ROOT,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    said = log.read_text(errors="replace")
    summary = step.summary(said) or f"ended with {done.returncode}"
    sys.stdout.write(f"{version}: {step.name}: {summary}\n")
    return Run(done.returncode == 0, summary, plan.failed(said), plan.skipped(said))


def _commit() -> str:
    """Name what is checked out; what this program itself writes changes nothing of it."""
    written = (FOLDER, PAGE)
    others = [f":!{Path(path).relative_to(ROOT)}" for path in written]
    changed = _git("status", "--porcelain", "--", ".", *others)
    return _git("rev-parse", "--short=12", "HEAD") + ("-changed" if changed else "")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
