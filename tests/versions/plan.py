"""Lists what is run on a version of Kubernetes, and finds what each run says of itself."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

WHOLE = ("1.37.2", "1.36.3")
"""The versions that all tests on a control plane run on."""

UPGRADE = "tests/versions/test_upgrade.py"
"""Goes to the first of `WHOLE` from the second."""

ORACLE_CASES = 200
_EVERYTHING = "controlplane and (variant or not long) or versions"
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
_SKIPPED = re.compile(r"^SKIPPED \[\d+\] (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """A command, and the pattern of those of its lines that sum it up."""

    name: str
    command: tuple[str, ...]
    sums_up: str

    def summary(self, output: str) -> str:
        """Join what the run says of itself; empty where it did not come that far."""
        return ", ".join(re.findall(self.sums_up, output, re.MULTILINE))


def steps(version: str, pytest_args: Sequence[str]) -> tuple[Step, ...]:
    """List what is run on a version; the command of a cold cache builds it first."""
    python = sys.executable
    oracle = ("-m", "tests.oracle", "--cases", str(ORACLE_CASES), "--seed", "31")
    marked = _EVERYTHING if version in WHOLE else "versions"
    pytest = ("-m", "pytest", "-q", "-rfEs")
    tests = (*pytest, "-m", marked, *pytest_args)
    counted = r"^(\d+ (?:passed|failed|error).*) in [\d.]+s"
    found = (
        Step("demo", (python, "-m", "demo", "--plain"), r"^.*?(\d+ of \d+ claims hold)$"),
        Step("oracle", (python, *oracle), r"^(\d+ cases|\d+ unsound|\d+ admitted of \d+)"),
        Step("tests", (python, *tests), counted),
    )
    if version != WHOLE[0]:
        return found
    return (*found, Step("upgrade", (python, *pytest, UPGRADE), counted))


def failed(output: str) -> list[str]:
    """Name the tests that failed."""
    return sorted(_FAILED.findall(output))


def skipped(output: str) -> list[str]:
    """Name the tests that were skipped, each with its reason."""
    return sorted(_SKIPPED.findall(output))
